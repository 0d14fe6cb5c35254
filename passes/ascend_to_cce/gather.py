"""gather: rows of a table by index. The scalar unit reads the indices, copies move the rows.

for each tile of indices of this block:
  for each index: load it, clamp it to the table, copy the row GM -> UB
  copy the rows out
"""

from __future__ import annotations

import math
from typing import Any

from davinci.mlir import arith, ir, memref
from davinci.passes.ascend_to_cce import Target, lowering
from davinci.passes.ascend_to_cce.moves import MOVABLE, blocks_of_run, mark_scalar, shape_of, whole
from davinci.passes.ascend_to_cce.portions import LEAST_BYTES, cut, portion_parts
from davinci.passes.ascend_to_cce.tiles import Part, share_blocks
from davinci.passes.builder import IndexLike, add, alloc, as_value, for_loop, op, subview


@lowering("gather")
def lower_gather(operation: Any, target: Target) -> int:
    """dst[n, ..] = table[clamp(indices[n]), ..]."""
    table, indices, result = operation.operands
    entries, *row = shape_of(table)
    length, count = math.prod(row), shape_of(indices)[0]
    array = whole(table)
    rows = array.view([entries, length], [length, 1])
    out = whole(result).view([count, length], [length, 1])
    block = target.machine.vector.block_bytes // array.itemsize
    room = target.machine.buffers.UB.bytes // array.itemsize
    if length < block or length + block > room or str(array.element) not in MOVABLE:
        mark_scalar(operation)

        def build_scalar(index: IndexLike) -> None:
            entry = entry_of(indices, index, entries)
            with for_loop(0, length) as column:
                value = memref.LoadOp(rows, [entry, column]).result
                memref.StoreOp(value, out, [as_value(index), column])

        return share_blocks([Part(count, build_scalar)], target)
    pieces = blocks_of_run(length, block)
    width = sum(size for _, size in pieces)
    least = -(-LEAST_BYTES // array.itemsize // width)
    portions = cut(count, 1, 1, room // width, least, target.cores)
    buffers = [alloc([portions.largest, size], array.element, "UB") for _, size in pieces]

    def build(_: IndexLike, start: IndexLike, size: int) -> None:
        with for_loop(0, size) as index:
            entry = entry_of(indices, add(start, index), entries)
            for (first, wide), buffer in zip(pieces, buffers, strict=True):
                gm = subview(rows, [entry, first], [1, wide])
                op("cce.copy", [gm, subview(buffer, [index, 0], [1, wide])])
        for (first, wide), buffer in zip(pieces, buffers, strict=True):
            gm = subview(out, [start, first], [size, wide])
            op("cce.copy", [subview(buffer, [0, 0], [size, wide]), gm])

    return share_blocks(portion_parts(portions, build), target)


def entry_of(indices: Any, position: IndexLike, entries: int) -> Any:
    """The index at `position`, as a row of a table of `entries` rows."""
    value = memref.LoadOp(indices, [as_value(position)]).result
    index = arith.IndexCastOp(ir.IndexType.get(), value).result
    low = arith.MaxSIOp(index, as_value(0)).result
    return arith.MinSIOp(low, as_value(entries - 1)).result
