"""Conversions of StableHLO operations that move, make or reduce data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.mlir import Op, ir, stablehlo
from davinci.operators.gather import rows_of
from davinci.operators.tensors import Tensor
from davinci.passes.ascend.tensor_ops import TensorOps, constant_array, definition, full_value
from davinci.passes.stablehlo_to_ascend import conversion
from davinci.passes.stablehlo_to_ascend.arg_reduce import extreme_and_place
from davinci.passes.stablehlo_to_ascend.blocks import dynamic_slice, gathered_blocks
from davinci.passes.stablehlo_to_ascend.elementwise import BOOLEAN
from davinci.passes.stablehlo_to_ascend.index_wrapping import wrapped
from davinci.passes.stablehlo_to_ascend.padding import padded


@conversion("constant")
def convert_constant(op: Op, ops: TensorOps) -> Sequence[ir.Value]:
    return [ops.constant_attribute(op.attributes["value"])]


@conversion("broadcast_in_dim")
def convert_broadcast(op: Op, ops: TensorOps) -> Sequence[ir.Value]:
    shape, operand = tensor_of(op.results[0].type).shape, op.operands[0]
    dims = list(attribute(op, "broadcast_dimensions"))
    if dims != sorted(dims):
        operand = ops.transpose(operand, sorted(range(len(dims)), key=dims.__getitem__))
    return [ops.broadcast(operand, shape, sorted(dims))]


@conversion("reshape")
def convert_reshape(op: Op, ops: TensorOps) -> Sequence[ir.Value]:
    return [ops.reshape(op.operands[0], tensor_of(op.results[0].type).shape)]


@conversion("transpose")
def convert_transpose(op: Op, ops: TensorOps) -> Sequence[ir.Value]:
    return [ops.transpose(op.operands[0], attribute(op, "permutation"))]


@conversion("slice")
def convert_slice(op: Op, ops: TensorOps) -> Sequence[ir.Value]:
    names = ("start_indices", "limit_indices", "strides")
    starts, limits, strides = (attribute(op, name) for name in names)
    return [ops.cut(op.operands[0], starts, limits, strides)]


@conversion("dynamic_slice")
def convert_dynamic_slice(op: Op, ops: TensorOps) -> Sequence[ir.Value] | None:
    """With known starts, which are clamped so that the slice lies inside."""
    operand, *indices = op.operands
    values = [full_value(index) for index in indices]
    if any(value is None for value in values):
        return dynamic_slice(op, ops)
    sizes = attribute(op, "slice_sizes")
    shape = tensor_of(operand.type).shape
    starts = [
        min(max(0, int(v)), n - size)  # type: ignore[arg-type]
        for v, n, size in zip(values, shape, sizes, strict=True)
    ]
    limits = [start + size for start, size in zip(starts, sizes, strict=True)]
    return [ops.cut(operand, starts, limits)]


@conversion("concatenate")
def convert_concatenate(op: Op, ops: TensorOps) -> Sequence[ir.Value]:
    dim = attribute(op, "dimension")
    parts = [v for v in op.operands if tensor_of(v.type).shape[dim]] or [op.operands[0]]
    return [ops.concat(parts, dim)]


@conversion("pad")
def convert_pad(op: Op, ops: TensorOps) -> Sequence[ir.Value]:
    operand, value = op.operands
    low, high = attribute(op, "edge_padding_low"), attribute(op, "edge_padding_high")
    interior = attribute(op, "interior_padding")
    return [padded(operand, value, low, high, interior, ops)]


@conversion("iota")
def convert_iota(op: Op, ops: TensorOps) -> Sequence[ir.Value]:
    """Numbers along one dimension, a constant, which others repeat."""
    result, dim = tensor_of(op.results[0].type), attribute(op, "iota_dimension")
    numbers = ops.emit("iota", [], Tensor((result.shape[dim],), result.element), dim=0)
    return [ops.broadcast(numbers, result.shape, [dim])]


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


def reduced_by(
    operand: ir.Value, kind: str, dims: Sequence[int], ops: TensorOps
) -> ir.Value | None:
    """A reduction; of types that the vector unit does not reduce by way of others, or None."""
    found = tensor_of(operand.type)
    if found.element == "i1":
        return ops.cast(ops.reduce(ops.cast(operand, "f16"), kind, dims), "i1")
    if found.element != "i64":
        return ops.reduce(operand, kind, dims)
    return (
        long_extreme(operand, kind, dims, ops)
        if kind in ("max", "min")
        else (long_sum(operand, dims, ops) if kind == "add" else None)
    )


DIGIT_BITS = 16
MOST_DIGITS = 1 << 15
"""Unsigned digits of 16 bits whose sum i32 holds."""


def long_sum(operand: ir.Value, dims: Sequence[int], ops: TensorOps) -> ir.Value | None:
    """The sum of i64: digits of 16 bits are summed as i32, and their sums put together.

    More values than i32 holds the digits' sum of are summed in two steps, along the first of
    several dimensions; None if there is but one.
    """
    shape = tensor_of(operand.type).shape
    if math.prod(shape[d] for d in dims) > MOST_DIGITS:
        if len(dims) == 1:
            return None
        inner = long_sum(operand, dims[:1], ops)
        rest = [d - (d > dims[0]) for d in dims[1:]]
        return None if inner is None else long_sum(inner, rest, ops)
    total: ir.Value | None = None
    for number in range(64 // DIGIT_BITS):
        half = operand if number < 2 else shifted(operand, "right", 2 * DIGIT_BITS, ops)
        word = ops.cast(half, "i32")
        digit = shifted(word, "right_logical", DIGIT_BITS, ops) if number % 2 else masked(word, ops)
        part = ops.cast(ops.reduce(digit, "add", dims), "i64")
        if number:
            part = shifted(part, "left", number * DIGIT_BITS, ops)
        total = part if total is None else ops.binary("add", total, part)
    return total


def masked(word: ir.Value, ops: TensorOps) -> ir.Value:
    """The lowest digit of i32."""
    lowest = ops.full(tensor_of(word.type).shape, "i32", (1 << DIGIT_BITS) - 1)
    return ops.binary("and", word, lowest)


def shifted(value: ir.Value, direction: str, count: int, ops: TensorOps) -> ir.Value:
    found = tensor_of(value.type)
    return ops.binary(f"shift_{direction}", value, ops.full(found.shape, found.element, count))


def long_extreme(operand: ir.Value, kind: str, dims: Sequence[int], ops: TensorOps) -> ir.Value:
    """The largest or smallest i64: that of the high halves, then of the low ones that go with it.

    Low halves have no sign: as i32 they are in order with half of their range added."""
    found = tensor_of(operand.type)
    high = ops.cast(shifted(operand, "right", 32, ops), "i32")
    best = ops.reduce(high, kind, dims)
    kept = [d for d in range(found.rank) if d not in dims]
    same = ops.emit(
        "compare",
        [high, ops.broadcast(best, found.shape, kept)],
        Tensor(found.shape, "i1"),
        predicate="EQ",
    )
    lowest = -(1 << 31)
    half = ops.full(found.shape, "i32", lowest)
    low = ops.binary("add", ops.cast(operand, "i32"), half)
    last = ops.full(found.shape, "i32", lowest if kind == "max" else -1 - lowest)
    low = ops.emit("select", [same, low, last], Tensor(found.shape, "i32"))
    low = ops.reduce(low, kind, dims)
    left = tensor_of(low.type).shape
    low = ops.cast(ops.binary("add", low, ops.full(left, "i32", lowest)), "i64")
    low = ops.binary("and", low, ops.full(left, "i64", (1 << 32) - 1))
    return ops.binary("or", shifted(ops.cast(best, "i64"), "left", 32, ops), low)


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


def neutral(kind: str, dtype: np.dtype[Any]) -> float | int:
    """The value that a reduction starts from."""
    if kind in ("add", "mul"):
        return int(kind == "mul")
    if dtype.kind == "b":
        return kind == "min"
    if dtype.kind == "f":
        return np.inf if kind == "min" else -np.inf
    return np.iinfo(dtype).max if kind == "min" else np.iinfo(dtype).min


@conversion("gather")
def convert_gather(op: Op, ops: TensorOps) -> Sequence[ir.Value] | None:
    """Rows of one dimension of a table by single indices; a known index is a slice. Other gathers
    are blocks at tuples of indices."""
    table, indices = op.operands
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    shape, sizes = tensor_of(table.type).shape, attribute(op, "slice_sizes")
    axes = list(numbers.start_index_map)
    if len(axes) != 1 or list(numbers.collapsed_slice_dims) != axes:
        return gathered_blocks(op, ops)
    axis = axes[0]
    rows_whole = all(s == n for i, (s, n) in enumerate(zip(sizes, shape, strict=True)) if i != axis)
    if list(numbers.operand_batching_dims) or not rows_whole or shape[axis] == 0:
        return gathered_blocks(op, ops)
    result = tensor_of(op.results[0].type)
    rest = [i for i in range(len(shape)) if i != axis]
    offsets = list(numbers.offset_dims)
    batch = [i for i in range(result.rank) if i not in offsets]
    rows = gather_rows(ops.transpose(table, [axis, *rest]), indices, any(wrapped(op)), ops)
    rows = ops.reshape(rows, [*(result.shape[i] for i in batch), *(shape[i] for i in rest)])
    # Dimension i of the result is where `batch + offsets` has i.
    order = [*batch, *offsets]
    return [ops.transpose(rows, [order.index(i) for i in range(result.rank)])]


def gather_rows(table: ir.Value, indices: ir.Value, wrap: bool, ops: TensorOps) -> ir.Value:
    """Rows of `table` by all of `indices`, negative ones wrapped if that is said, as [n, ..]."""
    found, count = tensor_of(table.type), tensor_of(indices.type).count
    known = definition(indices)
    if known is not None and count == 1:
        row = int(rows_of(constant_array(known).flat[0], found.shape[0], wrap))
        rank = found.rank - 1
        return ops.cut(table, [row] + [0] * rank, [row + 1, *found.shape[1:]])
    flat = ops.reshape(indices, [count])
    if tensor_of(indices.type).element not in ("i32", "i64"):
        flat = ops.cast(flat, "i32")
    attributes = {"wrap": 1} if wrap else {}
    result = Tensor((count, *found.shape[1:]), found.element)
    return ops.emit("gather", [table, flat], result, **attributes)
