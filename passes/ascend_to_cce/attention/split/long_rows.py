"""K and V on their way to L1 with several rows as one.

A part of the keys has as many fractals as neighbouring keys are one long row, so that there are 16
of these. They become fractals on their way like any rows, each the fractals of its keys side by
side:

    GM  [16][part][width]  ->  L1  [part][width / 16][16][16]

Fractal i of the keys has the i-th key of each long row. K and V are in that order both, and nothing
else asks which key a score is of. Fewer rows are fewer requests to the L2, each of whole lines,
which serve the cores that read them one after the other; and K lies as L0A has it. The last keys,
if they are no whole part, come fractal by fractal in their own order.
"""

from __future__ import annotations

from collections.abc import Iterator

from davinci.dialects.cce import build as cce
from davinci.mlir import ir
from davinci.passes.ascend_to_cce.products.feed import Feed, ShareRegion, elements
from davinci.passes.ascend_to_cce.products.rows import FRACTAL
from davinci.passes.builder import IndexLike, add, mul, restride, subview
from davinci.schedule.products.events import Block, Fill, Held
from davinci.schedule.products.product import Pieces, ProductOperand
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div


class LongRowsFeed(Feed):
    """Fills L1 with parts of the keys of K or V, each a piece.

    Args:
        gm: [matrices][keys][width].
        width: of a row, in fractals.
    """

    def __init__(self, gm: ir.Value, operand: ProductOperand, pieces: Pieces, width: int) -> None:
        super().__init__(gm, operand, pieces, None)
        matrices, self.keys, _ = ir.MemRefType(gm.type).shape
        self.count, self.width = matrices * self.keys, width

    def fill(self, fill: Fill, region: ShareRegion) -> None:
        """Brings a whole part, or the keys that there are of the last one."""
        piece, along = fill.held.piece, (region.other, region.k)[self.operand.k_rows]
        span = piece.k if self.operand.k_rows else piece.other
        start, count = elements(span, along)
        first = add(mul(region.batch, self.keys), start)
        if count == span.size * SIDE:
            self.bring(first, span.size, SIDE, fill.held.slot, 0)
            return
        for fractal in range(ceil_div(count, SIDE)):
            there = min(SIDE, count - fractal * SIDE)
            self.bring(add(first, fractal * SIDE), 1, there, fill.held.slot, fractal)

    def bring(self, first: IndexLike, joined: int, rows: int, slot: int, fractal: int) -> None:
        """Rows of keys, so many joined to each long one.

        Args:
            first: the number of the first key in all matrices.
            fractal: of the keys of the piece, where they go.
        """
        width, size = self.width * SIDE, [rows, joined * self.width * SIDE]
        starts = self.count - rows * joined + 1
        windows = restride(self.gm, [starts, *size], [width, size[1], 1])
        source = subview(windows, [first, 0, 0], [1, *size], drop=[0])
        offset = fractal * self.width * FRACTAL
        shape, strides = [joined * self.width, rows, SIDE], [FRACTAL, SIDE, 1]
        cce.nd2nz(source, restride(self.l1[slot], shape, strides, offset))
        if rest := SIDE - rows:
            place = [shape[0], rest * SIDE], [FRACTAL, 1], offset + rows * SIDE
            cce.clear_l1(restride(self.l1[slot], *place))

    def loads(self, held: Held, block: Block, k_first: bool) -> Iterator[tuple[Block, ir.Value]]:
        """What a piece in L1 has of keys, as [keys / 16][width / 16] of fractals."""
        span = block.k if self.operand.k_rows else block.other
        shape, strides = [span.size, self.width], [self.width * FRACTAL, FRACTAL]
        offset = span.start * self.width * FRACTAL
        yield (
            block,
            restride(self.l1[held.slot], [*shape, SIDE, SIDE], [*strides, SIDE, 1], offset),
        )
