"""The three dialects of the compiler: `ascend`, `cce` and `hivm`, in the order of lowering."""

from __future__ import annotations

import io
from functools import partial

from davinci.mlir import ir

_EMITTED: set[str] = set()
"""Dialects whose definition was made in this process."""


def load_all() -> None:
    """Loads every dialect of the project into the current MLIR context."""
    from davinci.dialects import ascend
    from davinci.dialects.cce import core_ops as cce_cores
    from davinci.dialects.cce import vector_ops  # noqa: F401 - adds operations
    from davinci.dialects.hivm import ops as hivm

    # The last module that adds operations to a dialect stands for it.
    for dialect in (ascend.Ascend, cce_cores.Cce, hivm.Hivm):
        dialect.load()
        if dialect.name not in _EMITTED:
            # Further contexts read the definition, which is some thousand operations to build.
            code = io.BytesIO()
            dialect._mlir_module.operation.write_bytecode(code)
            dialect._emit_module = partial(ir.Module.parse, code.getvalue())
            _EMITTED.add(dialect.name)
        # What the dialect was made from would keep the context, and with it all constants.
        dialect._mlir_module = None
