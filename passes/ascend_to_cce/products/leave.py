"""Parts of C on their way from L0C to GM.

    L0C [n][m][16][16] -> UB -> the epilogue's steps -> UB -> GM
          V                       V                     MTE3

Rows of C that are no whole blocks: whole rows of C are packed (`dense_rows`) before the epilogue
and leave as one run. Others leave in whole blocks, the last block of a row over some of what the
one before it wrote; rows of less than a block leave element by element.
"""

from __future__ import annotations

from davinci.dialects.cce import build as cce
from davinci.isa.core import DTYPES
from davinci.mlir import ir, memref
from davinci.operators.vector_program import TileStep, Value, joined
from davinci.passes.ascend_to_cce.products.dense_runs import (
    DenseRun,
    build_dense,
    fill_zeros,
    scratch_of,
    store_run,
)
from davinci.passes.ascend_to_cce.products.extras import Extras
from davinci.passes.ascend_to_cce.products.parts import PartOfC, ResultPlace
from davinci.passes.ascend_to_cce.products.rows import FRACTAL, RowRing
from davinci.passes.ascend_to_cce.serving import serving
from davinci.passes.ascend_to_cce.vector.program import element_type, scalar
from davinci.passes.ascend_to_cce.vector.row_statistics import fill_lanes
from davinci.passes.builder import (
    add,
    alloc,
    as_value,
    divided,
    for_loop,
    mul,
    op,
    restride,
    subview,
    viewed,
)
from davinci.schedule.products.dense_rows import ended
from davinci.schedule.products.events import Ask, Leave
from davinci.schedule.products.product import Product, ProductSchedule
from davinci.schedule.vector.steps import RESULT, SOURCE
from davinci.units import BLOCK_BYTES
from davinci.units import FRACTAL_SIDE as SIDE


