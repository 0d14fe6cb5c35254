"""Where cube cores leave parts of C for the vector cores beside them.

The cube core stores parts of C into a ring of a few places, and each of its vector cores takes half
of the rows of each (`core_rings`).
"""

from __future__ import annotations

from davinci.dialects.cce import build as cce
from davinci.mlir import ir
from davinci.passes.ascend_to_cce.products.parts import ResultPlace
from davinci.passes.builder import IndexLike, add, mul, remainder, subview
from davinci.passes.core_rings import TileRing
from davinci.units import FRACTAL_SIDE as SIDE

AHEAD = 2
"""Parts that a cube core may be ahead of its vector cores, which is how many places rings have."""

PARTS = TileRing(made=1, taken=2, places=AHEAD, stores="FIX", loads="MTE2")
"""The flags by which parts are counted."""


class PartRing:
    """Places of parts, one after the other, as one of the cores counts them.

    Args:
        array: the rings of all blocks, [blocks][places][rows][columns], or all of C,
            [matrices][rows][columns], where each part has its own place.

    Attributes:
        left: parts of a share that have left.
    """

    def __init__(self, array: ir.Value) -> None:
        self.array = array
        self.left: IndexLike = 0
        self.shared = ir.MemRefType(array.type).rank > 3
        self.block = cce.get_block_idx() if self.shared else None

    def next(self, place: ResultPlace) -> ir.Value:
        """The place of the next part, which lies there in C."""
        turn, self.left = self.left, add(self.left, 1)
        size = [place.rows, place.columns]
        if self.block is None:
            at = [place.batch, mul(place.row, SIDE), mul(place.column, SIDE)]
            return subview(self.array, at, [1, *size], drop=[0])
        return subview(
            self.array, [self.block, remainder(turn, AHEAD), 0, 0], [1, 1, *size], drop=[0, 1]
        )
