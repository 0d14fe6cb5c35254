"""The three dialects of the compiler: `ascend`, `cce` and `hivm`, in the order of lowering."""

from __future__ import annotations


def load_all() -> None:
    """Loads every dialect of the project into the current MLIR context."""
    from davinci.dialects import ascend, cce, hivm

    for dialect in (ascend.Ascend, cce.Cce, hivm.Hivm):
        dialect.load()
