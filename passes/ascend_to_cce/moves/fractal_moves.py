"""Builds moves between rows and fractals, see `davinci.schedule.moves.fractal_moves`.

Padding is zero: rows are filled before the load; columns behind a ragged row become rows of the
transposed squares, where a fill reaches them, or, without those, are left out when the last columns
move to a buffer of zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from davinci.mlir import arith, ir
from davinci.passes.ascend_to_cce.moves.matrix_rows import MatrixPiece, load_rows, store_rows
from davinci.passes.ascend_to_cce.moves.transfers import Arrays, element_of
from davinci.passes.ascend_to_cce.products.dense_runs import (
    DenseRun,
    build_dense,
    load_run,
    scratch_of,
    store_run,
)
from davinci.passes.ascend_to_cce.tiles import (
    AlikeWork,
    TileSegment,
    segments,
    unflatten,
    with_slots,
)
from davinci.passes.ascend_to_cce.vector.program import element_type
from davinci.passes.builder import (
    IndexLike,
    add,
    alloc,
    mul,
    op,
    reshaped,
    restride,
    subview,
    viewed,
)
from davinci.schedule.moves.fractal_moves import FractalMove
from davinci.schedule.products.dense_rows import scratch_bytes
from davinci.schedule.vector.steps import RESULT, SOURCE, BufferSteps
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div, row_major


@dataclass(frozen=True)
class FractalPiece:
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


class FractalBuilder:
    """Builds the pieces of one move."""

    def __init__(self, way: FractalMove, arrays: Arrays, result: ir.Value) -> None:
        self.way = way
        matrix, nz = arrays[way.source], result
        if way.back:
            matrix, nz = nz, matrix
        self.element = element_of(matrix)
        strips, columns = ceil_div(way.m, SIDE), ceil_div(way.n, way.c)
        self.matrix = reshaped(matrix, [way.batch, way.m, way.n])
        self.nz = reshaped(nz, [way.batch, columns, strips, SIDE, way.c])

    def parts(self) -> list[AlikeWork]:
        """Every piece is a unit of work; on the way back, if rows are ragged, the whole width of a
        strip is.

        Then the last columns go first: what they spill onto the next row's head is corrected by
        the pieces after them.
        """
        way = self.way
        moves: tuple[Callable[..., None], Callable[..., None]] = self.copy_out, self.copy_in
        if way.transposes:
            moves = self.scatter_out, self.gather_in
        elif way.dense:
            moves = self.part_run, self.join_run
        move = moves[way.back]
        cuts = segments(way.n, way.columns * way.c)
        parts = []
        for rows in segments(way.m, way.strips * SIDE):

            def strip(i: IndexLike, rows: TileSegment = rows) -> None:
                batch, r = unflatten(i, (way.batch, rows.count))
                buffers = self._buffers()
                for columns in reversed(cuts):
                    for t in range(columns.count):
                        for turn, tile in enumerate(self.tiles(batch, rows, r, columns, t)):
                            move(tile, *buffers[turn])

            if way.whole_strips:
                parts.append(AlikeWork(way.batch * rows.count, strip))
                continue
            for columns in cuts:
                parts.append(self.pieces(rows, columns, move))
        return parts

    def pieces(
        self, rows: TileSegment, columns: TileSegment, move: Callable[..., None]
    ) -> AlikeWork:
        """The pieces of two segments, each a unit of work of its own."""

        def build(i: IndexLike) -> None:
            batch, r, t = unflatten(i, (self.way.batch, rows.count, columns.count))
            buffers = self._dense_buffers() if self.way.dense else self._buffers()
            for turn, tile in enumerate(self.tiles(batch, rows, r, columns, t)):
                move(tile, *buffers[turn])

        return AlikeWork(self.way.batch * rows.count * columns.count, build)

    def tiles(
        self, batch: IndexLike, rows: TileSegment, r: IndexLike, columns: TileSegment, t: IndexLike
    ) -> list[FractalPiece]:
        """Piece (r, t) of two segments, in halves if pieces are cut.

        Only a remainder, which is alone in its segment, has fractals filled in part.
        """
        strip = add(rows.first // SIDE, mul(r, rows.size // SIDE))
        column = add(columns.first // self.way.c, mul(t, columns.size // self.way.c))
        whole = FractalPiece(batch, strip, column, rows.size, columns.size, self.way.c)
        if not self.way.halves or whole.columns == 1:
            return [whole]
        first = ceil_div(whole.columns, 2)
        rest = columns.size - first * self.way.c
        return [
            replace(whole, width=first * self.way.c),
            replace(whole, column=add(column, first), width=rest),
        ]

    def _dense_buffers(self) -> list[list[ir.Value]]:
        """UB buffers of a piece of dense rows: a run, and the fractals."""
        rows, each = self.way.rows, self.way.itemsize
        byte = ir.IntegerType.get_signless(8)
        sizes = rows.rows * rows.width, self.way.pitch * self.way.columns
        made = (alloc([size * each], byte, "UB") for size in sizes)
        return [[with_slots(buffer, self.way.slots) for buffer in made]]

    def _buffers(self) -> list[list[ir.Value | None]]:
        """UB buffers of a piece or of each half: two for transposing, else one for the rows and,
        where columns are ragged, one for the last of them."""
        way = self.way
        first = ceil_div(way.columns, 2)
        sizes = [first, way.columns - first] if way.halves else [way.columns]
        fractals = way.strips * SIDE * way.c
        return [self.buffer_set(fractals, columns) for columns in sizes if columns]

    def buffer_set(self, column: int, columns: int) -> list[ir.Value | None]:
        rows = self._buffer(column * columns)
        if self.way.transposes:
            return [rows, self._buffer(column * columns)]
        ragged = self.way.n % self.way.c
        zeros = alloc([column], self.element, "UB") if ragged else None
        if not self.way.rearranges:
            return [rows, zeros, None]
        return [rows, zeros, self._buffer(self.way.pitch * columns)]

    def _buffer(self, elements: int) -> ir.Value:
        """A buffer of which each piece in turn has its own."""
        return with_slots(alloc([elements], self.element, "UB"), self.way.slots)

    def scatter_out(self, tile: FractalPiece, ub: ir.Value, transposed: ir.Value) -> None:
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
        if tail := tile.width % self.way.c:
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

    def gather_in(self, tile: FractalPiece, ub: ir.Value, transposed: ir.Value) -> None:
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

    def part_run(self, tile: FractalPiece, run: ir.Value, fractals: ir.Value) -> None:
        """Ragged rows to Nz: a run to UB, parted there; below the rows it is zeros."""
        rows = replace(self.way, strips=tile.strips).rows
        load_run(self.run(tile), viewed(run, [rows.rows * rows.width], self.element))
        self.rearrange(rows.parted(), run, fractals)
        op("cce.copy", [self.held(tile, fractals), self.nz_part(tile)])

    def join_run(self, tile: FractalPiece, run: ir.Value, fractals: ir.Value) -> None:
        """Nz to ragged rows: `part_run` backwards."""
        rows = replace(self.way, strips=tile.strips).rows
        op("cce.copy", [self.nz_part(tile), self.held(tile, fractals)])
        self.rearrange(rows.packed(), fractals, run)
        store_run(viewed(run, [rows.rows * rows.width], self.element), self.run(tile))

    def rearrange(self, steps: BufferSteps, source: ir.Value, result: ir.Value) -> None:
        """Between a run and fractals in UB."""
        element = element_type(steps.dtype)
        held = {
            name: viewed(buffer, [buffer.type.shape[0] // self.way.itemsize], element)
            for name, buffer in ((SOURCE, source), (RESULT, result))
        }
        build_dense(steps, held, scratch_of(scratch_bytes([self.way.rows])))

    def run(self, tile: FractalPiece) -> DenseRun:
        return DenseRun(self.matrix, tile.batch, mul(tile.strip, SIDE), tile.rows)

    def held(self, tile: FractalPiece, fractals: ir.Value) -> ir.Value:
        """The fractals of a tile in UB."""
        whole = viewed(fractals, [self.way.pitch * self.way.columns], self.element)
        return self.apart(whole, tile.columns, tile.strips)

    def copy_out(
        self, tile: FractalPiece, ub: ir.Value, zeros: ir.Value | None, made: ir.Value | None
    ) -> None:
        """Matrix to Nz by copies that read UB at a stride, those of the vector unit if it can."""
        self.load(tile, ub)
        tail = tile.width % self.way.c
        whole = tile.columns - (1 if tail else 0)
        if whole:
            source = subview(
                nz_view(ub, tile), [0, 0, 0, 0], [whole, tile.strips, SIDE, self.way.c]
            )
            if made is not None:
                self.keep(source, fractals := self.apart(made, whole, tile.strips))
                source = fractals
            op("cce.copy", [source, self.nz_part(tile, 0, whole)])
        if tail and zeros is not None:
            shape = [tile.strips * SIDE, self.way.c]
            last = restride(zeros, shape, [self.way.c, 1])
            self.fill(restride(zeros, [math.prod(shape)], [1]))
            self.keep(
                subview(rows_view(ub, tile), [0, whole * self.way.c], [shape[0], tail]),
                subview(last, [0, 0], [shape[0], tail]),
            )
            part = [1, tile.strips, SIDE, self.way.c]
            op(
                "cce.copy",
                [restride(zeros, part, row_major(part)), self.nz_part(tile, whole, 1)],
            )

    def copy_in(
        self, tile: FractalPiece, ub: ir.Value, zeros: ir.Value | None, made: ir.Value | None
    ) -> None:
        """Nz to matrix by a copy that writes UB at a stride, that of the vector unit if it can."""
        del zeros
        if made is None:
            op("cce.copy", [self.nz_part(tile), nz_view(ub, tile)])
        else:
            fractals = self.apart(made, tile.columns, tile.strips)
            op("cce.copy", [self.nz_part(tile), fractals])
            self.keep(fractals, nz_view(ub, tile))
        store_rows(rows_view(ub, tile), self.piece(tile))

    def apart(self, made: ir.Value, columns: int, strips: int) -> ir.Value:
        """Fractals in UB, [columns, strips, 16, c]; a column ends a block before the next one, so
        that blocks of neighbours are in different banks."""
        shape = [columns, strips, SIDE, self.way.c]
        pitch = strips * SIDE * self.way.c + self.way.pad
        return restride(made, shape, [pitch, SIDE * self.way.c, self.way.c, 1])

    def load(self, tile: FractalPiece, ub: ir.Value) -> None:
        """The rows of a tile to UB, zeros below them.

        vnchwconv reads whole blocks, so those that `load_rows` fills in part are written before.
        """
        width = tile.columns * self.way.c
        if missing := tile.strips * SIDE - tile.rows:
            self.fill(restride(ub, [missing * width], [1], tile.rows * width))
        piece = self.piece(tile)
        careful = piece.careful_rows()
        if careful and self.way.transposes:
            start = (tile.rows - careful + 1) * width - self.way.c
            self.fill(restride(ub, [careful, self.way.c], [width, 1], start))
        load_rows(piece, rows_view(ub, tile))

    def piece(self, tile: FractalPiece) -> MatrixPiece:
        row, column = mul(tile.strip, SIDE), mul(tile.column, self.way.c)
        return MatrixPiece(self.matrix, tile.batch, row, column, tile.rows, tile.width)

    def nz_part(self, tile: FractalPiece, first: int = 0, count: int = 0) -> ir.Value:
        """Fractal columns `first`.. of a tile in GM, [count, strips, 16, c]; count 0: all."""
        shape = [1, count or tile.columns, tile.strips, SIDE, self.way.c]
        start = [tile.batch, add(tile.column, first), tile.strip, 0, 0]
        return subview(self.nz, start, shape, drop=[0])

    def constant(self, value: int) -> ir.Value:
        """A scalar of the element type."""
        if isinstance(self.element, ir.IntegerType):
            return arith.ConstantOp(self.element, value).result
        return arith.ConstantOp(self.element, float(value)).result

    def fill(self, buffer: ir.Value) -> None:
        """Zeros."""
        op("cce.vector_dup", [self.constant(0), buffer])

    def keep(self, source: ir.Value, there: ir.Value) -> None:
        """Moves lanes of `source` in UB; by arithmetic, because only that takes a mask."""
        if isinstance(self.element, ir.IntegerType):
            op("cce.vmax", [source, source, there])
        else:
            op("cce.vmuls", [source, self.constant(1), there])


def lanes_view(
    buffer: ir.Value, offset: int, blocks: int, stride: int, block_stride: int
) -> ir.Value:
    """A [16, blocks, 16] operand of vnchwconv: strides of its first two dimensions."""
    return restride(buffer, [SIDE, blocks, SIDE], [stride, block_stride, 1], offset)


def strip_views(
    transposed: ir.Value, fractals: ir.Value, p: int, w: int
) -> Iterator[tuple[ir.Value, ir.Value]]:
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


def rows_view(ub: ir.Value, tile: FractalPiece) -> ir.Value:
    """A buffer as the rows of a tile, [16 p, w c]."""
    shape = [tile.strips * SIDE, tile.columns * tile.c]
    return restride(ub, shape, row_major(shape))


def nz_view(ub: ir.Value, tile: FractalPiece) -> ir.Value:
    """The rows of a tile in UB, read in Nz order: [w, p, 16, c]."""
    width = tile.columns * tile.c
    shape = [tile.columns, tile.strips, SIDE, tile.c]
    return restride(ub, shape, [tile.c, SIDE * width, width, 1])
