"""Values that are computed of constants only, as arrays."""

from __future__ import annotations

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import python_value
from davinci.elements import Array
from davinci.mlir import ir
from davinci.passes.ascend.tensor_ops import constant_array, defining_op, definition, evaluate

MOST_ELEMENTS, MOST_OPERATORS = 1 << 26, 32
"""A value with more elements, or one that more operators compute, is not evaluated."""


def evaluated(value: ir.Value, most: int = MOST_OPERATORS) -> Array | None:
    """The elements of what depends on constants only, None of anything else or larger.

    Args:
        most: operators and constants that are evaluated.
    """
    seen: dict[ir.Value, Array] = {}
    waiting = [value]
    while waiting and len(seen) <= most:
        current = waiting[-1]
        op = defining_op(current)
        if op is None or not op.name.startswith("ascend.") or len(op.results) != 1:
            return None
        kind = tensor_of(current.type)
        if kind.count > MOST_ELEMENTS or kind.count == 0:
            return None
        missing = [operand for operand in op.operands if operand not in seen]
        if definition(current) is None and missing:
            waiting += missing
            continue
        waiting.pop()
        if definition(current) is not None:
            seen[current] = constant_array(op)
            continue
        attributes = {name: python_value(op.attributes[name]) for name in op.attributes}
        inputs = [seen[operand] for operand in op.operands]
        given = {name: x for name, x in attributes.items() if "." not in name}
        seen[current] = evaluate(op.name.removeprefix("ascend."), inputs, kind, given)
    return seen.get(value)
