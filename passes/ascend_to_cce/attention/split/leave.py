"""O of the rows of a quarter on its way out of UB: products with V over the sums of weights.

inverse    1 / sum, a block for each row
O          P V times that, f16 or f32, in rows or fractals                     -> GM
"""

from __future__ import annotations

from davinci.dialects.cce import build as cce
from davinci.mlir import ir
from davinci.passes.ascend_to_cce.attention.split.steps import choose
from davinci.passes.ascend_to_cce.attention.split.sums import F32_BLOCK, QuarterLayout
from davinci.passes.ascend_to_cce.serving import serving
from davinci.passes.ascend_to_cce.vector.program import scalar
from davinci.passes.builder import IndexLike, add, alloc, mul, reshaped, restride, viewed
from davinci.schedule.attention.attention import Attention
from davinci.schedule.attention.members import Members
from davinci.schedule.attention.split import SplitAttentionSchedule
from davinci.units import FRACTAL_SIDE as SIDE


class QuarterExit:
    """Divides and stores what a vector core has of the rows of a quarter.

    Args:
        lies: how products with V lie.
        gm: O, [matrices][rows][columns], or [matrices] of fractals.
        lane: the number of the vector core in its block.
        row_lane: which rows of a quarter it has.

    Attributes:
        inverse: a buffer with a block for each row.
    """

    def __init__(
        self,
        attention: Attention,
        schedule: SplitAttentionSchedule,
        lies: QuarterLayout,
        gm: ir.Value,
        lane: ir.Value,
        row_lane: IndexLike,
        members: Members,
    ) -> None:
        self.attention, self.schedule, self.members = attention, schedule, members
        self.lies, self.made = lies, lies.of(attention.fractals.columns)
        # Fractals of a column follow each other, and so do all of its rows.
        shape = [attention.batch, *self.made.shape(attention.rows)]
        self.gm, self.lane, self.row_lane = reshaped(gm, shape), lane, row_lane
        self.dtype = "f16" if attention.o.itemsize == 2 else "f32"
        self.element = ir.F16Type.get() if self.dtype == "f16" else ir.F32Type.get()
        self.inverse = alloc([lies.height * F32_BLOCK], ir.F32Type.get(), "UB")

    def leave(
        self, sums: ir.Value, room: ir.Value, matrix: IndexLike, block: IndexLike, sub: int
    ) -> None:
        """Stores the rows of a quarter.

        Args:
            sums: products with V of these.
            room: bytes in UB for O.
        """
        height, columns = self.lies.height, self.made.columns
        made = viewed(room, [height * self.made.width], self.element)
        with serving(*self.members.quotient):
            total = self.lies.column(columns).of(sums)
            cce.vrec(total, restride(self.inverse, [height, F32_BLOCK], [F32_BLOCK, 1]))
            source = self.lies.blocks(0, height, columns).of(sums)
            inverse = self.lies.factors(0, height, columns).of(self.inverse)
            target = self.made.blocks(0, height, columns).of(made)
            cce.vmul(source, inverse, source if self.dtype == "f16" else target)
        with serving(*(self.members.leaving or self.members.product)):
            if self.dtype == "f16":
                divided = self.lies.of(columns).shape(height)
                strides = self.lies.rows(0, height).strides
                rows = restride(sums, divided, strides)
                cce.vconv(rows, self.made.rows(0, height).of(made))
            self.store(made, matrix, block, sub)

    def store(self, made: ir.Value, matrix: IndexLike, block: IndexLike, sub: int) -> None:
        """The rows of a quarter that there are."""
        height, unit = self.lies.height, self.schedule.unit_rows * SIDE
        last = self.schedule.blocks_of_rows(self.attention) - 1
        lanes = self.schedule.lanes
        row = add(mul(block, unit), mul(add(sub * lanes, self.row_lane), height))
        left = self.attention.rows - last * unit

        def rows(count: int) -> None:
            if count > 0:
                self.pad(made, count)
                target = self.made.in_gm(self.gm, [matrix], row, count)
                cce.copy(self.made.rows(0, count).of(made), target)

        def tail() -> None:
            first, *other = (
                min(height, left - (sub * lanes + lane) * height) for lane in range(lanes)
            )
            if other and other[0] != first:
                choose(self.lane, 0, lambda: rows(first), lambda: rows(other[0]))
            else:
                rows(first)

        if left == unit:
            rows(height)
        elif last == 0:
            tail()
        else:
            choose(block, last, tail, lambda: rows(height))

    def pad(self, made: ir.Value, count: int) -> None:
        """Zeros behind the last row of what leaves in fractals."""
        if self.attention.o.nz and count % SIDE:
            shape = [self.made.columns, -count % SIDE * SIDE]
            rest = restride(made, shape, [self.lies.height * SIDE, 1], count * SIDE)
            cce.vector_dup(scalar(self.dtype, 0.0), rest)
