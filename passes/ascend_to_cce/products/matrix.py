"""A matrix of f16 that the cube adds to sums: columns of its fractals times ones on a diagonal.

    GM [n / 16][m / 16][16][16] -> L1 -> L0A, a few columns at once

for each tile, before it leaves. The vector unit would widen it and add it in f32, which takes it
eight cycles a fractal; the cube one, and sums may be rounded where they leave L0C.
"""

from __future__ import annotations

from davinci.dialects.cce import build as cce
from davinci.mlir import ir
from davinci.passes.ascend_to_cce.products.parts import ResultPlace
from davinci.passes.ascend_to_cce.products.rows import FRACTAL
from davinci.passes.ascend_to_cce.vector.program import scalar
from davinci.passes.builder import alloc, reshaped, restride, subview
from davinci.schedule.products.events import Add, Leave
from davinci.schedule.products.extras import BUFFERS
from davinci.schedule.products.product import ProductSchedule
from davinci.units import FRACTAL_SIDE as SIDE


class Matrix:
    """Buffers of the matrix, and of ones on a diagonal in L0B.

    Args:
        gm: the matrix, [batch][n / 16][m / 16][16][16].
        columns: that are added at once.
        diagonal: a fractal of ones on a diagonal in GM, which cores without a vector unit cannot
            make; None of others.
    """

    def __init__(
        self,
        schedule: ProductSchedule,
        gm: ir.Value,
        columns: int,
        diagonal: ir.Value | None = None,
    ) -> None:
        f16, tile = ir.F16Type.get(), schedule.tile
        self.gm = gm
        self.l1 = [alloc([tile.n * tile.m * FRACTAL], f16, "L1") for _ in range(BUFFERS)]
        self.l0a = [alloc([columns * tile.m * FRACTAL], f16, "L0A") for _ in range(BUFFERS)]
        self.diagonal = self._diagonal(diagonal)

    @staticmethod
    def _diagonal(gm: ir.Value | None) -> ir.Value:
        f16 = ir.F16Type.get()
        l1, l0b = (alloc([FRACTAL], f16, memory) for memory in ("L1", "L0B"))
        if gm is not None:
            cce.copy(reshaped(gm, [FRACTAL]), l1)
        else:
            ub = alloc([FRACTAL], f16, "UB")
            cce.vector_dup(scalar("f16", 0.0), ub)
            for i in range(SIDE):
                row = restride(ub, [1, SIDE], [SIDE, 1], i * SIDE)
                cce.vector_dup(scalar("f16", 1.0), row, first_lane=i, lanes=1)
            cce.copy_l1(ub, l1)
        made: ir.Value = reshaped(l0b, [1, 1, SIDE, SIDE])
        cce.load2d(reshaped(l1, [1, 1, SIDE, SIDE]), made)
        return made

    def bring(self, event: Leave, place: ResultPlace) -> None:
        """A tile's part of the matrix to L1; `place`: of the tile."""
        shape = [event.tile.n.size, event.tile.m.size, SIDE, SIDE]
        at = [place.batch, place.column, place.row, 0, 0]
        cce.copy(subview(self.gm, at, [1, *shape], drop=[0]), reshaped(self.l1[event.slot], shape))

    def add(self, event: Add, sums: ir.Value, false: ir.Value) -> None:
        """Adds columns of it to those of a tile in L0C."""
        m, count = event.tile.m.size, event.n.size
        column, fractals = m * FRACTAL, [FRACTAL, SIDE, 1]
        l0a, source = self.l0a[event.slot], self.l1[event.held]
        shape, at = [count * m, 1, SIDE, SIDE], event.n.start * column
        strides = [FRACTAL, *fractals]
        cce.load2d(restride(source, shape, strides, at), reshaped(l0a, shape))
        for number in range(count):
            a = restride(l0a, [m, 1, SIDE, SIDE], strides, number * column)
            target = restride(sums, [1, m, SIDE, SIDE], [column, *fractals], at + number * column)
            cce.mad(a, self.diagonal, target, false)
