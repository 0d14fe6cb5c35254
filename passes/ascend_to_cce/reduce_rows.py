"""Reductions of the last dimension: one result a row.

Rows are first folded in halves to what one repeat (add) or one block (the others) holds:

    row     |a a a a a a a a|b b b b b b b b|c c c|     halves are combined lane by lane
    folded  |a+b+c ...      |                           add: vcadd sums the lanes of every row
                                                        else: vcadd of one lane copies it exactly,
                                                        and whole vectors of such lanes combine

Other reduced dimensions come first: tiles of rows are combined, one after the other. So are chunks
of rows too long for UB. A row that is not a whole number of blocks brings its last block along once
more, ending where the row ends; the lanes that repeat earlier ones are left out. Sums and products
of f16 are accumulated in f32: tiles are converted when loaded, the results at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from davinci.dialects.cce.buffers import buffer_of
from davinci.mlir import ir, memref
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.moves import Array, copy_rounded, whole
from davinci.passes.ascend_to_cce.portions import (
    LEAST_BYTES,
    Portions,
    cut,
    in_blocks,
    portion_parts,
)
from davinci.passes.ascend_to_cce.reduction import (
    Axis,
    accumulator,
    combine,
    fold_columns,
    fold_rows,
    scalar_op,
    widened,
)
from davinci.passes.ascend_to_cce.tiles import Part, unflatten
from davinci.passes.ascend_to_cce.vector_program import scalar
from davinci.passes.builder import IndexLike, add, alloc, as_value, for_loop, mul, op, subview


@dataclass(frozen=True)
class Rows:
    """Rows of `length` elements.

    Attributes:
        outer: kept dimensions but the innermost.
        loops: reduced dimensions but the last.
        inner: the innermost kept dimension, along which tiles are cut.
    """

    outer: tuple[Axis, ...]
    loops: tuple[Axis, ...]
    inner: Axis
    length: int

    @staticmethod
    def of(kept: list[Axis], reduced: list[Axis], block: int) -> Rows | None:
        """The rows of a reduction whose last dimension is reduced; None if rows, or runs of
        results, are shorter than a block."""
        *loops, last = reduced
        *outer, inner = kept or [Axis(1, 0, True)]
        if last.size < block or (outer and inner.size < block):
            return None
        return Rows(tuple(outer), tuple(loops), inner, last.size)


@dataclass(frozen=True)
class Piece:
    """Columns start .. start + count * width of the rows, of which lanes from `lane` count."""

    start: int
    count: int
    width: int
    lane: int = 0


def pieces_of(length: int, block: int, most: int) -> list[Piece]:
    """Cuts a row in equal chunks of at most `most` columns, the rest, and the ragged last block."""
    width = min(length, most) // block * block
    count, rest = divmod(length, width)
    pieces = [Piece(0, count, width)]
    if rest >= block:
        pieces.append(Piece(count * width, 1, rest // block * block))
    if length % block:
        pieces.append(Piece(length - block, 1, block, block - length % block))
    return pieces


class RowReduction:
    """Builds the reduction of tiles of rows.

    Args:
        source: the GM array.
        result: the GM buffer, one element a row.
        kind: "add", "max", "min" or "mul".
    """

    def __init__(self, source: Array, result: Any, kind: str, rows: Rows, target: Target) -> None:
        self.kind, self.rows, self.source = kind, rows, source
        vector, itemsize = target.machine.vector, source.itemsize
        self.block = vector.block_bytes // itemsize
        self.held = accumulator(kind, source.element)
        self.wider = self.held != source.element
        held_bytes = itemsize * (2 if self.wider else 1)
        self.lanes = vector.repeat_bytes // held_bytes
        self.float = isinstance(source.element, ir.FloatType)
        self.times = math.prod(a.size for a in rows.outer)
        room = target.machine.buffers.UB.bytes // held_bytes
        self.pieces = pieces_of(rows.length, self.block, room // self.block // 4)
        self.portions = self._cut(target, room // self.row_elements())
        tall = -(-self.portions.largest // self.block) * self.block
        element = self.held
        self.tiles = [alloc([tall, p.width], element, "UB") for p in self.pieces]
        self.more = [
            alloc([tall, p.width], element, "UB") if self.steps(p) > 1 else None
            for p in self.pieces
        ]
        self.staging = [
            alloc([tall, p.width], source.element, "UB") if self.wider else None
            for p in self.pieces
        ]
        self.sums = [alloc([tall], element, "UB") for _ in self.pieces]
        self.by_lanes = self.float and kind != "add"
        self.lane_rows: list[Any] = [
            alloc([self.block, tall], element, "UB") if self.by_lanes else None for _ in self.pieces
        ]
        self.narrow = alloc([tall], source.element, "UB") if self.wider else None
        axes = [*rows.outer, *rows.loops, rows.inner, Axis(rows.length, 1, False)]
        self.gm = source.view([a.size for a in axes], [a.stride for a in axes])
        self.out = whole(result).view([self.times, rows.inner.size], [rows.inner.size, 1])

    def steps(self, piece: Piece) -> int:
        """Tiles that are combined for a piece."""
        return math.prod(a.size for a in self.rows.loops) * piece.count

    def row_elements(self) -> int:
        """Elements of UB, of the accumulator's type, that a row takes."""
        tiles = sum(p.width * (2 if self.steps(p) > 1 else 1) + 1 for p in self.pieces)
        staging = sum(-(-p.width // 2) for p in self.pieces) + 1 if self.wider else 0
        return tiles + staging + self.block * len(self.pieces)

    def _cut(self, target: Target, room: int) -> Portions:
        """Portions of rows. Results are copied in whole blocks: if the rows are not a whole number
        of them the last ones are done twice, unless they are few and in one tile."""
        total, block = self.rows.inner.size, self.block
        cores = -(-target.cores // self.times)
        least = LEAST_BYTES // self.source.itemsize // self.rows.length
        return in_blocks(cut(total, block, block, room, least, cores), block)

    def tile(self, repetition: IndexLike, start: IndexLike, rows: int) -> None:
        outside = unflatten(repetition, [a.size for a in self.rows.outer])
        for number in range(len(self.pieces)):
            self._load(number, outside, start, rows)
        results = [self._finish(number, rows) for number in range(len(self.pieces))]
        for other in results[1:]:
            combine(self.kind, subview(results[0], [0], [rows]), subview(other, [0], [rows]))
        place = subview(self.out, [repetition, start], [1, rows], drop=[0])
        total = subview(results[0], [0], [rows])
        if self.narrow is not None:
            narrow = subview(self.narrow, [0], [rows])
            self._fill_block(self.narrow, rows)
            op("cce.vconv", [total, narrow])
            total = narrow
        copy_rounded(total, place, self.block * self.source.itemsize)

    def _load(self, number: int, outside: list[IndexLike], start: IndexLike, rows: int) -> None:
        """Loads the rows of a piece, combined over the reduced dimensions and the chunks."""
        piece, staging = self.pieces[number], self.staging[number]
        sizes = [*(a.size for a in self.rows.loops), piece.count]
        drop = list(range(len(self.rows.outer) + len(self.rows.loops)))

        def load(buffer: Any, index: IndexLike) -> Any:
            *at, chunk = unflatten(index, sizes)
            column = add(piece.start, mul(chunk, piece.width))
            shape = [*[1] * len(drop), rows, piece.width]
            ub = subview(buffer, [0, 0], [rows, piece.width])
            loaded = subview(staging, [0, 0], [rows, piece.width]) if self.wider else None
            gm_rows = subview(self.gm, [*outside, *at, start, column], shape, drop=drop)
            op("cce.copy", [gm_rows, loaded if self.wider else ub])
            return widened(loaded, ub)

        total = load(self.tiles[number], 0)
        if self.steps(piece) > 1:
            with for_loop(1, self.steps(piece)) as index:
                combine(self.kind, total, load(self.more[number], index))

    def _finish(self, number: int, rows: int) -> Any:
        """Reduces the columns of a piece; returns a vector that holds a result for each row."""
        piece, tile = self.pieces[number], self.tiles[number]
        most = self.lanes if self.float and self.kind == "add" else self.block
        width = fold_columns(self.kind, tile, rows, piece.width, self.block, most)
        if self.by_lanes:
            lanes = self.lane_rows[number]
            result = subview(lanes, [0, 0], [1, ir.MemRefType(lanes.type).shape[1]], drop=[0])
        else:
            result = self.sums[number]
        self._fill_block(result, rows)
        folded = subview(tile, [0, 0], [rows, width])
        if not self.float:
            self._finish_by_scalars(folded, result, rows, piece.lane)
        elif not self.by_lanes:
            lanes = {"first_lane": piece.lane, "lanes": width - piece.lane} if piece.lane else {}
            op("cce.vcadd", [folded, subview(result, [0], [rows])], **lanes)
        else:
            for lane in range(piece.lane, width):
                place = subview(lanes, [lane - piece.lane, 0], [1, rows], drop=[0])
                op("cce.vcadd", [folded, place], first_lane=lane, lanes=1)
            fold_rows(self.kind, lanes, width - piece.lane, rows)
        return result

    def _fill_block(self, results: Any, rows: int) -> None:
        """Gives the lanes of a block that `rows` results leave over a value: blocks are copied."""
        if rows % self.block:
            kind = buffer_of(results).dtype
            op("cce.vector_dup", [scalar(kind, 0), subview(results, [0], [self.block])])

    def _finish_by_scalars(self, folded: Any, result: Any, rows: int, first: int) -> None:
        """Combines the lanes that are left of every row: no instruction does it for integers."""
        with for_loop(0, rows) as row:
            value = memref.LoadOp(folded, [row, as_value(first)]).result
            for lane in range(first + 1, self.block):
                more = memref.LoadOp(folded, [row, as_value(lane)]).result
                value = scalar_op(self.kind, value, more)
            memref.StoreOp(value, result, [row])


def reduce_rows(source: Array, result: Any, kind: str, rows: Rows, target: Target) -> list[Part]:
    """The pieces of work of a reduction over the last dimension."""
    reduction = RowReduction(source, result, kind, rows, target)
    return portion_parts(reduction.portions, reduction.tile, reduction.times)
