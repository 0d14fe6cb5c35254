"""fractalize and defractalize: row-major matrices to Nz and back, through UB.

    dst[i][j][k][l] = src[j * 16 + k][i * c + l]           c = 16 (16- and 32-bit), 32 (8-bit)

A piece is p strips of 16 rows by w fractal columns. 16-bit types go through scatter_vnchwconv,
which transposes 16 x 16 blocks, in one of two ways (`fractalize` option; both are the source's):

    naive     p = 1: gather the blocks of a strip, transposed; transpose each back; w blocks leave
    improved  as many strips as fit UB and leave no block idle. Row r of the piece is (a, b) with
              r = a * p + b, so that one instruction of repeat p * w gathers
              S[a][b][t][l] -> T[b][t][l][a], and one a strip scatters
              T[b][t][l][a] -> R[t][a][b][l], which is Nz: p blocks leave per burst

Defractalization runs the same way backwards. Other types move by copies whose stride in UB changes
the layout. Padding is zero: rows are filled before the load; columns behind a ragged row become
rows of T, where a fill reaches them, or, without T, are left out when the last columns move to a
buffer of zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from davinci.mlir import arith, ir
from davinci.passes.ascend_to_cce import Target, lowering
from davinci.passes.ascend_to_cce.matrix_rows import Piece, load_rows, store_rows
from davinci.passes.ascend_to_cce.tiles import (
    Part,
    Segment,
    even_cut,
    segments,
    share_blocks,
    unflatten,
)
from davinci.passes.builder import (
    IndexLike,
    add,
    alloc,
    mul,
    op,
    reshaped,
    restride,
    row_major,
    subview,
)
from davinci.passes.pipeline.base import fail
from davinci.units import BLOCK_BYTES, ceil_div
from davinci.units import FRACTAL_SIDE as SIDE

SPLIT_BYTES = 16384
"""Smallest piece worth cutting in two: below, a transfer is shorter than its start."""


@lowering("fractalize")
def lower_fractalize(operation: Any, target: Target) -> int:
    """[.., m, n] to Nz; returns how many blocks can share the work."""
    source, result = operation.operands
    return Layout(operation, source, result, target).fractalize()


@lowering("defractalize")
def lower_defractalize(operation: Any, target: Target) -> int:
    """Nz to [.., m, n]; returns how many blocks can share the work."""
    source, result = operation.operands
    return Layout(operation, result, source, target).defractalize()


@dataclass(frozen=True)
class Tile:
    """A piece: where it starts, in fractals, and its size, `rows` x `width` elements."""

    batch: IndexLike
    strip: IndexLike
    column: IndexLike
    rows: int
    width: int
    c: int

    @property
    def strips(self) -> int:
        return ceil_div(self.rows, SIDE)

    @property
    def columns(self) -> int:
        return ceil_div(self.width, self.c)


class Layout:
    """Builds the kernel that moves between a matrix and its Nz form."""

    def __init__(self, operation: Any, matrix: Any, nz: Any, target: Target) -> None:
        kind = ir.MemRefType(matrix.type)
        self.operation, self.target, self.element = operation, target, kind.element_type
        *lead, self.m, self.n = kind.shape
        self.batch = math.prod(lead)
        *_, columns, strips, _, self.c = ir.MemRefType(nz.type).shape
        self.strips, self.columns = strips, columns
        self.itemsize = int(self.element.width) // 8
        self.transposes = self.itemsize == 2
        self.matrix = reshaped(matrix, [self.batch, self.m, self.n])
        self.nz = reshaped(nz, [self.batch, columns, strips, SIDE, self.c])
        if self.itemsize == 1 and (self.m % SIDE or self.n % self.c):
            fail(
                operation,
                "pads 8-bit elements, which the vector unit cannot fill",
                found=f"{self.m} x {self.n}",
                expected=f"multiples of {SIDE} x {self.c}",
                hint="pad the matrix before",
            )
        self.tile_strips, self.tile_columns = self.choose_tile()
        self.splits = self.has_one_piece_a_block()

    def choose_tile(self) -> tuple[int, int]:
        """Strips and fractal columns of a piece: what fits UB and one instruction, shared evenly.

        16-bit pieces need two buffers and one gather of repeat p * w; others one buffer and a
        column of zeros. Blocks without work make the pieces smaller: first in strips, then in
        columns, unless a ragged row has to be written from left to right by one block.
        """
        machine = self.target.machine
        fractals = machine.buffer("UB").bytes // (SIDE * self.c * self.itemsize)
        most = min(machine.vector.max_repeat, fractals // 2) if self.transposes else fractals
        spare = 0 if self.transposes else 1
        columns = even_cut(self.columns, most - spare)
        strips = min(self.strips, most // (columns + spare))
        if self.target.fractalize == "naive":
            strips = 1
        pieces = self.batch * ceil_div(self.columns, columns)
        strips = even_cut(self.strips, min(strips, max(1, self.strips * pieces // self.cores)))
        pieces = self.batch * ceil_div(self.strips, strips)
        if pieces < self.cores and self.n % self.c == 0:
            columns = min(columns, max(1, self.columns * pieces // self.cores))
        return strips, columns

    def has_one_piece_a_block(self) -> bool:
        """Whether pieces are cut in two halves with buffers of their own.

        Then one half is loaded while the other is stored. Blocks with several pieces fill UB with
        each instead, and rows that must be written from left to right stay whole.
        """
        pieces = self.batch * ceil_div(self.strips, self.tile_strips)
        pieces *= ceil_div(self.columns, self.tile_columns)
        size = self.tile_strips * self.tile_columns * SIDE * self.c * self.itemsize
        return (
            self.target.fractalize == "improved"
            and pieces <= self.cores
            and size >= SPLIT_BYTES
            and self.n % self.c == 0
        )

    @property
    def cores(self) -> int:
        return self.target.cores

    def row_segments(self) -> list[Segment]:
        return segments(self.m, self.tile_strips * SIDE)

    def column_segments(self) -> list[Segment]:
        return segments(self.n, self.tile_columns * self.c)

    def fractalize(self) -> int:
        """Every piece is a unit of work."""
        buffers = self.buffers()
        move = self.scatter_out if self.transposes else self.copy_out
        parts = []
        for rows in self.row_segments():
            for columns in self.column_segments():
                parts.append(self.pieces(rows, columns, move, buffers))
        return max(1, share_blocks(parts, self.target))

    def defractalize(self) -> int:
        """Every piece is a unit of work; if rows are ragged, the whole width of a strip is.

        Then the last columns go first: what they spill onto the next row's head is corrected by
        the pieces after them.
        """
        buffers = self.buffers()
        move = self.gather_in if self.transposes else self.copy_in
        parts = []
        cuts = self.column_segments()
        ragged = self.n * self.itemsize % BLOCK_BYTES != 0
        for rows in self.row_segments():

            def strip(i: IndexLike, rows: Segment = rows) -> None:
                batch, r = unflatten(i, (self.batch, rows.count))
                for columns in reversed(cuts):
                    for t in range(columns.count):
                        for turn, tile in enumerate(self.tiles(batch, rows, r, columns, t)):
                            move(tile, *buffers[turn])

            if ragged:
                parts.append(Part(self.batch * rows.count, strip))
                continue
            for columns in cuts:
                parts.append(self.pieces(rows, columns, move, buffers))
        return max(1, share_blocks(parts, self.target))

    def pieces(
        self, rows: Segment, columns: Segment, move: Callable[..., None], buffers: Any
    ) -> Part:
        """The pieces of two segments, each a unit of work of its own."""

        def build(i: IndexLike) -> None:
            batch, r, t = unflatten(i, (self.batch, rows.count, columns.count))
            for turn, tile in enumerate(self.tiles(batch, rows, r, columns, t)):
                move(tile, *buffers[turn])

        return Part(self.batch * rows.count * columns.count, build)

    def tiles(
        self, batch: IndexLike, rows: Segment, r: IndexLike, columns: Segment, t: IndexLike
    ) -> list[Tile]:
        """Piece (r, t) of two segments, in halves if pieces are cut.

        Only a remainder, which is alone in its segment, has fractals filled in part.
        """
        strip = add(rows.first // SIDE, mul(r, rows.size // SIDE))
        column = add(columns.first // self.c, mul(t, columns.size // self.c))
        whole = Tile(batch, strip, column, rows.size, columns.size, self.c)
        if not self.splits or whole.columns == 1:
            return [whole]
        first = ceil_div(whole.columns, 2)
        rest = columns.size - first * self.c
        return [
            replace(whole, width=first * self.c),
            replace(whole, column=add(column, first), width=rest),
        ]

    def buffers(self) -> list[list[Any]]:
        """UB buffers of a piece or of each half: two for transposing, else one for the rows and,
        where columns are ragged, one for the last of them."""
        first = ceil_div(self.tile_columns, 2)
        sizes = [first, self.tile_columns - first] if self.splits else [self.tile_columns]
        fractals = self.tile_strips * SIDE * self.c
        return [self.buffer_set(fractals, columns) for columns in sizes if columns]

    def buffer_set(self, column: int, columns: int) -> list[Any]:
        rows = alloc([column * columns], self.element, "UB")
        if self.transposes:
            return [rows, alloc([column * columns], self.element, "UB")]
        return [rows, alloc([column], self.element, "UB") if self.n % self.c else None]

    def scatter_out(self, tile: Tile, ub: Any, transposed: Any) -> None:
        """Matrix to Nz by two rounds of vnchwconv; `ub` holds first the rows, then the result."""
        p, w = tile.strips, tile.columns
        self.load(tile, ub)
        op(
            "cce.vnchwconv",
            [
                lanes_view(ub, 0, p * w, p * w * SIDE, SIDE),
                lanes_view(transposed, 0, p * w, SIDE, SIDE * SIDE),
            ],
        )
        if tail := tile.width % self.c:
            garbage = restride(
                transposed,
                [p, (SIDE - tail) * SIDE],
                [w * SIDE * SIDE, 1],
                ((w - 1) * SIDE + tail) * SIDE,
            )
            self.fill(garbage)
        for blocks, fractals in strip_views(transposed, ub, p, w):
            op("cce.vnchwconv", [blocks, fractals])
        nz = restride(ub, [w, p, SIDE, SIDE], row_major([w, p, SIDE, SIDE]))
        op("cce.copy", [nz, self.nz_part(tile)])

    def gather_in(self, tile: Tile, ub: Any, transposed: Any) -> None:
        """Nz to matrix: `scatter_out` backwards."""
        p, w = tile.strips, tile.columns
        nz = restride(ub, [w, p, SIDE, SIDE], row_major([w, p, SIDE, SIDE]))
        op("cce.copy", [self.nz_part(tile), nz])
        for blocks, fractals in strip_views(transposed, ub, p, w):
            op("cce.vnchwconv", [fractals, blocks])
        op(
            "cce.vnchwconv",
            [
                lanes_view(transposed, 0, p * w, SIDE, SIDE * SIDE),
                lanes_view(ub, 0, p * w, p * w * SIDE, SIDE),
            ],
        )
        store_rows(rows_view(ub, tile), self.piece(tile))

    def copy_out(self, tile: Tile, ub: Any, zeros: Any) -> None:
        """Matrix to Nz by copies that read UB at a stride."""
        self.load(tile, ub)
        tail = tile.width % self.c
        whole = tile.columns - (1 if tail else 0)
        if whole:
            source = subview(nz_view(ub, tile), [0, 0, 0, 0], [whole, tile.strips, SIDE, self.c])
            op("cce.copy", [source, self.nz_part(tile, 0, whole)])
        if tail:
            shape = [tile.strips * SIDE, self.c]
            last = restride(zeros, shape, [self.c, 1])
            self.fill(restride(zeros, [math.prod(shape)], [1]))
            self.keep(
                subview(rows_view(ub, tile), [0, whole * self.c], [shape[0], tail]),
                subview(last, [0, 0], [shape[0], tail]),
            )
            fractals = [1, tile.strips, SIDE, self.c]
            op(
                "cce.copy",
                [restride(zeros, fractals, row_major(fractals)), self.nz_part(tile, whole, 1)],
            )

    def copy_in(self, tile: Tile, ub: Any, zeros: Any) -> None:
        """Nz to matrix by a copy that writes UB at a stride."""
        del zeros
        op("cce.copy", [self.nz_part(tile), nz_view(ub, tile)])
        store_rows(rows_view(ub, tile), self.piece(tile))

    def load(self, tile: Tile, ub: Any) -> None:
        """The rows of a tile to UB, zeros below them.

        vnchwconv reads whole blocks, so those that `load_rows` fills in part are written before.
        """
        width = tile.columns * self.c
        if missing := tile.strips * SIDE - tile.rows:
            self.fill(restride(ub, [missing * width], [1], tile.rows * width))
        piece = self.piece(tile)
        careful = piece.careful_rows()
        if careful and self.transposes:
            start = (tile.rows - careful + 1) * width - self.c
            self.fill(restride(ub, [careful, self.c], [width, 1], start))
        load_rows(piece, rows_view(ub, tile))

    def piece(self, tile: Tile) -> Piece:
        row, column = mul(tile.strip, SIDE), mul(tile.column, self.c)
        return Piece(self.matrix, tile.batch, row, column, tile.rows, tile.width)

    def nz_part(self, tile: Tile, first: int = 0, count: int = 0) -> Any:
        """Fractal columns `first`.. of a tile in GM, [count, strips, 16, c]; count 0: all."""
        shape = [1, count or tile.columns, tile.strips, SIDE, self.c]
        start = [tile.batch, add(tile.column, first), tile.strip, 0, 0]
        return subview(self.nz, start, shape, drop=[0])

    def constant(self, value: int) -> Any:
        """A scalar of the element type."""
        if isinstance(self.element, ir.IntegerType):
            return arith.ConstantOp(self.element, value).result
        return arith.ConstantOp(self.element, float(value)).result

    def fill(self, buffer: Any) -> None:
        """Zeros."""
        op("cce.vector_dup", [self.constant(0), buffer])

    def keep(self, source: Any, zeros: Any) -> None:
        """Moves the lanes of `source` onto zeros; by arithmetic, because only that takes a mask."""
        if isinstance(self.element, ir.IntegerType):
            op("cce.vadd", [source, zeros, zeros])
        else:
            op("cce.vmuls", [source, self.constant(1), zeros])


def lanes_view(buffer: Any, offset: int, blocks: int, stride: int, block_stride: int) -> Any:
    """A [16, blocks, 16] operand of vnchwconv: strides of its first two dimensions."""
    return restride(buffer, [SIDE, blocks, SIDE], [stride, block_stride, 1], offset)


def strip_views(transposed: Any, fractals: Any, p: int, w: int) -> Iterator[tuple[Any, Any]]:
    """Views of T [p][w][16 l][16 a] as [l, ., a] and of R [w][16 a][p][16 l] as [a, ., l].

    One pair an instruction; each takes one strip, or one column where there are fewer of those.
    """
    square = SIDE * SIDE
    if p <= w:
        for b in range(p):
            blocks = lanes_view(transposed, b * w * square, w, SIDE, square)
            yield blocks, lanes_view(fractals, b * SIDE, w, p * SIDE, p * square)
        return
    for t in range(w):
        blocks = lanes_view(transposed, t * square, p, SIDE, w * square)
        yield blocks, lanes_view(fractals, t * p * square, p, p * SIDE, SIDE)


def rows_view(ub: Any, tile: Tile) -> Any:
    """A buffer as the rows of a tile, [16 p, w c]."""
    shape = [tile.strips * SIDE, tile.columns * tile.c]
    return restride(ub, shape, row_major(shape))


def nz_view(ub: Any, tile: Tile) -> Any:
    """The rows of a tile in UB, read in Nz order: [w, p, 16, c]."""
    width = tile.columns * tile.c
    shape = [tile.columns, tile.strips, SIDE, tile.c]
    return restride(ub, shape, [tile.c, SIDE * width, width, 1])
