"""Parts of C on their way from L0C straight to GM, from cores without a vector unit."""

from __future__ import annotations

from davinci.dialects.cce import build as cce
from davinci.mlir import ir
from davinci.passes.ascend_to_cce.products.parts import PartOfC
from davinci.passes.ascend_to_cce.serving import serving
from davinci.passes.builder import mul, subview
from davinci.schedule.products.events import Leave
from davinci.units import FRACTAL_SIDE as SIDE


class DirectExit:
    """Moves parts of C out.

    Args:
        output: C in GM: [batch][rows][columns], or [batch][columns][rows][16][16].
        members: the product, by number in its kernel.
    """

    def __init__(self, output: ir.Value, members: tuple[int, ...]) -> None:
        self.output, self.members = output, members
        self.nz = ir.MemRefType(output.type).rank == 5

    def leave(self, event: Leave, source: ir.Value, part: PartOfC) -> None:
        """A part of C, [n][m][16][16] in L0C, to its place."""
        place = part.place
        if self.nz:
            at = [place.batch, place.column, place.row, 0, 0]
            shape = [1, part.n.size, part.m.size, SIDE, SIDE]
        else:
            at = [place.batch, mul(place.row, SIDE), mul(place.column, SIDE)]
            shape = [1, place.rows, place.columns]
        with serving(*self.members):
            cce.fixpipe(source, subview(self.output, at, shape, drop=[0]))
