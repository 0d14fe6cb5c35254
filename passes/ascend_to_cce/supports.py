"""Which ascend operators the vector unit has instructions for, on which element types.

`supports` is for passes that decide between a vector kernel and a scalar one; it takes the form on
tensors, where booleans are `i1`. In buffers booleans are bytes, so the lowerings accept `i8` too.
"""

from __future__ import annotations

from typing import Any

from davinci.mlir import ir
from davinci.operators import OPERATORS
from davinci.operators.core import NUMBERS
from davinci.passes.pipeline.base import fail

OPERAND_TYPES: dict[str, frozenset[str]] = {
    **{name: record.types for name, record in OPERATORS.items()},
    "reduce": NUMBERS,
}
"""Element types of the operands of each elementwise operator, and of reductions. Any type not
listed needs a scalar kernel. Operators that only move data are not listed: they take every type."""

MOVES = frozenset({"copy", "broadcast", "transpose", "slice", "concat", "pad", "iota", "gather"})


def element_of(value: Any) -> str:
    """The element type of a tensor or memref, e.g. "f32"."""
    return str(ir.ShapedType(value.type).element_type)


def unsupported(operation: Any, boolean: str) -> str:
    """The first element type of the operation that has no vector lowering, "" if all have one.

    Args:
        boolean: how booleans appear, "i1" on tensors, "i8" in buffers.
    """
    name = operation.name.removeprefix("ascend.")
    if name in MOVES:
        return ""
    types = OPERAND_TYPES.get(name, frozenset())
    legal = types | {boolean} if "i1" in types else types
    values = [*operation.operands, *operation.results]
    return next((kind for v in values if (kind := element_of(v)) not in legal), "")


def supports(operation: Any) -> bool:
    """Whether the ascend operator, on tensors, has a vector-unit lowering for its types."""
    return unsupported(operation.operation, "i1") == ""


def require_support(operation: Any) -> None:
    """Fails at an operator on buffers whose element types the vector unit cannot take."""
    found = unsupported(operation, "i8")
    if found:
        name = operation.name.removeprefix("ascend.")
        fail(
            operation,
            "has no vector instructions for its element type",
            found=found,
            expected=", ".join(sorted(OPERAND_TYPES.get(name, ()))),
            hint="make it a scalar kernel",
        )
