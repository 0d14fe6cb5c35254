"""Parts of C on their way from L0C straight to GM, from cores without a vector unit.

Behind the last windows of images, fractals hold what loads of windows make of pixels in which other
windows are, or a row that mads begin with; the rows of C there must be zeros, and no vector unit
clears them. The cube makes a row of fractals of zeros once, in L0C, which leaves behind each part
that has such rows.
"""

from __future__ import annotations

from davinci.dialects.cce import build as cce
from davinci.isa.quantize import word
from davinci.mlir import arith, ir
from davinci.passes.ascend_to_cce.products.parts import FactorViews, PartOfC
from davinci.passes.ascend_to_cce.products.ring import PARTS, PartRing
from davinci.passes.ascend_to_cce.products.rows import FRACTAL
from davinci.passes.ascend_to_cce.products.words import ScaleWords
from davinci.passes.ascend_to_cce.serving import serving
from davinci.passes.builder import add, alloc, divided, mul, reshaped, restride, subview
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
        words: by which they are scaled; None where they are not.
        zeros: fractals of zeros in L0C, as many as a tile has columns, which pad the last rows of
            fractals; None where sums are zeros there.
        ring: where parts of C in rows go from which vector cores take them; None if none do.
    """

    def __init__(
        self,
        output: ir.Value,
        members: tuple[int, ...],
        rectified: bool = False,
        words: ScaleWords | None = None,
        zeros: ir.Value | None = None,
        ring: PartRing | None = None,
    ) -> None:
        self.output, self.members, self.rectified = output, members, rectified
        self.words, self.zeros, self.ring = words, zeros, ring
        kind = ir.MemRefType(output.type)
        self.lanes = SIDE
        self.lines: ir.Value | None = None
        """C in fractals, as rows of `lanes` elements; None of rows."""
        if kind.rank == 5:
            strides, offset = kind.get_strides_and_offset()
            batch, columns, rows, _, self.lanes = kind.shape
            shape = [batch, columns, rows * SIDE, self.lanes]
            self.lines = restride(output, shape, [*strides[:2], self.lanes, 1], offset)

    def leave(self, event: Leave, source: ir.Value, part: PartOfC) -> None:
        """A part of C, [n][m][16][16] in L0C, to its place."""
        place, m = part.place, part.m.size
        with serving(*self.members):
            if self.ring is not None:
                with PARTS.giving():
                    self._store(source, self.ring.next(place), part)
                return
            row, rest = mul(place.row, SIDE), 0
            if self.lines is None:
                at = [place.batch, row, mul(place.column, SIDE)]
                target = subview(self.output, at, [1, place.rows, place.columns], drop=[0])
                self._store(source, target, part)
                return
            if self.zeros is not None:
                rest = m * SIDE - place.rows
            columns = part.n.size * SIDE // self.lanes
            at = [place.batch, divided(place.column, self.lanes // SIDE), row, 0]
            shape = [1, columns, m * SIDE - rest, self.lanes]
            self._store(source, subview(self.lines, at, shape, drop=[0]), part)
            if self.zeros is not None and rest:
                at[2], shape[2] = add(row, place.rows), rest
                self._store_zeros(part.n.size, subview(self.lines, at, shape, drop=[0]))

    def _store(self, source: ir.Value, target: ir.Value, part: PartOfC) -> None:
        """Sums of a part to their place, as they are or scaled."""
        if self.words is None:
            cce.fixpipe(source, target, relu=self.rectified)
        else:
            cce.fixpipe_scaled(source, self.words.of(part), target, relu=self.rectified)

    def _store_zeros(self, columns: int, target: ir.Value) -> None:
        """Zeros behind the last rows of so many fractals of columns."""
        assert self.zeros is not None, "fractals without zeros that pad them"
        made = reshaped(self.zeros, [columns, 1, SIDE, SIDE])
        if self.words is None:
            cce.fixpipe(made, target)
            return
        one = arith.ConstantOp(ir.IntegerType.get_signless(64), word(1.0)).result
        cce.fixpipe_scaled(made, one, target)