class Exit:
    """Moves parts of C out.

    Args:
        outputs: what the epilogue makes, in GM: [batch][rows][columns], or
            [batch][columns][rows][16][16].
        extras: see `Extras`.
        members: the product, by number in its kernel.
    """

    def __init__(
        self,
        outputs: list[ir.Value],
        extras: list[ir.Value],
        product: Product,
        schedule: ProductSchedule,
        members: tuple[int, ...],
    ) -> None:
        self.end, self.product = product.end_of(schedule), product
        self.members = joined(members, self.end.program.taken)
        program, sums = self.end.program, self.end.sums
        self.outputs = dict(zip(program.outputs, outputs, strict=True))
        columns, rows = schedule.part
        self.scratch = scratch_of(self.end.scratch(columns, rows) if product.ragged else {})
        self.extras = Extras(extras, product, schedule, self.scratch)
        # The vector unit does one thing after the other, so it needs but one buffer for sums.
        leave_at_once = sums in program.outputs and not self.end.width
        turns = schedule.leaving if leave_at_once else 1

        def size(dtype: str) -> int:
            return self.end.elements(columns, rows, dtype)

        staged = columns * self.end.of_column(rows)
        self.stages = RowRing(turns, staged * DTYPES[sums.dtype].itemsize)
        if self.end.width:
            turns = schedule.leaving if sums in program.outputs else 1
            self.dense = RowRing(turns, size(sums.dtype) * DTYPES[sums.dtype].itemsize)

        self.leaving = {
            value: RowRing(schedule.leaving, size(value.dtype) * DTYPES[value.dtype].itemsize)
            for value in program.outputs
            if value != sums
        }
        slots = self.end.slots()
        made = {
            slot: alloc([size(slot[0])], element_type(slot[0]), "UB")
            for slot in sorted(set(slots.values()))
        }
        self.temporaries = {value: made[slot] for value, slot in slots.items()}

    def ask(self, event: Ask, part: PartOfC) -> None:
        """Brings what is combined with a part, or with its tile."""
        self.extras.ask(event, part)

    def leave(self, event: Leave, source: ir.Value, part: PartOfC) -> None:
        """A part of C, [n][m][16][16] in L0C, to its place."""
        n, m = part.n.size, part.m.size
        program, sums = self.end.program, self.end.sums
        staged = self.stages.take()
        of_column = self.end.of_column(m)
        stage = viewed(staged, [n * of_column], element_type(sums.dtype))
        held = {sums: stage, **self.temporaries, **self.extras.take(event)}
        for value, ring in self.leaving.items():
            held[value] = ring.next(self.end.elements(n, m, value.dtype), element_type(value.dtype))
        fractals = restride(stage, [n, m, SIDE, SIDE], [of_column, FRACTAL, SIDE, 1])
        with serving(*self.members):
            if self.end.scale is None:
                cce.copy_l0c(source, fractals, relu=self.end.rectified)
            else:
                of_tile = held[self.end.scale.value]
                scales = restride(of_tile, [n, SIDE], [SIDE, 1], part.n.start * SIDE)
                cce.dequantize_l0c(source, scales, fractals)
            if self.end.width:
                held[sums] = self._packed(staged, n, m)
        for step in program.steps:
            with serving(*step.members):
                if step.result in self.outputs and step.result in self.end.paired:
                    # Lanes of bytes are filled before they are bytes.
                    self._clear(held[step.sources[0]], step.sources[0], part)
                self._step(step, held, part)
        for value, gm in self.outputs.items():
            with serving(*(program.makers(value) or self.members)):
                self._store(value, held[value], gm, part)

    def _store(self, value: Value, held: ir.Value, gm: ir.Value, part: PartOfC) -> None:
        """What leaves, to its place in GM."""
        if self.end.nz:
            cleared = value in self.end.paired
            if not cleared and (self.end.changes or self.product.image is not None):
                self._clear(held, value, part)
            self._store_fractals(held, gm, part, self.end.lanes(value))
        elif self.end.width:
            place = part.place
            store_run(held, DenseRun(gm, place.batch, mul(place.row, SIDE), place.rows))
        else:
            self._store_rows(held, gm, value, part)

    def _step(self, step: TileStep, held: dict[Value, ir.Value], part: PartOfC) -> None:
        """One operation of the program."""
        shape, strides = self.end.operands(step, part.n.size, part.m.size)
        if not (self.end.nz or self.end.width):
            shape[0] = part.place.rows
        if step.accumulates:
            held[step.result] = held[step.sources[0]]
        operands = []
        for value, steps in zip(step.operands, strides, strict=True):
            first = 0
            if self.end.is_row(value) and not self.end.width:
                first = part.n.start * self.end.row_elements(1, value.dtype)
            operands.append(restride(held[value], shape, steps, first))
        if step.scalar is not None:
            operands.insert(-1, scalar(step.result.dtype, step.scalar))
        op(f"cce.{step.name}", operands, **step.attributes)

    def _end_with_blocks(self, held: ir.Value, value: Value, part: PartOfC) -> None:
        """Rows of a part end with a whole block, some of which the one before it has as well."""
        itemsize, place = DTYPES[value.dtype].itemsize, part.place
        pitch = self.end.pitch(part.n.size, value.dtype) * itemsize // BLOCK_BYTES
        work = ended(place.rows, itemsize, pitch, place.columns)
        build_dense(work, {RESULT: held}, self.scratch)

    def _packed(self, stage: ir.Value, n: int, m: int) -> ir.Value:
        """Sums as dense rows."""
        way, held = self.end.packing(n, m), self.dense.take()
        element, count = element_type(way.dtype), way.rows * way.width
        source, result = viewed(stage, [n * m * FRACTAL], element), viewed(held, [count], element)
        build_dense(way.packed(), {SOURCE: source, RESULT: result}, self.scratch)
        return viewed(held, [count], element_type(self.end.sums.dtype))

    def _clear(self, buffer: ir.Value, value: Value, part: PartOfC) -> None:
        """Zeroes what pads a part of Nz, which the steps may have changed."""
        m, place, lanes = part.m.size, part.place, self.end.lanes(value)
        n, column = part.n.size * SIDE // lanes, self.end.of_column(m) * lanes // SIDE
        if (rest := m * SIDE - place.rows) > 0:
            shape, strides = [n, rest * lanes], [column, 1]
            fill_zeros(restride(buffer, shape, strides, place.rows * lanes))
        if place.columns < n * lanes:
            rows = restride(buffer, [m * SIDE, lanes], [lanes, 1], (n - 1) * column)
            fill_lanes(value.dtype, rows, place.columns % lanes, lanes, 0.0)

    def _store_fractals(self, buffer: ir.Value, gm: ir.Value, part: PartOfC, lanes: int) -> None:
        n, m, place = part.n.size * SIDE // lanes, part.m.size, part.place
        strides = [self.end.of_column(m) * lanes // SIDE, SIDE * lanes, lanes, 1]
        shape = [n, m, SIDE, lanes]
        fractals = restride(buffer, shape, strides)
        at = [place.batch, divided(place.column, lanes // SIDE), place.row, 0, 0]
        cce.copy(fractals, subview(gm, at, [1, *shape], drop=[0]))

    def _store_rows(self, buffer: ir.Value, gm: ir.Value, value: Value, part: PartOfC) -> None:
        place, pitch = part.place, self.end.pitch(part.n.size, value.dtype)
        rows = restride(buffer, [place.rows, part.n.size * SIDE], [pitch, 1])
        block = BLOCK_BYTES // DTYPES[value.dtype].itemsize
        row, column = mul(place.row, SIDE), mul(place.column, SIDE)
        if place.columns % block == 0:
            self._copy(rows, gm, place, 0, 0, place.columns)
            return
        if place.columns > block:
            self._end_with_blocks(buffer, value, part)
            whole = place.columns // block * block
            self._copy(rows, gm, place, 0, 0, whole)
            self._copy(rows, gm, place, whole, place.columns - block, block)
            return
        whole = place.columns // block * block
        if whole:
            self._copy(rows, gm, place, 0, 0, whole)
        with for_loop(0, place.rows) as i, for_loop(whole, place.columns) as j:
            at = [as_value(x) for x in (place.batch, add(row, i), add(column, j))]
            memref.StoreOp(memref.LoadOp(rows, [i, j]).result, gm, at)

    def _copy(
        self,
        rows: ir.Value,
        gm: ir.Value,
        place: ResultPlace,
        inside: int,
        outside: int,
        count: int,
    ) -> None:
        """`count` columns, from `inside` on in UB, to those from `outside` on of a place in GM."""
        at = [place.batch, mul(place.row, SIDE), add(mul(place.column, SIDE), outside)]
        target = subview(gm, at, [1, place.rows, count], drop=[0])
        cce.copy(subview(rows, [0, inside], [place.rows, count]), target)
