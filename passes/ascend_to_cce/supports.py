"""Which ascend operators the vector unit has instructions for, on which element types.

`supports` is for passes that decide between a vector kernel and a scalar one; it takes the form on
tensors, where booleans are `i1`. In buffers booleans are bytes, so the lowerings accept `i8` too.
"""

from __future__ import annotations

from typing import Any

from davinci.mlir import ir
from davinci.passes.pipeline.base import fail

FLOATS = frozenset({"f16", "f32"})
NUMBERS = FLOATS | {"i32"}

OPERAND_TYPES: dict[str, frozenset[str]] = {
    **dict.fromkeys(("add", "sub", "mul", "max", "min", "clamp"), NUMBERS),
    **dict.fromkeys(("neg", "abs", "sign", "relu"), NUMBERS),
    **dict.fromkeys(("div", "pow", "exp", "log", "sqrt", "rsqrt"), FLOATS),
    **dict.fromkeys(("tanh", "erf", "logistic", "floor", "ceil", "round"), FLOATS),
    **dict.fromkeys(("and", "or", "xor"), frozenset({"i1", "i16"})),
    "not": frozenset({"i1", "i16", "i32"}),
    "compare": NUMBERS | {"i1", "i8"},
    "select": NUMBERS | {"i1", "i8"},
    "cast": NUMBERS | {"i1", "i8"},
    "reduce": FLOATS | {"i32"},
    "cube_scale": frozenset({"f32"}),
    "half_part": FLOATS,
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
    if name in ("compare", "select"):
        values = values[:1] if name == "compare" else values[1:2]
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
