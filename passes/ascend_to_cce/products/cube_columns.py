"""Numbers of f32 as columns of fractals, which the cube adds to sums.

    x   [n] of f32 in UB -> [n / 16][16][16] of f16: of row i, f16(x_i / 8) in columns 0, 2, 4, ..
        and what that leaves of x_i / 8, as f16, in columns 1, 3, 5, ..

Times rows of ones, the sum of a row is x_i, as exact as sums of f32 are.
"""

from __future__ import annotations

from davinci.dialects.cce import build as cce
from davinci.mlir import ir
from davinci.passes.builder import alloc, restride
from davinci.units import FRACTAL_SIDE as SIDE

PAIRS = SIDE // 2
"""How often the two columns are repeated in those of a fractal."""


class ColumnBuffers:
    """Buffers in which `count` numbers, whole fractals of rows, become columns.

    Attributes:
        fractals: the result, flat.
    """

    def __init__(self, count: int) -> None:
        f16 = ir.F16Type.get()
        self.count = count
        self.pair = alloc([2 * count], f16, "UB")
        self.fractals = alloc([SIDE * count], f16, "UB")

    def split(self, eighths: ir.Value, other: ir.Value, count: int = 0) -> None:
        """Makes the columns of numbers, of which an eighth is given.

        Args:
            eighths, other: f32, overwritten.
            count: of numbers, if fewer than there is room for.
        """
        count = count or self.count
        shape = [count]
        high, low = (restride(self.pair, shape, [1], at) for at in (0, count))
        given, left = restride(eighths, shape, [1]), restride(other, shape, [1])
        cce.vconv(given, high)
        cce.vconv(high, left)
        cce.vsub(given, left, given)
        cce.vconv(given, low)
        rows = count // SIDE
        columns = restride(self.pair, [PAIRS, 2, rows, SIDE], [0, count, SIDE, 1])
        turned = restride(self.fractals, [SIDE, rows, SIDE], [SIDE, SIDE * SIDE, 1])
        cce.vnchwconv(columns, turned)
