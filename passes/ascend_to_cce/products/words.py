"""Words by which fixpipe scales columns of C on their way out of L0C.

    GM [columns of C][2] of i32 -> L1 -> the buffer of fixpipe (FB) [fractals of columns][16] of i64

Those of all columns come to L1 when the kernel begins, and at once to FB if that has room for them;
else FB gets those of each part before it leaves.
"""

from __future__ import annotations

import math

from davinci.dialects.cce import build as cce
from davinci.mlir import ir
from davinci.passes.ascend_to_cce.products.parts import PartOfC
from davinci.passes.ascend_to_cce.vector.program import element_type
from davinci.passes.builder import alloc, restride, subview, viewed
from davinci.schedule.products.extras import WORDS_BYTES
from davinci.schedule.products.product import Product, ProductSchedule
from davinci.units import BLOCK_BYTES, ceil_div, round_up
from davinci.units import FRACTAL_SIDE as SIDE

HALF_BYTES = 4
"""Bytes of half a word."""


class ScaleWords:
    """Words of all columns of C.

    Args:
        gm: [columns of C][2], i32.

    Attributes:
        buffers: in L1 and FB.
    """

    def __init__(self, gm: ir.Value, product: Product, schedule: ProductSchedule) -> None:
        words = product.end.words
        assert words is not None, "a product that fixpipe does not scale"
        size, held = words.columns * WORDS_BYTES, words.held_bytes(schedule.tile.n)
        came = alloc([size], element_type("s8"), "L1")
        table = alloc([held // WORDS_BYTES, SIDE], element_type("s64"), "FB")
        self.buffers = came, table
        self._table, self._together = table, words.together
        self._words = viewed(came, [words.columns, SIDE], element_type("s64"))
        count, whole = math.prod(ir.MemRefType(gm.type).shape), size // HALF_BYTES
        halves, block = viewed(came, [whole], element_type("s32")), BLOCK_BYTES // HALF_BYTES
        if rest := whole - round_up(count, block):
            cce.clear_l1(restride(halves, [1, rest], [rest, 1], whole - rest))
        blocks = [ceil_div(count, block), 1, block]
        row = restride(gm, [1, count], [count, 1])
        cce.nd2nz(row, restride(halves, blocks, [block, block, 1]))
        if self._together:
            cce.copy(self._words, self._table)

    def of(self, part: PartOfC) -> ir.Value:
        """The words of a part's columns in FB, [fractals of columns][16]; before it leaves."""
        columns = part.n.size
        if self._together:
            return subview(self._table, [part.place.column, 0], [columns, SIDE])
        words = subview(self._words, [part.place.column, 0], [columns, SIDE])
        table = subview(self._table, [0, 0], [columns, SIDE])
        cce.copy(words, table)
        return table
