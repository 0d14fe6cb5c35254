"""A matrix of f16 that the cube adds to sums: columns of its fractals times ones on a diagonal.

    GM [n / 16][m / 16][16][16] -> L1 -> L0A, a column after the other

for each tile, before it leaves. The vector unit would widen it and add it in f32, which takes it
eight cycles a fractal; the cube one, and sums may be rounded where they leave L0C.
"""

from __future__ import annotations

from davinci.dialects.cce import build as cce
from davinci.mlir import ir
from davinci.passes.ascend_to_cce.products.parts import Place
from davinci.passes.ascend_to_cce.products.rows import FRACTAL
from davinci.passes.ascend_to_cce.vector.program import scalar
from davinci.passes.builder import alloc, reshaped, restride, subview
from davinci.schedule.products.epilogue import MATRIX_BUFFERS
from davinci.schedule.products.events import Leave
from davinci.schedule.products.product import ProductSchedule
from davinci.units import FRACTAL_SIDE as SIDE


class Matrix:
    """Buffers of the matrix, and of ones on a diagonal in L0B.

    Args:
        gm: the matrix, [batch][n / 16][m / 16][16][16].
    """

    def __init__(self, schedule: ProductSchedule, gm: ir.Value) -> None:
        f16, tile = ir.F16Type.get(), schedule.tile
        self.gm = gm
        self.l1 = [alloc([tile.n * tile.m * FRACTAL], f16, "L1") for _ in range(2)]
        self.l0a = [alloc([tile.m * FRACTAL], f16, "L0A") for _ in range(MATRIX_BUFFERS)]
        self.diagonal = self._diagonal()

    @staticmethod
    def _diagonal() -> ir.Value:
        f16 = ir.F16Type.get()
        ub, l1, l0b = (alloc([FRACTAL], f16, memory) for memory in ("UB", "L1", "L0B"))
        cce.vector_dup(scalar("f16", 0.0), ub)
        for i in range(SIDE):
            row = restride(ub, [1, SIDE], [SIDE, 1], i * SIDE)
            cce.vector_dup(scalar("f16", 1.0), row, first_lane=i, lanes=1)
        cce.copy(ub, l1)
        made: ir.Value = reshaped(l0b, [1, 1, SIDE, SIDE])
        cce.load2d(reshaped(l1, [1, 1, SIDE, SIDE]), made)
        return made

    def bring(self, event: Leave, place: Place) -> None:
        """A tile's part of the matrix to L1; `place`: of the first part of the tile."""
        shape = [event.tile.n.size, event.tile.m.size, SIDE, SIDE]
        at = [place.batch, place.column, place.row, 0, 0]
        cce.copy(subview(self.gm, at, [1, *shape], drop=[0]), reshaped(self.l1[event.turn], shape))

    def add(self, event: Leave, sums: ir.Value, false: ir.Value) -> None:
        """Adds it to a tile in L0C."""
        n, m = event.tile.n.size, event.tile.m.size
        fractals = [FRACTAL, SIDE, 1]
        for column in range(n):
            at = column * m * FRACTAL
            l0a = reshaped(self.l0a[column % MATRIX_BUFFERS], [m, 1, SIDE, SIDE])
            source = self.l1[event.turn]
            cce.load2d(restride(source, [m, 1, SIDE, SIDE], [FRACTAL, *fractals], at), l0a)
            target = restride(sums, [1, m, SIDE, SIDE], [m * FRACTAL, *fractals], at)
            cce.mad(l0a, self.diagonal, target, false)
