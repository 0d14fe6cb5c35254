"""O on its way out: L0C [columns / 16 + 1][rows][16] -> UB, divided by its last column -> GM."""

from __future__ import annotations

from collections.abc import Mapping

from davinci.dialects.cce import build as cce
from davinci.isa.core import DTYPES
from davinci.machine import Machine
from davinci.mlir import ir
from davinci.passes.ascend_to_cce.moves.matrix_rows import MatrixPiece, store_rows
from davinci.passes.ascend_to_cce.products.dense_runs import DenseRun, build_dense, store_run
from davinci.passes.ascend_to_cce.products.feed import Range
from davinci.passes.ascend_to_cce.products.rows import FRACTAL, RowRing, fill_zeros
from davinci.passes.ascend_to_cce.serving import serving
from davinci.passes.ascend_to_cce.vector.program import element_type, scalar
from davinci.passes.ascend_to_cce.vector.row_statistics import build_steps, fill_lanes
from davinci.passes.builder import IndexLike, alloc, mul, restride, subview, viewed
from davinci.schedule.attention.attention import Attention, AttentionSchedule
from davinci.schedule.attention.blocks import KEPT, PART, SPREAD, taking
from davinci.schedule.attention.cost import sum_lanes
from davinci.schedule.attention.dense import leaves_dense, packing_of, pitch_of, run_bytes
from davinci.schedule.attention.members import Members
from davinci.schedule.vector.steps import RESULT, SOURCE
from davinci.units import BLOCK_BYTES, REPEAT_BYTES, ceil_div
from davinci.units import FRACTAL_SIDE as SIDE

SOME = 0.5
"""Less than the sum of any row's weights, the largest of which is 1; more than that of a row of
which masks leave nothing, which is 0, so that the row is divided to zeros."""


