"""Parts of C with whole rows on their way from L0C to GM, with what the vector unit does to them.

    L0C [n][m][16][16] -> UB -> rows, a few at a time -> operators and reductions -> GM
          V                       V                          V                      MTE3

The rows are tiles of a kernel of the vector unit (`pieces`), but for where they come from.
"""

from __future__ import annotations

from collections.abc import Sequence

from davinci.dialects.cce import build as cce
from davinci.isa.core import DTYPES
from davinci.mlir import ir
from davinci.passes.ascend_to_cce.products.parts import PartOfC
from davinci.passes.ascend_to_cce.products.pieces import PieceBuilder
from davinci.passes.ascend_to_cce.products.rows import FRACTAL
from davinci.passes.ascend_to_cce.serving import serving
from davinci.passes.ascend_to_cce.vector.program import element_type
from davinci.passes.ascend_to_cce.vector.row_statistics import build_steps, scratch_buffers
from davinci.passes.ascend_to_cce.vector.tile_builder import TileBuilder
from davinci.passes.builder import IndexLike, alloc, mul, restride, viewed
from davinci.schedule.products.events import Leave
from davinci.schedule.products.footprint import room_for_rows
from davinci.schedule.products.product import Product, ProductSchedule
from davinci.schedule.products.row_costs import plan_of_work
from davinci.schedule.products.staged_rows import StagedRows
from davinci.schedule.vector.schedule import VectorPlan
from davinci.schedule.vector.steps import RESULT, SOURCE
from davinci.units import FRACTAL_SIDE as SIDE


class RowsExit:
    """Moves parts of C out, whose rows are computed on.

    Args:
        extras: in GM, what the operators read besides C.
        outputs: in GM, what they make, and C, if that leaves as well.
        members: the product, by number in its kernel.
    """

    def __init__(
        self,
        extras: Sequence[ir.Value],
        outputs: Sequence[ir.Value],
        product: Product,
        schedule: ProductSchedule,
        members: tuple[int, ...],
    ) -> None:
        work = product.work
        assert work is not None, "rows on which nothing is computed"
        self.product, self.work, self.members = product, work, members
        rows = schedule.part[1]
        size = work.staged(rows * SIDE, SIDE).elements
        self.element = element_type(work.dtype)
        self.stage = alloc([size * DTYPES[work.dtype].itemsize], element_type("s8"), "UB")
        plan = plan_of_work(work, rows * SIDE, room_for_rows(product, schedule))
        whole = viewed(self.stage, [size], self.element)
        made, kept = (outputs[:-1], outputs[-1]) if work.kept else (outputs, None)
        self.pieces = StagedPieces(plan, [whole, *extras, *made], members, kept)

    def leave(self, event: Leave, source: ir.Value, part: PartOfC) -> None:
        """Takes a part of C, [n][m][16][16] in L0C, to UB, and builds the work on its rows."""
        n, m, place = part.n.size, part.m.size, part.place
        pieces = self.pieces
        staged = self.work.staged(m * SIDE, pieces.block)
        held = viewed(self.stage, [staged.elements], self.element)
        fractals = restride(held, [n, m, SIDE, SIDE], [staged.column, FRACTAL, SIDE, 1])
        with serving(*self.members):
            cce.copy_l0c(source, fractals)
            if (ends := staged.ended()) is not None:
                build_steps(ends, scratch_buffers(ends) | {RESULT: held})
        row, column = mul(place.row, SIDE), mul(place.column, SIDE)
        corner = pieces.corner(place.batch, self.product.m, row, column)
        pieces.staged = staged
        pieces.rows(held, 0, (place.rows, place.columns), corner)
        pieces.finish()


class StagedPieces(PieceBuilder):
    """Builds work on rows of a part whose fractals are in UB.

    Attributes:
        staged: the part's rows.
        first: the first row of the piece that is loaded.
    """

    staged: StagedRows

    def __init__(
        self,
        plan: VectorPlan,
        arguments: Sequence[ir.Value],
        members: tuple[int, ...],
        kept: ir.Value | None,
    ) -> None:
        """Args:
        members: the product, by number in its kernel.
        kept: where C lies in GM; None if it does not leave.
        """
        super().__init__(plan, arguments)
        self.members, self.first = members, 0
        self.kept = None if kept is None else TileBuilder._array(self, kept, self.sums)

    def _find(self, part: ir.Value, at: IndexLike, sizes: Sequence[int]) -> None:
        assert isinstance(at, int), "parts are written out row by row"
        self.arrays[self.sums], self.first = part, at

    def _load_tile(self, number: int, starts: Sequence[IndexLike]) -> None:
        if number != self.sums:
            super()._load_tile(number, starts)
            return
        value = self.program.loads[number]
        held, shape = self._held(value), self.layout.shape(value)
        taken = self.staged.taken(self.first, shape[-2], shape[-1])
        with serving(*self.members):
            build_steps(taken, {SOURCE: self.arrays[number], RESULT: held})
            if self.kept is not None:
                self.arrays[number] = self.kept
                self._move(number, value, starts, load=False)
        self._fill(held, value.dtype, self.staged.lanes)
