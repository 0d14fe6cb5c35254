"""Conversions of elementwise StableHLO operations."""

from __future__ import annotations

import math
from collections.abc import Sequence

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.mlir import Op, ir
from davinci.operators import OPERATORS
from davinci.operators.tensors import Tensor, is_float, is_integer
from davinci.passes.ascend.tensor_ops import TensorOps, full_value
from davinci.passes.stablehlo_to_ascend import conversion
from davinci.passes.stablehlo_to_ascend.reduced_values import seen_as
from davinci.passes.stablehlo_to_ascend.wider_integers import low_bits

BINARY = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "maximum": "max",
    "minimum": "min",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "atan2": "atan2",
    "remainder": "remainder",
    "shift_left": "shift_left",
    "shift_right_arithmetic": "shift_right",
    "shift_right_logical": "shift_right_logical",
}

BOOLEAN = {"add": "or", "multiply": "and", "maximum": "or", "minimum": "and"}
"""What arithmetic means on booleans."""

UNARY = {
    "negate": "neg",
    "abs": "abs",
    "exponential": "exp",
    "log": "log",
    "sqrt": "sqrt",
    "rsqrt": "rsqrt",
    "tanh": "tanh",
    "logistic": "logistic",
    "sign": "sign",
    "floor": "floor",
    "ceil": "ceil",
    "round_nearest_even": "round",
    "round_nearest_afz": "round_away",
    "not": "not",
    "sine": "sine",
    "cosine": "cosine",
    "tan": "tan",
    "exponential_minus_one": "expm1",
    "log_plus_one": "log1p",
    "cbrt": "cbrt",
    "popcnt": "popcnt",
    "count_leading_zeros": "count_leading_zeros",
}

CHLO = ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "erf_inv", "sinh")
"""Operations of CHLO that are one operator, of the same name."""

NAMED = {f"{dialect}.{name}": name for dialect in ("chlo", "mhlo") for name in CHLO}
"""Composites and custom calls that are one ascend operator, besides `ascend.` and its name."""

DIVISIONS = frozenset({"div", "remainder"})

MOST_BY_SCALARS = 128
"""Numbers of 64 bits that the scalar unit divides in the time that a tile takes the vector unit."""


@conversion(*BINARY)
def convert_binary(op: Op, ops: TensorOps) -> Sequence[ir.Value] | None:
    name = op.name.removeprefix("stablehlo.")
    a, b = op.operands
    target, found = BINARY[name], tensor_of(a.type)
    if target in DIVISIONS and found.element == "i64" and found.count <= MOST_BY_SCALARS:
        return None
    if found.element == "i1":
        target = BOOLEAN.get(name, target)
    if target == "max":
        for x, bound in ((a, b), (b, a)):
            value = full_value(bound)
            if value is not None and value == 0 and is_float(tensor_of(x.type).element):
                return [ops.unary("relu", x)]
    return [ops.binary(target, a, b)]


@conversion(*UNARY)
def convert_unary(op: Op, ops: TensorOps) -> Sequence[ir.Value]:
    return [ops.unary(UNARY[op.name.removeprefix("stablehlo.")], op.operands[0])]


@conversion("composite", "custom_call")
def convert_named(op: Op, ops: TensorOps) -> Sequence[ir.Value] | None:
    key = "name" if op.name == "stablehlo.composite" else "call_target_name"
    called = str(attribute(op, key))
    name = called.removeprefix("ascend.") if called.startswith("ascend.") else NAMED.get(called)
    record = OPERATORS.get(name or "")
    if record is None or not record.elementwise or len(record.operands) != len(op.operands):
        return None
    return [ops.emit(record.name, list(op.operands), tensor_of(op.results[0].type))]


@conversion("power")
def convert_power(op: Op, ops: TensorOps) -> Sequence[ir.Value] | None:
    """Powers by a known 1, 2, 3 or -1 are products and quotients."""
    x, exponent = op.operands
    found = tensor_of(x.type)
    value = full_value(exponent)
    number = None if value is None else float(value)
    if number == 1:
        return [x]
    if number == 2:
        return [ops.binary("mul", x, x)]
    if number == 3:
        return [ops.binary("mul", ops.binary("mul", x, x), x)]
    if not is_float(found.element):
        return None
    if number == -1:
        return [ops.binary("div", ops.full(found.shape, found.element, 1), x)]
    return [ops.binary("pow", x, exponent)]


@conversion("convert", "bitcast_convert")
def convert_convert(op: Op, ops: TensorOps) -> Sequence[ir.Value] | None:
    source, target = tensor_of(op.operands[0].type), tensor_of(op.results[0].type)
    if op.name == "stablehlo.bitcast_convert" and source.element != target.element:
        if source.bytes_each != target.bytes_each or "i1" in (source.element, target.element):
            return None
        return [seen_as(ops, op.operands[0], target.element)]
    if is_integer(source.element) and is_integer(target.element) and target.element != "i1":
        return [low_bits(op.operands[0], target.element, ops)]
    return [ops.cast(op.operands[0], target.element)]


@conversion("compare")
def convert_compare(op: Op, ops: TensorOps) -> Sequence[ir.Value]:
    a, b = op.operands
    predicate = str(op.attributes["comparison_direction"]).split()[-1].rstrip(">")
    result = Tensor(tensor_of(a.type).shape, "i1")
    return [ops.emit("compare", [a, b], result, predicate=predicate)]


@conversion("is_finite")
def convert_is_finite(op: Op, ops: TensorOps) -> Sequence[ir.Value]:
    """|x| < inf, which NaN is not either."""
    x = op.operands[0]
    found = tensor_of(x.type)
    limit = ops.full(found.shape, found.element, math.inf)
    result = Tensor(found.shape, "i1")
    return [ops.emit("compare", [ops.unary("abs", x), limit], result, predicate="LT")]


@conversion("select")
def convert_select(op: Op, ops: TensorOps) -> Sequence[ir.Value]:
    condition, a, b = op.operands
    result = tensor_of(a.type)
    return [ops.emit("select", [spread(condition, result, ops), a, b], result)]


@conversion("clamp")
def convert_clamp(op: Op, ops: TensorOps) -> Sequence[ir.Value]:
    low, x, high = op.operands
    result = tensor_of(x.type)
    bounds = [spread(low, result, ops), x, spread(high, result, ops)]
    return [ops.emit("clamp", bounds, result)]


def spread(value: ir.Value, result: Tensor, ops: TensorOps) -> ir.Value:
    """`value`, repeated to the shape of `result` if it has rank 0."""
    if tensor_of(value.type).rank == 0 and result.rank:
        return ops.broadcast(value, result.shape, [])
    return value