class AttentionExit:
    """Moves O out.

    Args:
        gm: [matrices][rows][columns], or [matrices][columns][rows][16][16].
        parts: scratch in which rows that are no whole blocks are packed.
        members: operators of the kernel that what is built serves.
    """

    def __init__(
        self,
        attention: Attention,
        schedule: AttentionSchedule,
        gm: ir.Value,
        machine: Machine,
        parts: Mapping[str, ir.Value],
        members: Members,
    ) -> None:
        self.parts, self.members = parts, members
        self.attention, self.gm, self.machine = attention, gm, machine
        self.columns = attention.fractals.columns
        self.dtype = "f16" if attention.o.itemsize == 2 else "f32"
        rows, f32 = schedule.rows, ir.F32Type.get()
        self.sums = alloc([sum_lanes(attention, rows)], f32, "UB")
        self.some: ir.Value | None = None
        if attention.guarded:
            with serving(*members.quotient):
                self.some = alloc([BLOCK_BYTES // 4], f32, "UB")
                cce.vector_dup(scalar("f32", SOME), self.some)
        self.part: ir.Value | None = None
        if schedule.blocks(attention) > 1:
            self.part = alloc([(self.columns + 1) * rows * FRACTAL], f32, "UB")
        wide = pitch_of(attention) if not attention.o.nz else self.columns * SIDE
        self.size = rows * SIDE * wide
        size_bytes = self.size * DTYPES[self.dtype].itemsize
        self.apart: RowRing | None = None
        if leaves_dense(attention):
            self.apart, size_bytes = RowRing(1, size_bytes), run_bytes(attention, rows)
        self.leaving = RowRing(schedule.leaving, size_bytes)

    def copy(self, sums: ir.Value, height: int) -> None:
        """O and its sums from L0C."""
        self._copy(sums, self.sums, height)

    def _copy(self, sums: ir.Value, there: ir.Value, height: int) -> None:
        shape = [self.columns + 1, height, SIDE, SIDE]
        strides = [height * FRACTAL, FRACTAL, SIDE, 1]
        with serving(*self.members.product):
            cce.copy_l0c(restride(sums, shape, strides), restride(there, shape, strides))

    def begin(self, height: int) -> None:
        """A unit begins, of several blocks of keys."""
        with serving(*self.members.product):
            fill_zeros(restride(self.sums, [(self.columns + 1) * height * FRACTAL], [1]))

    def take_in(self, sums: ir.Value, factors: ir.Value, height: int) -> None:
        """Adds O of a block, in L0C, to what there is, times its factors."""
        assert self.part is not None, "several blocks of keys have a buffer for parts of O"
        self._copy(sums, self.part, height)
        taken = taking(height, self.columns + 1, self.attention.chain.scores.dtype, self.machine)
        with serving(*self.members.product):
            build_steps(taken.sums, {KEPT: self.sums, PART: self.part, SPREAD: factors})

    def leave(self, batch: IndexLike, rows: Range) -> None:
        """A unit of O, in UB, to its place."""
        height, columns = ceil_div(rows.elements, SIDE), self.columns
        size = height * FRACTAL
        total = restride(self.sums, [size], [1], columns * size)
        with serving(*self.members.quotient):
            if self.some is not None:
                lanes = BLOCK_BYTES // 4
                shape = [size // lanes, lanes]
                each = restride(self.sums, shape, [lanes, 1], columns * size)
                cce.vmax(each, restride(self.some, shape, [0, 1]), each)
            cce.vrec(total, restride(self.sums, [size], [1], self._inverse(height)))
        self._divide(height, batch, rows)

    def _inverse(self, height: int) -> int:
        """Where one over the sums lies: apart from O in such a way that the two are in different
        banks, though they are read together."""
        return (self.columns + 1) * height * FRACTAL + REPEAT_BYTES // 4

    def _divide(self, height: int, batch: IndexLike, rows: Range) -> None:
        element = ir.F16Type.get() if self.dtype == "f16" else ir.F32Type.get()
        made = (self.apart or self.leaving).next(self.size, element)
        columns = self.columns
        wide = pitch_of(self.attention)
        shape = [columns, height * SIDE, SIDE]
        own = [height * FRACTAL, SIDE, 1]
        there = own if self.attention.o.nz else [SIDE, wide, 1]
        source = restride(self.sums, shape, own)
        inverse = restride(self.sums, shape, [0, SIDE, 1], self._inverse(height))
        target = restride(made, shape, there)
        with serving(*self.members.quotient):
            cce.vmul(source, inverse, source if self.dtype == "f16" else target)
        with serving(*(self.members.leaving or self.members.product)):
            if self.dtype == "f16":
                cce.vconv(source, target)
            self._store(made, height, batch, rows)

    def _store(self, made: ir.Value, height: int, batch: IndexLike, rows: Range) -> None:
        """A unit of O to GM."""
        columns, wide = self.columns, pitch_of(self.attention)
        if self.attention.o.nz:
            self._store_fractals(made, height, batch, rows)
        elif self.apart is not None:
            self._store_run(made, height, batch, rows)
        else:
            place = MatrixPiece(
                self.gm, batch, mul(rows.start, SIDE), 0, rows.elements, self.attention.columns
            )
            store_rows(restride(made, [height * SIDE, columns * SIDE], [wide, 1]), place)

    def _store_run(self, made: ir.Value, height: int, batch: IndexLike, rows: Range) -> None:
        way = packing_of(self.attention, height)
        held = self.leaving.take()
        size, element = way.rows * way.width, element_type(way.dtype)
        source = restride(made, [ir.MemRefType(made.type).shape[0]], [1])
        if self.dtype == "f32":
            assert self.apart is not None, "results of f32 have a buffer of their own"
            source = self.apart.at(0, self.size, element)
        result = viewed(held, [size], element)
        build_dense(way.packed(), {SOURCE: source, RESULT: result}, self.parts)
        run = DenseRun(self.gm, batch, mul(rows.start, SIDE), rows.elements)
        store_run(viewed(held, [size], ir.MemRefType(self.gm.type).element_type), run)

    def _store_fractals(self, made: ir.Value, height: int, batch: IndexLike, rows: Range) -> None:
        """With zeros where the matrix ends inside a fractal."""
        columns = self.columns
        if rest := height * SIDE - rows.elements:
            pad = restride(
                made, [columns, rest * SIDE], [height * FRACTAL, 1], rows.elements * SIDE
            )
            fill_zeros(pad)
        if tail := self.attention.columns % SIDE:
            last = restride(
                made, [height * SIDE, SIDE], [SIDE, 1], (columns - 1) * height * FRACTAL
            )
            fill_lanes(self.dtype, last, tail, SIDE, 0.0)
        shape = [columns, height, SIDE, SIDE]
        there = subview(self.gm, [batch, 0, rows.start, 0, 0], [1, *shape], drop=[0])
        cce.copy(restride(made, shape, [height * FRACTAL, FRACTAL, SIDE, 1]), there)
