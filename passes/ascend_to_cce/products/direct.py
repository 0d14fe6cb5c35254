"""Parts of C on their way from L0C straight to GM, from cores without a vector unit.

Behind the last windows of images, fractals hold what loads of windows make of pixels in which other
windows are, or a row that mads begin with; the rows of C there must be zeros, and no vector unit
clears them. The cube makes a row of fractals of zeros once, in L0C, which leaves behind each part
that has such rows.
"""

from __future__ import annotations

from davinci.dialects.cce import build as cce
from davinci.mlir import arith, ir
from davinci.passes.ascend_to_cce.products.parts import FactorViews, PartOfC
from davinci.passes.ascend_to_cce.products.ring import PARTS, PartRing
from davinci.passes.ascend_to_cce.products.rows import FRACTAL
from davinci.passes.ascend_to_cce.serving import serving
from davinci.passes.builder import add, alloc, mul, reshaped, restride, subview
from davinci.schedule.products.events import Leave
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import row_major


def make_zeros(a: FactorViews, b: FactorViews, sums: ir.Value, columns: int) -> None:
    """Makes a row of fractals of C that are zeros.

    Args:
        a, b: buffers of a fractal in L0A and in L0B, which get zeros.
        sums: buffer of so many fractals in L0C.
    """
    fractal = alloc([FRACTAL], ir.F16Type.get(), "L1")
    cce.clear_l1(restride(fractal, [1, FRACTAL], [FRACTAL, 1]))
    for held in (a, b):
        cce.load2d(*(reshaped(words, [1, 1, SIDE, SIDE]) for words in (fractal, held.words)))
    begins = arith.ConstantOp(ir.IntegerType.get_signless(1), 1).result
    left, right = (reshaped(held.elements, [1, 1, SIDE, held.lanes]) for held in (a, b))
    shape = [1, 1, SIDE, SIDE]
    for column in range(columns):
        cce.mad(left, right, restride(sums, shape, row_major(shape), column * FRACTAL), begins)


class DirectExit:
    """Moves parts of C out.

    Args:
        output: C in GM: [batch][rows][columns], or [batch][columns][rows][16][16].
        members: the product, by number in its kernel.
        rectified: whether negative sums leave as 0.
        zeros: fractals of zeros in L0C, as many as a tile has columns, which pad the last rows of
            fractals; None where sums are zeros there.
        ring: where parts of C in rows go from which vector cores take them; None if none do.
    """

    def __init__(
        self,
        output: ir.Value,
        members: tuple[int, ...],
        rectified: bool = False,
        zeros: ir.Value | None = None,
        ring: PartRing | None = None,
    ) -> None:
        self.output, self.members, self.rectified = output, members, rectified
        self.zeros, self.ring = zeros, ring
        kind = ir.MemRefType(output.type)
        self.lines: ir.Value | None = None
        """C in fractals, as rows of 16 elements; None of rows."""
        if kind.rank == 5:
            strides, offset = kind.get_strides_and_offset()
            batch, columns, rows, *_ = kind.shape
            shape = [batch, columns, rows * SIDE, SIDE]
            self.lines = restride(output, shape, [*strides[:2], SIDE, 1], offset)

    def leave(self, event: Leave, source: ir.Value, part: PartOfC) -> None:
        """A part of C, [n][m][16][16] in L0C, to its place."""
        place, n, m = part.place, part.n.size, part.m.size
        with serving(*self.members):
            if self.ring is not None:
                with PARTS.giving():
                    cce.fixpipe(source, self.ring.next(place), relu=self.rectified)
                return
            row, rest = mul(place.row, SIDE), 0
            if self.lines is None:
                at = [place.batch, row, mul(place.column, SIDE)]
                target = subview(self.output, at, [1, place.rows, place.columns], drop=[0])
                cce.fixpipe(source, target, relu=self.rectified)
                return
            if self.zeros is not None:
                rest = m * SIDE - place.rows
            at, shape = [place.batch, place.column, row, 0], [1, n, m * SIDE - rest, SIDE]
            target = subview(self.lines, at, shape, drop=[0])
            cce.fixpipe(source, target, relu=self.rectified)
            if self.zeros is not None and rest:
                at[2], shape[2] = add(row, place.rows), rest
                made = reshaped(self.zeros, [n, 1, SIDE, SIDE])
                cce.fixpipe(made, subview(self.lines, at, shape, drop=[0]))
