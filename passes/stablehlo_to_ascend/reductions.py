"""Conversions of reductions."""

from __future__ import annotations

from collections.abc import Sequence

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.mlir import Op, ir
from davinci.passes.ascend.tensor_ops import TensorOps, full_value
from davinci.passes.stablehlo_to_ascend import conversion
from davinci.passes.stablehlo_to_ascend.arg_reduce import extreme_and_place
from davinci.passes.stablehlo_to_ascend.elementwise import BOOLEAN
from davinci.passes.stablehlo_to_ascend.reduced_values import neutral, reduced_by

REDUCTIONS = {
    "stablehlo.add": "add",
    "stablehlo.maximum": "max",
    "stablehlo.minimum": "min",
    "stablehlo.multiply": "mul",
    "stablehlo.and": "min",
    "stablehlo.or": "max",
}
"""Bodies of reductions; the last two on booleans."""


@conversion("reduce")
def convert_reduce(op: Op, ops: TensorOps) -> Sequence[ir.Value] | None:
    """Converts reductions of one operand whose body is one operation, and those to the largest or
    smallest value and its place."""
    if len(op.results) == 2:
        return extreme_and_place(op, ops)
    kind = kind_of_body(op)
    if kind is None:
        return None
    operand, start = op.operands
    found = tensor_of(operand.type)
    if found.count == 0:
        return [ops.broadcast(start, tensor_of(op.results[0].type).shape, [])]
    reduced = reduced_by(operand, kind, attribute(op, "dimensions"), ops)
    if reduced is None:
        return None
    value = full_value(start)
    if value is None or value != neutral(kind, value.dtype):
        combine = {"min": "and", "max": "or"}[kind] if found.element == "i1" else kind
        spread = ops.broadcast(start, tensor_of(reduced.type).shape, [])
        reduced = ops.binary(combine, reduced, spread)
    return [reduced]


def kind_of_body(op: Op) -> str | None:
    """How a reduction of one operand combines; None if by more than one operation."""
    if len(op.operands) != 2:
        return None
    block = op.regions[0].blocks[0]
    body = [inner.operation for inner in block.operations]
    boolean = tensor_of(op.operands[0].type).element == "i1"
    if len(body) != 2 or list(body[0].operands) not in (
        list(block.arguments),
        list(block.arguments)[::-1],
    ):
        return None
    if list(body[1].operands) != list(body[0].results):
        return None
    name = body[0].name
    if boolean:
        short = BOOLEAN.get(name.removeprefix("stablehlo."))
        name = f"stablehlo.{short}" if short else name
    elif name in ("stablehlo.and", "stablehlo.or"):
        return None
    return REDUCTIONS.get(name)
