"""The three dialects of the compiler: `ascend`, `cce` and `hivm`, in the order of lowering."""

from __future__ import annotations


def load_all() -> None:
    """Loads every dialect of the project into the current MLIR context."""
    from davinci.dialects import ascend
    from davinci.dialects.cce import vector_ops as cce_vector
    from davinci.dialects.hivm import ops as hivm

    # The last module that adds operations to a dialect stands for it.
    for dialect in (ascend.Ascend, cce_vector.Cce, hivm.Hivm):
        dialect.load()
        # What the dialect was made from would keep the context, and with it all constants.
        dialect._mlir_module = None
