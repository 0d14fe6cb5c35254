"""Broadcasts: dimensions of the result that the operand lacks, or has with size 1, repeat.

Where the last dimension is the operand's own, tiles of repeated rows are moved like any strided
array, the source with stride 0. Where the last dimension repeats, each row is one value:

    for each tile of rows of this block:
      copy the values in; for each row: load the value (scalar unit), vector_dup the row; copy out
"""

from __future__ import annotations

import math
from typing import Any

from davinci.dialects.base import attribute
from davinci.isa.strides import Dim, merge_dims
from davinci.mlir import memref
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.fills import FILLABLE, fill
from davinci.passes.ascend_to_cce.moves import (
    Array,
    blocks_of_run,
    move,
    shape_of,
    whole,
)
from davinci.passes.ascend_to_cce.portions import LEAST_BYTES, cut, portion_parts
from davinci.passes.ascend_to_cce.tiles import Part, share_blocks, unflatten
from davinci.passes.builder import IndexLike, add, alloc, as_value, for_loop, op, row_major, subview


def lower_broadcast(operation: Any, target: Target) -> int:
    """dst[i] = src[i restricted to dims], index 0 where the operand has size 1."""
    source, result = operation.operands
    shape = shape_of(result)
    strides = [0] * len(shape)
    sizes = shape_of(source)
    for dim, size, stride in zip(
        attribute(operation, "dims"), sizes, row_major(sizes), strict=True
    ):
        strides[dim] = stride if size > 1 else 0
    array = Array(source, tuple(strides))
    *outer, last = merge_dims(shape, [strides, row_major(shape)]) or [Dim(1, (1, 1))]
    block = target.machine.vector.block_bytes // array.itemsize
    fits = target.machine.buffers.UB.bytes // array.itemsize // 4 >= last.size
    repeats = last.strides[0] == 0 and last.size >= block and str(array.element) in FILLABLE
    if repeats and not outer:
        value = memref.LoadOp(array.view([1], [1]), [as_value(0)]).result
        return share_blocks(fill(result, value, target), target)
    if repeats and fits:
        return share_blocks(fill_rows(array, result, outer, last.size, target), target)
    return share_blocks(move(array, whole(result), shape, target, operation), target)


def fill_rows(
    source: Array, result: Any, outer: list[Dim], length: int, target: Target
) -> list[Part]:
    """Rows of one value each; tiles are cut along the innermost of the dimensions `outer`."""
    block = target.machine.vector.block_bytes // source.itemsize
    room = target.machine.buffers.UB.bytes // source.itemsize
    *outside, inner = outer
    pieces = blocks_of_run(length, block)
    width = -(-length // block) * block
    times = math.prod(d.size for d in outside)
    least = -(-LEAST_BYTES // source.itemsize // width)
    cores = -(-target.cores // times)
    portions = cut(inner.size, 1, 1, room // width, least, cores)
    buffer = alloc([portions.largest, width], source.element, "UB")
    sizes = [d.size for d in outer]
    values = source.view(sizes, [d.strides[0] for d in outer])
    rows = whole(result).view([times, inner.size, length], [inner.size * length, length, 1])

    def build(repetition: IndexLike, start: IndexLike, count: int) -> None:
        at = [as_value(i) for i in unflatten(repetition, sizes[:-1])]
        with for_loop(0, count) as row:
            value = memref.LoadOp(values, [*at, as_value(add(start, row))]).result
            op("cce.vector_dup", [value, subview(buffer, [row, 0], [1, width], drop=[0])])
        for first, size in pieces:
            ub = subview(buffer, [0, 0], [count, size])
            op(
                "cce.copy",
                [ub, subview(rows, [repetition, start, first], [1, count, size], drop=[0])],
            )

    return portion_parts(portions, build, times)
