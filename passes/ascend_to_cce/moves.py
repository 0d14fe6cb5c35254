"""Data movement between two GM arrays of one shape with any strides, through UB.

    dst[i0 .. ik] = src[i0 .. ik]      each operand has its own strides, 0 (a repeat) in the source

Dimensions are merged as far as both arrays allow. The innermost contiguous run goes through UB in
whole 32-byte blocks; where it is not a whole number of blocks, its last block is moved once more,
ending where the run ends, so nothing beside the run is read or written:

    run  |#### #### ####|##       ->      |#### #### ####|
                                                    |## ##|

Shorter runs are moved by words of 16 bits (`davinci.schedule.word_moves`); what has no way there is
left to the scalar unit, which the kernel then reports as its unit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from davinci.dialects.cce import build as cce
from davinci.dialects.cce.buffers import buffer_of
from davinci.isa.strides import Dim, merge_dims, split_run
from davinci.mlir import ir, memref
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.portions import LEAST_BYTES, cut, portion_parts
from davinci.passes.ascend_to_cce.tiles import Part, unflatten
from davinci.passes.ascend_to_cce.word_moves import move_words
from davinci.passes.builder import (
    IndexLike,
    add,
    alloc,
    as_value,
    for_loop,
    mul,
    op,
    restride,
    row_major,
    subview,
)
from davinci.schedule.word_moves import Box, Move

MOVABLE = frozenset({"f16", "f32", "i8", "ui8", "i16", "i32", "i64"})
"""Element types that copies on the device take; others go through the scalar unit."""


@dataclass(frozen=True)
class Array:
    """A strided array in a GM buffer: strides and offset in elements."""

    buffer: Any
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def element(self) -> Any:
        return ir.MemRefType(self.buffer.type).element_type

    @property
    def itemsize(self) -> int:
        return max(1, int(self.element.width) // 8)

    def view(self, shape: Sequence[int], strides: Sequence[int]) -> Any:
        """The array seen with other dimensions."""
        return restride(self.buffer, shape, strides, self.offset)


def shape_of(buffer: Any) -> list[int]:
    return list(ir.MemRefType(buffer.type).shape)


def whole(buffer: Any) -> Array:
    """A GM buffer as an array of its own shape."""
    return Array(buffer, row_major(shape_of(buffer)))


def move(
    source: Array, destination: Array, shape: Sequence[int], target: Target, kernel: Any
) -> list[Part]:
    """The pieces of work that copy, for `share_blocks`.

    Args:
        shape: of both arrays, without empty dimensions.
        kernel: the ascend op being lowered, whose kernel is marked scalar if it becomes that.
    """
    dims = merge_dims(shape, [source.strides, destination.strides])
    outer, run = split_run(dims)
    block = target.machine.vector.block_bytes // source.itemsize
    if run < block and is_whole(source, run) and is_whole(destination, run):
        return [Part(1, lambda _: copy_small(source.buffer, destination.buffer, run))]
    if run < block or str(source.element) not in MOVABLE:
        found = move_by_words(source, destination, dims, target)
        return found or move_by_scalars(source, destination, dims, kernel)
    room = target.machine.buffers.UB.bytes // source.itemsize
    if not outer or run + block > room:
        return move_runs(source, destination, outer, run, target)
    return move_tiles(source, destination, outer, run, target)


def is_whole(array: Array, run: int) -> bool:
    """Whether a contiguous run is all of a buffer that can be copied."""
    return math.prod(shape_of(array.buffer)) == run and str(array.element) in MOVABLE


def copy_small(source: Any, destination: Any, size: int) -> None:
    """Less than a block, with what lies behind it in its block."""
    held = alloc([size], ir.MemRefType(source.type).element_type, "UB")
    cce.copy(restride(source, [size], [1]), held, round_up=True)
    cce.copy(held, restride(destination, [size], [1]), round_up=True)


def move_by_words(
    source: Array, destination: Array, dims: Sequence[Dim], target: Target
) -> list[Part]:
    """Short runs to all of the destination; none where it is not all, or there is no way."""
    shape = tuple(d.size for d in dims) or (1,)
    strides = tuple(d.strides[0] for d in dims) or (1,)
    places = tuple(d.strides[1] for d in dims) or (1,)
    whole_result = math.prod(shape) == math.prod(shape_of(destination.buffer))
    if not whole_result or places != row_major(shape) or min(strides) < 0:
        return []
    zeros, ones = (0,) * len(shape), (1,) * len(shape)
    total = math.prod(shape_of(source.buffer))
    box = Box(zeros, shape, ones, strides, source.offset, total)
    work = Move(shape, (box,), source.itemsize)
    return move_words(work, [source.buffer], destination.buffer, target)


def blocks_of_run(run: int, block: int) -> list[tuple[int, int]]:
    """(start, size) of the whole blocks of a run and, where it is ragged, of its last block."""
    whole_blocks = run // block * block
    return [(0, whole_blocks)] + ([(run - block, block)] if run > whole_blocks else [])


def move_runs(
    source: Array, destination: Array, outer: list[Dim], run: int, target: Target
) -> list[Part]:
    """Long runs: each is cut in portions, which the blocks share."""
    block = target.machine.vector.block_bytes // source.itemsize
    room = target.machine.buffers.UB.bytes // source.itemsize - block
    least = LEAST_BYTES // source.itemsize
    portions = cut(run, block, block, room, least, target.cores)
    buffer = alloc([-(-portions.largest // block) * block], source.element, "UB")
    last = alloc([block], source.element, "UB") if portions.tail % block else None
    sizes = [d.size for d in outer]
    views = views_of(source, destination, outer, run)
    ones, drop = [1] * len(sizes), list(range(len(sizes)))

    def build(repetition: IndexLike, start: IndexLike, size: int) -> None:
        for first, count in blocks_of_run(size, block):
            ub = subview(buffer, [0], [count]) if first == 0 else last
            at = [*unflatten(repetition, sizes), add(start, first)]
            piece = [subview(v, at, [*ones, count], drop=drop) for v in views]
            op("cce.copy", [piece[0], ub])
            op("cce.copy", [ub, piece[1]])

    return portion_parts(portions, build, math.prod(sizes))


def views_of(source: Array, destination: Array, outer: list[Dim], run: int) -> list[Any]:
    """Both arrays with the dimensions `outer` and the contiguous run."""
    sizes = [*(d.size for d in outer), run]
    return [
        array.view(sizes, [*(d.strides[i] for d in outer), 1])
        for i, array in enumerate((source, destination))
    ]


def move_tiles(
    source: Array, destination: Array, outer: list[Dim], run: int, target: Target
) -> list[Part]:
    """Many runs: tiles of several runs, cut along one dimension, which the blocks share."""
    block = target.machine.vector.block_bytes // source.itemsize
    pieces = blocks_of_run(run, block)
    sizes = [d.size for d in outer]
    row = sum(count for _, count in pieces)
    room = target.machine.buffers.UB.bytes // source.itemsize // row
    share = -(-math.prod(sizes) // target.cores)
    wanted = max(1, min(room, max(share, LEAST_BYTES // source.itemsize // row)))
    level, chunk = tile_of(sizes, wanted)
    inner = sizes[level + 1 :]
    drop = list(range(level))
    buffers = [alloc([chunk, *inner, count], source.element, "UB") for _, count in pieces]
    views = views_of(source, destination, outer, run)

    def part(first: int, count: int, rows: int) -> Part:
        """`count` tiles of `rows` along the cut dimension from `first`, for all outer indices."""

        def build(index: IndexLike) -> None:
            *outside, position = unflatten(index, [*sizes[:level], count])
            at = [*outside, add(first, mul(position, rows)), *[0] * len(inner)]
            for load in (True, False):
                for (start, width), buffer in zip(pieces, buffers, strict=True):
                    tile = [rows, *inner, width]
                    shape = [*[1] * level, *tile]
                    ub = buffer if rows == chunk else subview(buffer, [0] * len(tile), tile)
                    gm = subview(views[0 if load else 1], [*at, start], shape, drop=drop)
                    op("cce.copy", [gm, ub] if load else [ub, gm])

        return Part(math.prod(sizes[:level]) * count, build)

    full, rest = divmod(sizes[level], chunk)
    parts = [part(0, full, chunk)] if full else []
    return parts + ([part(full * chunk, 1, rest)] if rest else [])


def tile_of(sizes: Sequence[int], wanted: int) -> tuple[int, int]:
    """The dimension to cut and how much of it a tile takes, so that it has at most `wanted` rows.

    >>> tile_of([4, 12, 128], 300)
    (1, 2)
    """
    rows = 1
    for level in reversed(range(len(sizes))):
        if rows * sizes[level] > wanted or level == 0:
            tiles = -(-sizes[level] // max(1, wanted // rows))
            return level, -(-sizes[level] // tiles)
        rows *= sizes[level]
    raise ValueError("no dimensions")


def move_by_scalars(
    source: Array, destination: Array, dims: Sequence[Dim], kernel: Any
) -> list[Part]:
    """Element by element on the scalar unit; the outermost dimension is shared by the blocks."""
    mark_scalar(kernel)
    sizes = [d.size for d in dims] or [1]
    views = [
        array.view(sizes, [d.strides[i] for d in dims] or [1])
        for i, array in enumerate((source, destination))
    ]

    def build(indices: list[IndexLike]) -> None:
        if len(indices) < len(sizes):
            with for_loop(0, sizes[len(indices)]) as index:
                build([*indices, index])
            return
        at = [as_value(i) for i in indices]
        memref.StoreOp(memref.LoadOp(views[0], at).result, views[1], at)

    return [Part(sizes[0], lambda index: build([index]))]


def copy_rounded(source: Any, destination: Any, block_bytes: int) -> None:
    """Copies one contiguous run; in whole blocks if it does not end at one.

    On the side of GM the run must then end where its buffer does, so that only padding is touched.
    """
    buffer = buffer_of(source)
    ragged = buffer.size * buffer.itemsize % block_bytes != 0
    attributes: dict[str, Any] = {"round_up": True} if ragged else {}
    op("cce.copy", [source, destination], **attributes)


def mark_scalar(operation: Any) -> None:
    """Says that the scalar unit does the kernel's work; reports count it."""
    parent = operation.parent
    while parent.name != "func.func":
        parent = parent.parent
    parent.attributes["ascend.unit"] = ir.StringAttr.get("scalar")
