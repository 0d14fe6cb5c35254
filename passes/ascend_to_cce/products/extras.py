"""What the epilogue of a product combines C with: it comes from GM to UB before it is needed.

    of C's shape   part for part, in the layout of C
    a row of C     once for a tile; in Nz its fractal columns become repeats, [columns][lanes]
    a number       once for the kernel, a repeat or a row of it

In Nz: GM [n] -> UB [columns 16] -> UB [columns][lanes / 16][16], each column's 16 elements again.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

from davinci.dialects.cce import build as cce
from davinci.isa.core import DTYPES
from davinci.mlir import arith, ir
from davinci.operators.vector_program import Value
from davinci.passes.ascend_to_cce.moves.transfers import copy_rounded
from davinci.passes.ascend_to_cce.products.column import ByteColumn, RowColumn
from davinci.passes.ascend_to_cce.products.dense_runs import (
    DenseRun,
    build_dense,
    fill_zeros,
    load_run,
    scratch_of,
)
from davinci.passes.ascend_to_cce.products.matrix import Matrix
from davinci.passes.ascend_to_cce.products.parts import PartOfC
from davinci.passes.ascend_to_cce.products.rows import FRACTAL, MatrixRows, RowReader, RowRing
from davinci.passes.ascend_to_cce.serving import serving
from davinci.passes.ascend_to_cce.vector.program import element_type, scalar
from davinci.passes.builder import (
    IndexLike,
    alloc,
    divided,
    mul,
    remainder,
    restride,
    subview,
    viewed,
)
from davinci.schedule.products.epilogue import PAIR
from davinci.schedule.products.events import MATRIX, PART, Add, Ask, Leave, TurnRows
from davinci.schedule.products.extras import Extra
from davinci.schedule.products.product import Product, ProductSchedule
from davinci.schedule.products.rewrites import UNCHANGED
from davinci.schedule.vector.steps import RESULT, SOURCE
from davinci.units import BLOCK_BYTES
from davinci.units import FRACTAL_SIDE as SIDE


class Extras:
    """Buffers of what C is combined with, and how they are filled.

    Args:
        gm: of each extra of the epilogue, of C's shape as C lies in GM, of a row
            [batch or 1][columns].
        scratch: buffers of `dense_rows`, where rows of C end inside a block.
    """

    def __init__(
        self,
        gm: list[ir.Value],
        product: Product,
        schedule: ProductSchedule,
        scratch: Mapping[str, ir.Value],
    ) -> None:
        self._end = end = product.end_of(schedule)
        self._batch, self._scratch = product.batch, scratch
        self._gm = dict(zip((extra.value for extra in end.extras), gm, strict=True))
        self._columns, self._height = schedule.part
        self._parts: dict[Value, RowRing] = {}
        self._rows: dict[Value, RowRing] = {}
        self._raw: dict[Value, RowRing] = {}
        self.column: RowColumn | ByteColumn | None = None
        self.matrix: Matrix | None = None
        self._of_column: tuple[int, ...] = ()
        self._of_matrix: tuple[int, ...] = ()
        for extra in end.extras:
            with serving(*extra.members):
                self._make_room(extra, schedule)
        self._once = {}
        for value, number in end.program.constants.items():
            with serving(*end.program.readers(value)):
                self._once[value] = self._number(value.dtype, number)
        if end.width:
            for extra in end.extras:
                if extra.beside:
                    with self._serving(extra):
                        self._once[extra.value] = self._repeated(extra, scratch)

    def _make_room(self, extra: Extra, schedule: ProductSchedule) -> None:
        """The buffers of an extra: of a matrix or column that the cube adds, of parts of an array
        of C's shape, or of a tile's columns of a row."""
        end, dtype = self._end, extra.value.dtype
        itemsize = DTYPES[dtype].itemsize
        if extra.matrix:
            columns = end.matrix_columns(schedule.tile.m)
            self._of_matrix = extra.members
            self.matrix = Matrix(schedule, self._gm[extra.value], columns)
            return
        if not extra.row:
            size = end.elements(self._columns, self._height, dtype) * itemsize
            self._parts[extra.value] = RowRing(schedule.loads, size)
            return
        if extra.digits:
            self.column = ByteColumn(schedule, extra.blocks, self._gm[extra.value])
        elif extra.column:
            self.column = RowColumn(schedule)
        if extra.column:
            self._of_column = extra.members
        if end.width or extra.column:
            return
        of_tile = schedule.tile.n * SIDE * itemsize
        size = end.row_elements(schedule.tile.n, dtype) * itemsize
        self._rows[extra.value] = RowRing(2, of_tile if extra.scale else size)
        if end.nz and not extra.scale:
            self._raw[extra.value] = RowRing(2, of_tile)

    def _serving(self, extra: Extra) -> AbstractContextManager[None]:
        """What is built inside serves what an extra is for."""
        return serving(*(extra.members or self._end.program.readers(extra.value)))

    def ask(self, event: Ask, part: PartOfC) -> None:
        """Brings what a part is combined with, or its tile."""
        if event.kind == MATRIX:
            if self.matrix is not None:
                with serving(*self._of_matrix):
                    self.matrix.bring(event.part, part.place)
            return
        if event.kind == PART:
            buffers = self.take(event.part)
            for extra in self._end.extras:
                if extra.apart:
                    with self._serving(extra):
                        self._whole(extra, part, buffers[extra.value])
            return
        for extra in self._end.extras:
            with self._serving(extra):
                if isinstance(self.column, ByteColumn) and extra.digits:
                    self.column.bring(event.part, part.column_of_tile)
                elif came := self._came(extra, event.part):
                    self._bring(extra, event.part, part, came)

    def turn(self, event: TurnRows) -> None:
        """Makes repeats or columns of the rows that came for a tile."""
        columns, buffers = event.part.tile.n.size, self.take(event.part)
        for extra in self._end.extras:
            with self._serving(extra):
                if extra.column and isinstance(self.column, RowColumn):
                    self.column.ready(event.part)
                elif ring := self._raw.get(extra.value):
                    dtype = extra.value.dtype
                    came = ring.at(event.part.turn, columns * SIDE, element_type(dtype))
                    lanes = self._end.row_elements(1, dtype)
                    repeat_row(came, buffers[extra.value], columns, lanes)

    def add(self, event: Add, sums: ir.Value, false: ir.Value) -> None:
        """Has mads add to columns of a tile in L0C the extras that the cube adds: a column, once a
        tile, or a matrix.

        Args:
            event: which columns.
            sums: the tile in L0C.
            false: the i1 of mads that add to what is there.
        """
        if self.column is not None and event.n.start == 0:
            with serving(*self._of_column):
                self.column.add(event, sums, false)
        if self.matrix is not None:
            with serving(*self._of_matrix):
                self.matrix.add(event, sums, false)

    def take(self, event: Leave) -> dict[Value, ir.Value]:
        """The buffers of what a part is combined with."""
        found = dict(self._once)
        n, m, columns = event.n.size, event.m.size, event.tile.n.size
        for extra in self._end.extras:
            if extra.value in found or extra.column or extra.matrix:
                continue
            dtype = extra.value.dtype
            elements = self._end.elements(n, m, dtype)
            ring, slot = self._parts.get(extra.value), event.slot
            if ring is None:
                elements = columns * SIDE
                if not extra.scale:
                    elements = self._end.row_elements(columns, dtype)
                ring, slot = self._rows[extra.value], event.turn
            found[extra.value] = ring.at(slot, elements, element_type(dtype))
        return found

    def _number(self, dtype: str, number: float) -> ir.Value:
        elements = self._end.row_elements(1 if self._end.nz else self._columns, dtype)
        if self._end.width:
            elements = self._end.elements(self._columns, self._height, dtype)
        buffer: ir.Value = alloc([elements], element_type(dtype), "UB")
        cce.vector_dup(scalar(dtype, number), buffer)
        return buffer

    def _repeated(self, extra: Extra, scratch: Mapping[str, ir.Value]) -> ir.Value:
        """A row of C for each row of a part, dense."""
        dtype, width = extra.value.dtype, self._end.width
        way = self._end.repeating(self._height, dtype)
        size = self._columns * SIDE * DTYPES[dtype].itemsize
        kinds = element_type(dtype), element_type(way.dtype)
        buffers = scratch_of({"row": size, "rows": way.rows * width * way.itemsize})
        row = viewed(buffers["row"], [self._columns * SIDE], kinds[0])
        fill_zeros(row)
        source = subview(self._gm[extra.value], [0, 0], [1, width], drop=[0])
        copy_rounded(source, restride(row, [width], [1]), BLOCK_BYTES)
        held = {
            SOURCE: viewed(buffers["row"], [self._columns * SIDE], kinds[1]),
            RESULT: viewed(buffers["rows"], [way.rows * width], kinds[1]),
        }
        build_dense(way.packed(), held, scratch)
        return viewed(buffers["rows"], [way.rows * width], kinds[0])

    def _whole(self, extra: Extra, part: PartOfC, buffer: ir.Value) -> None:
        """A part of what has the shape of C."""
        place, dtype = part.place, extra.value.dtype
        gm = self._gm[extra.value]
        if self._end.nz:
            pair = PAIR if extra.value in self._end.paired else 1
            shape = [part.n.size // pair, part.m.size, SIDE, SIDE * pair]
            strides = [self._end.of_column(part.m.size) * pair, FRACTAL * pair, SIDE * pair, 1]
            at = [place.batch, divided(place.column, pair), place.row, 0, 0]
            target = restride(buffer, shape, strides)
            cce.copy(subview(gm, at, [1, *shape], drop=[0]), target)
        elif self._end.width:
            held = restride(buffer, [self._end.elements(part.n.size, part.m.size, dtype)], [1])
            load_run(DenseRun(gm, place.batch, mul(place.row, SIDE), place.rows), held)
        else:
            row, column = mul(place.row, SIDE), mul(place.column, SIDE)
            shape = [place.rows, part.n.size * SIDE]
            target = restride(buffer, shape, [self._end.pitch(part.n.size, dtype), 1])
            rows = MatrixRows(place.batch, row, column, place.rows, place.columns, place.last)
            reader = RowReader(gm)
            # What is computed of the lanes behind a row does not leave, but they are read.
            pitch, lanes = self._end.pitch(part.n.size, dtype), part.n.size * SIDE
            if careful := reader.careful(rows):
                start = (place.rows - careful) * pitch + lanes - SIDE
                fill_zeros(restride(buffer, [careful, SIDE], [pitch, 1], start))
            if (width := reader.width(rows)) < lanes:
                rest = [place.rows - careful, lanes - width]
                fill_zeros(restride(buffer, rest, [pitch, 1], width))
            reader.come(rows, target, self._scratch)

    def _came(self, extra: Extra, event: Leave) -> ir.Value | None:
        """Where the columns of a tile of a row of C come to; None of what comes otherwise."""
        if extra.column and isinstance(self.column, RowColumn):
            return self.column.came(event)
        ring = self._raw.get(extra.value) or self._rows.get(extra.value)
        if ring is None:
            return None
        return ring.at(event.turn, event.tile.n.size * SIDE, element_type(extra.value.dtype))

    def _bring(self, extra: Extra, event: Leave, part: PartOfC, came: ir.Value) -> None:
        """The columns of a tile of a row of C as they are in GM, and zeros behind them."""
        columns = event.tile.n.size
        count = min(columns * SIDE, part.columns_of_tile)
        if count < columns * SIDE:
            fill_zeros(came)
        gm, first = self._gm[extra.value], mul(part.column_of_tile, SIDE)
        number = row_number(gm, extra, part.place.batch, self._batch)
        if extra.fractals:
            copy_of_fractals(
                gm, number, part.column_of_tile, restride(came, [columns, SIDE], [SIDE, 1])
            )
            return
        row = subview(gm, [number, first], [1, count], drop=[0])
        copy_rounded(row, restride(came, [count], [1]), BLOCK_BYTES)


def copy_of_fractals(gm: ir.Value, number: IndexLike, column: IndexLike, target: ir.Value) -> None:
    """Copies a part of a row that lies in fractals.

    Args:
        gm: [rows][fractals of columns][16].
        column: the first fractal.
        target: [fractals][16].
    """
    shape = list(ir.MemRefType(target.type).shape)
    cce.copy(subview(gm, [number, column, 0], [1, *shape], drop=[0]), target)


def row_number(gm: ir.Value, extra: Extra, matrix: IndexLike, batch: int) -> IndexLike:
    """Which row of an extra, [rows][columns], a matrix takes: they take those that there are in
    turn.

    Args:
        batch: matrices that there are.
    """
    rows = ir.MemRefType(gm.type).shape[0]
    if rows == 1 or rows == batch:
        return matrix if extra.batch else 0
    return remainder(matrix, rows)


def repeat_row(row: ir.Value, result: ir.Value, columns: int, lanes: int) -> None:
    """Each 16 elements of a row of so many fractals, to `lanes`."""
    shape = [columns, lanes // SIDE, SIDE]
    source, target = restride(row, shape, [SIDE, 0, 1]), restride(result, shape, [lanes, SIDE, 1])
    element = ir.MemRefType(row.type).element_type
    if not isinstance(element, ir.FloatType):
        cce.vmax(source, source, target)
        return
    cce.vadds(source, arith.ConstantOp(element, UNCHANGED).result, target)
