"""The three dialects of the compiler: `ascend`, `cce` and `hivm`, in the order of lowering."""

from __future__ import annotations

import io
from typing import Any

from davinci.mlir import ext, ir

_DEFINITIONS: dict[str, bytes] = {}
"""Of each dialect that a context of this process has loaded, the bytecode that defines it."""


def load_all() -> None:
    """Loads every dialect of the project into the current MLIR context."""
    from davinci.dialects import ascend
    from davinci.dialects.cce import core_ops as cce_cores
    from davinci.dialects.cce import cube_ops, vector_ops  # noqa: F401 - add operations
    from davinci.dialects.hivm import ops as hivm

    # The last module that adds operations to a dialect stands for it.
    for dialect in (ascend.Ascend, cce_cores.Cce, hivm.Hivm):
        if dialect.name in _DEFINITIONS:
            _load_again(dialect)
            continue
        dialect.load()
        code = io.BytesIO()
        dialect._mlir_module.operation.write_bytecode(code)
        _DEFINITIONS[dialect.name] = code.getvalue()
        # What the dialect was made from would keep the context, and with it all constants.
        dialect._mlir_module = None


def _load_again(dialect: type[Any]) -> None:
    """Loads a dialect into a further context: its definition, some thousand operations, is read
    instead of built and simplified, and the process knows its classes already."""
    ext.irdl.load_dialects(ir.Module.parse(_DEFINITIONS[dialect.name]))
    for operation in dialect.operations:
        operation._attach_traits()
    register = ext._cext.register_type_caster
    for kind in dialect.types:
        register(ir.DynamicType.lookup_typeid(kind.type_name), replace=True)(kind)
    for kind in dialect.attributes:
        register(ir.DynamicAttr.lookup_typeid(kind.attr_name), replace=True)(kind)
