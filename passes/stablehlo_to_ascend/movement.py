"""Conversions of StableHLO operations that move or make data."""

from __future__ import annotations

from collections.abc import Sequence

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.mlir import Op, ir, stablehlo
from davinci.operators.gather import rows_of
from davinci.operators.tensors import Tensor
from davinci.passes.ascend.tensor_ops import TensorOps, constant_array, definition, full_value
from davinci.passes.stablehlo_to_ascend import conversion
from davinci.passes.stablehlo_to_ascend.blocks import dynamic_slice, gathered_blocks
from davinci.passes.stablehlo_to_ascend.element_gathers import BlockForm, gathered_elements
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
    """Rows of `table` by all of `indices`, negative ones wrapped if that is said, as [n, ..]; those
    of few elements as elements of rows in UB, where that pays."""
    found, count = tensor_of(table.type), tensor_of(indices.type).count
    known = definition(indices)
    if known is not None and count == 1:
        row = int(rows_of(constant_array(known).flat[0], found.shape[0], wrap))
        rank = found.rank - 1
        return ops.cut(table, [row] + [0] * rank, [row + 1, *found.shape[1:]])
    flat = ops.reshape(indices, [count])
    if tensor_of(indices.type).element not in ("i32", "i64"):
        flat = ops.cast(flat, "i32")
    result = Tensor((count, *found.shape[1:]), found.element)
    if known is None:
        block = (1, *found.shape[1:])
        form = BlockForm(found, block, count, (0,), (wrap,), (0,) * found.rank)
        taken = gathered_elements(table, ops.reshape(flat, [count, 1]), form, ops)
        if taken is not None:
            return ops.reshape(taken, result.shape)
    attributes = {"wrap": 1} if wrap else {}
    return ops.emit("gather", [table, flat], result, **attributes)
