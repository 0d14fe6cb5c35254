"""Rows of an operand become fractals: GM -> UB -> UB, on their way to L1.

    GM  rows  -> UB [rows][columns] -> UB [columns / 16][rows + 1][16]
          MTE2                      V

The vector unit moves blocks of 16 elements, and rounds f32 to f16 on the way. In the second buffer
a column of fractals is one block longer than its rows, so that the eight blocks of a repeat are
written to eight bank groups.

Where a matrix ends inside a fractal the rest of it is zero. Rows come with as much of the head of
the next row as makes whole fractals, which the vector unit leaves out. Behind the last row nothing
may be read: its last columns come as the block that ends with them, or element by element.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from davinci.dialects.cce import build as cce
from davinci.mlir import arith, ir, memref
from davinci.passes.ascend_to_cce.products.dense_runs import (
    DenseRun,
    build_dense,
    has_room,
    load_run,
)
from davinci.passes.ascend_to_cce.products.dense_runs import fill_zeros as fill_zeros
from davinci.passes.ascend_to_cce.vector.program import element_type
from davinci.passes.builder import (
    IndexLike,
    add,
    alloc,
    as_value,
    for_loop,
    restride,
    subview,
    viewed,
)
from davinci.schedule.products.dense_rows import WIDE, begun, parting_of
from davinci.schedule.vector.steps import RESULT, SOURCE
from davinci.units import BLOCK_BYTES, ceil_div, round_up
from davinci.units import FRACTAL_SIDE as SIDE

FRACTAL = SIDE * SIDE


class RowRing:
    """Buffers in UB that take turns, each of so many bytes.

    Attributes:
        turn: how many were taken.
    """

    def __init__(self, count: int, size_bytes: int) -> None:
        byte = ir.IntegerType.get_signless(8)
        self.buffers = [alloc([size_bytes], byte, "UB") for _ in range(count)]
        self.turn = 0

    def take(self) -> ir.Value:
        """The next buffer, as bytes."""
        self.turn += 1
        return self.buffers[(self.turn - 1) % len(self.buffers)]

    def next(self, elements: int, element: ir.Type) -> ir.Value:
        """The next buffer, as so many elements."""
        return viewed(self.take(), [elements], element)

    def at(self, number: int, elements: int, element: ir.Type) -> ir.Value:
        """A buffer by its number."""
        return viewed(self.buffers[number], [elements], element)


@dataclass(frozen=True)
class MatrixRows:
    """`rows` x `columns` elements of a matrix in GM, from (batch, row, column).

    Attributes:
        last: whether the last row may be the last one of the matrix.
    """

    batch: IndexLike
    row: IndexLike
    column: IndexLike
    rows: int
    columns: int
    last: bool


class RowReader:
    """Brings rows of matrices in GM to UB.

    Args:
        gm: [batch][rows][columns].
    """

    def __init__(self, gm: ir.Value) -> None:
        self.gm = gm
        kind = ir.MemRefType(gm.type)
        self.element = kind.element_type
        batch, rows, columns = kind.shape
        # Rows are read in whole fractals, which reach into the next row; those of whole blocks as
        # they are, because bursts that follow each other do not overlap.
        self._block = BLOCK_BYTES // (self.element.width // 8)
        self._unit = SIDE if columns % self._block else self._block
        wide = [batch, rows, columns + SIDE - 1]
        self.wide = restride(gm, wide, *kind.get_strides_and_offset())
        self.matrix_columns = columns

    def come(self, piece: MatrixRows, place: ir.Value, scratch: Mapping[str, ir.Value]) -> None:
        """GM to UB.

        Args:
            scratch: buffers in which the end of the last row is moved, see `begun`; if they have no
                room for that it comes element by element.
        """
        careful = self.careful(piece)
        safe, whole = piece.rows - careful, piece.columns // self._block * self._block
        if safe:
            self._copy(replace(piece, rows=safe, columns=self.width(piece)), place)
        if not careful:
            return
        last = replace(piece, row=add(piece.row, safe), rows=careful)
        if whole:
            place_of_last = subview(place, [safe, 0], [careful, whole])
            self._copy(replace(last, columns=whole), place_of_last)
        if whole == piece.columns:
            return
        work = begun(self.element.width // 8, piece.columns - whole)
        if self._block <= self.matrix_columns and has_room(work, scratch):
            block = self._last_block(piece, place, safe, whole)
            build_dense(work, {RESULT: block}, scratch)
            return
        with for_loop(safe, piece.rows) as row, for_loop(whole, piece.columns) as column:
            at = [piece.batch, add(piece.row, row), add(piece.column, column)]
            value = memref.LoadOp(self.gm, [as_value(i) for i in at]).result
            memref.StoreOp(value, place, [row, column])

    def _last_block(self, piece: MatrixRows, place: ir.Value, row: int, first: int) -> ir.Value:
        """The block of UB from `row` and column `first` of a place on, to which the last elements
        of that row of a piece come, as many as a block has."""
        (pitch, _), start = ir.MemRefType(place.type).get_strides_and_offset()
        begin = start + row * pitch + first
        back = add(piece.column, piece.columns - self._block)
        block = replace(piece, row=add(piece.row, row), rows=1, column=back, columns=self._block)
        self._copy(block, restride(place, [1, self._block], [pitch, 1], begin))
        held: ir.Value = restride(place, [self._block], [1], begin)
        return held

    def width(self, piece: MatrixRows) -> int:
        """Elements of a row that are read."""
        return round_up(piece.columns, self._unit)

    def careful(self, piece: MatrixRows) -> int:
        """How many of the last rows have nothing behind them that may be read with them."""
        reach = self.width(piece) - piece.columns
        beyond = ceil_div(reach, self.matrix_columns)
        return min(piece.rows, beyond) if piece.last or beyond > 1 else 0

    def _copy(self, piece: MatrixRows, place: ir.Value) -> None:
        """All elements of a piece by one operation."""
        size = [piece.rows, piece.columns]
        source = subview(self.wide, [piece.batch, piece.row, piece.column], [1, *size], drop=[0])
        cce.copy(source, subview(place, [0, 0], size))


class RowsToFractals:
    """Makes fractals in UB of rows of global memory.

    Args:
        gm: [batch][rows][columns].
        inbox, made: buffers for the rows and for the fractals.
        direct: whether rows of whole fractals stay as they came; they are seen as fractals.
        parting: buffers of `dense_rows` where whole rows come as one run; None: row by row.
        ends: those in which ends of rows are moved, see `RowReader.come`.
    """

    def __init__(
        self,
        gm: ir.Value,
        inbox: RowRing,
        made: RowRing,
        direct: bool = False,
        parting: Mapping[str, ir.Value] | None = None,
        ends: Mapping[str, ir.Value] | None = None,
    ) -> None:
        self.reader, self.inbox, self.made, self.direct = RowReader(gm), inbox, made, direct
        self.parting, self.ends = parting, ends or {}

    def made_of(self, piece: MatrixRows) -> ir.Value:
        """[columns / 16][rows / 16][16][16] in UB."""
        if self.parting is not None:
            return self._parted(piece, self.parting)
        rows, columns = ceil_div(piece.rows, SIDE), ceil_div(piece.columns, SIDE)
        pitch, height = columns * SIDE, (rows * SIDE + 1) * SIDE
        came = self.inbox.next(rows * SIDE * pitch, self.reader.element)
        if self.direct:
            if rest := rows * SIDE - piece.rows:
                fill_zeros(restride(came, [rest * pitch], [1], piece.rows * pitch))
            place = restride(came, [piece.rows, pitch], [pitch, 1])
            self.reader.come(piece, place, self.ends)
            return restride(came, [columns, rows, SIDE, SIDE], [SIDE, SIDE * pitch, pitch, 1])
        made = self.made.next(columns * height, ir.F16Type.get())
        self.reader.come(piece, restride(came, [piece.rows, pitch], [pitch, 1]), self.ends)
        filled = piece.rows
        if filled < rows * SIDE:
            rest = (rows * SIDE - filled) * SIDE
            fill_zeros(restride(made, [columns, rest], [height, 1], filled * SIDE))
        whole, tail = divmod(piece.columns, SIDE)
        if tail:
            fill_zeros(restride(made, [filled * SIDE], [1], whole * height))
        for first, count, lanes in ((0, whole, SIDE), (whole, 1, tail)):
            if count and lanes:
                shape = [count, filled, lanes]
                source = restride(came, shape, [SIDE, pitch, 1], first * SIDE)
                change(source, restride(made, shape, [height, SIDE, 1], first * height))
        shape = [columns, rows, SIDE, SIDE]
        fractals: ir.Value = restride(made, shape, [height, FRACTAL, SIDE, 1])
        return fractals

    def _parted(self, piece: MatrixRows, scratch: Mapping[str, ir.Value]) -> ir.Value:
        """Dense rows become fractals."""
        rows, columns = ceil_div(piece.rows, SIDE), ceil_div(piece.columns, SIDE)
        f32, height = ir.F32Type.get(), (rows * SIDE + 1) * SIDE
        way = parting_of(rows, columns, piece.columns, self.reader.element.width // 8)
        held, element = self.inbox.take(), element_type(way.dtype)
        came = viewed(held, [way.rows * way.width], self.reader.element)
        load_run(DenseRun(self.reader.gm, piece.batch, piece.row, piece.rows), came)
        made = self.made.next(columns * height, ir.F16Type.get())
        source = viewed(held, [way.rows * way.width], element)
        if self.reader.element == f32:
            count, pitch = way.rows * columns * SIDE, columns * SIDE
            result = viewed(scratch[WIDE], [count], element)
            build_dense(way.parted(), {SOURCE: source, RESULT: result}, scratch)
            wide, shape = viewed(scratch[WIDE], [count], f32), [columns, way.rows, SIDE]
            change(
                restride(wide, shape, [SIDE, pitch, 1]), restride(made, shape, [height, SIDE, 1])
            )
        else:
            build_dense(way.parted(), {SOURCE: source, RESULT: made}, scratch)
        if filled := piece.rows % SIDE:
            rest, start = SIDE - filled, ((rows - 1) * SIDE + filled) * SIDE
            fill_zeros(restride(made, [columns, rest * SIDE], [height, 1], start))
        fractals: ir.Value = restride(made, [columns, rows, SIDE, SIDE], [height, FRACTAL, SIDE, 1])
        return fractals


def change(source: ir.Value, destination: ir.Value) -> None:
    """Moves f16 lanes, or rounds f32 to them; adding minus zero changes nothing."""
    element = ir.MemRefType(source.type).element_type
    if element == ir.MemRefType(destination.type).element_type:
        cce.vadds(source, arith.ConstantOp(element, -0.0).result, destination)
    else:
        cce.vconv(source, destination)
