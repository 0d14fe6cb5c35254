"""Operands of attention on their way to L1: Q, which is scaled, and K in rows.

Loads of windows make fractals of rows of K:

    GM  [keys][depth] -> L1  the same -> L0A [keys / 16][depth / 16][16][16]
                 MTE2               MTE1

In L1 a tile is an image of one row, whose pixels are 16 elements: a key is `depth / 16` pixels, a
window has so many, and as many are from window to window. Windows behind the last key lie below the
image and are zero.
"""

from __future__ import annotations

import math

from davinci.dialects.cce import build as cce
from davinci.mlir import ir
from davinci.passes.ascend_to_cce.attention.columns import KeyColumns
from davinci.passes.ascend_to_cce.products.feed import Feed, ShareRegion, elements
from davinci.passes.ascend_to_cce.products.rows import FRACTAL, RowRing
from davinci.passes.ascend_to_cce.vector.program import scalar
from davinci.passes.builder import add, constant_index, restride, subview
from davinci.schedule.products.events import Block, Fill, Held
from davinci.schedule.products.product import Pieces, ProductOperand
from davinci.units import FRACTAL_SIDE as SIDE


class ScaledFeed(Feed):
    """Multiplies an operand on its way, in UB."""

    scale = 1.0
    ring: RowRing | None = None
    columns: KeyColumns | None = None

    def stored(self, block: Block, region: ShareRegion) -> ir.Value:
        fractals = super().stored(block, region)
        if self.scale == 1.0 and self.columns is None:
            return fractals
        kind = ir.MemRefType(fractals.type)
        if self.ring is not None:
            columns, rows, *_ = kind.shape
            flat = self.ring.next(columns * rows * FRACTAL, kind.element_type)
            place = restride(flat, kind.shape, [rows * FRACTAL, FRACTAL, SIDE, 1])
            cce.copy(fractals, place)
            fractals = place
        whole = fractals
        if self.ring is not None or (self.to_fractals is not None and self.to_fractals.direct):
            whole = restride(fractals, [math.prod(kind.shape) // SIDE, SIDE], [SIDE, 1])
        if self.columns is None:
            cce.vmuls(whole, scalar("f16", self.scale), whole)
        else:
            shape = ir.MemRefType(whole.type).shape
            factor = restride(self.columns.factor, shape, [*[0] * (len(shape) - 1), 1])
            cce.vmul(whole, factor, whole)
        return fractals


class KeyRowsFeed(Feed):
    """Fills L1 with rows of K, a tile a piece."""

    def __init__(self, gm: ir.Value, operand: ProductOperand, pieces: Pieces) -> None:
        super().__init__(gm, operand, pieces, None)
        self.keys = [0] * pieces.slots

    def fill(self, fill: Fill, region: ShareRegion) -> None:
        """Brings a whole piece."""
        piece = fill.held.piece
        row, count = elements(piece.other, region.other)
        width = piece.k.size * SIDE
        batch = add(region.batch, fill.block.batch)
        source = subview(self.gm, [batch, row, 0], [1, count, width], drop=[0])
        cce.copy(source, restride(self.l1[fill.held.slot], [count, width], [width, 1]))
        self.keys[fill.held.slot] = count

    def load(self, held: Held, block: Block, l0: ir.Value, k_first: bool) -> None:
        """A whole piece to L0A."""
        assert not k_first and block == held.piece, "parts of a tile of keys"
        depth, zero = block.k.size, constant_index(0)
        width = self.keys[held.slot] * depth
        shape = [block.other.size, depth, SIDE, SIDE]
        cce.load3d(
            restride(
                self.l1[held.slot], [1, 1, width, SIDE], [width * SIDE, width * SIDE, SIDE, 1]
            ),
            zero,
            zero,
            restride(l0, shape, [depth * FRACTAL, FRACTAL, SIDE, 1]),
            kernel=(1, depth),
            strides=(1, depth),
            dilations=(1, 1),
            pads=(0, 0),
            element=0,
        )
