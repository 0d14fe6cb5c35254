"""A of a product whose rows are windows of an image: rows of the image in L1, windows in L0A.

    GM  [batch][blocks][pixels][16] -> L1 [blocks][rows][width][16] -> L0A [m][k] of fractals
                               MTE2                             MTE1

The piece in L1 has so many rows of the image that the windows of a tile fit in wherever they begin;
it begins where those do, or so far before that it ends with the image. What lies outside the image
load3d makes of nothing.
"""

from __future__ import annotations

from davinci.dialects.cce import build as cce
from davinci.mlir import arith, ir
from davinci.passes.ascend_to_cce.products.feed import ShareRegion, common
from davinci.passes.ascend_to_cce.products.rows import FRACTAL
from davinci.passes.builder import (
    IndexLike,
    add,
    alloc,
    as_value,
    constant_index,
    divided,
    mul,
    restride,
    subview,
)
from davinci.schedule.products.events import Block, Fill, Load
from davinci.schedule.products.image import Image
from davinci.schedule.products.product import Pieces
from davinci.units import FRACTAL_SIDE as SIDE


class ImageFeed:
    """Fills L1 with rows of images, and loads windows of them.

    Args:
        gm: images in fractals, [batch][blocks][pixels / 16][16][16].
    """

    def __init__(self, gm: ir.Value, image: Image, pieces: Pieces) -> None:
        batch, blocks, fractals = list(ir.MemRefType(gm.type).shape)[:3]
        pixels = fractals * SIDE
        shape = [batch, blocks, pixels, SIDE]
        self._gm = restride(gm, shape, [blocks * pixels * SIDE, pixels * SIDE, SIDE, 1])
        self._image = image
        f16 = ir.F16Type.get()
        self._l1 = [alloc([pieces.fractals * FRACTAL], f16, "L1") for _ in range(pieces.slots)]

    def fill(self, fill: Fill, region: ShareRegion) -> None:
        """Brings a piece: all of its blocks of channels, of the rows that its windows reach."""
        piece, width = fill.held.piece, self._image.geometry.image[1]
        blocks, rows = self._blocks(piece), self._image.rows(piece.other.size)
        block = add(self._block(region), piece.k.start // self._image.elements)
        pixel = mul(self._first_row(piece, region), width)
        at = [add(region.batch, piece.batch), block, pixel, 0]
        source = subview(self._gm, at, [1, blocks, rows * width, SIDE], drop=[0])
        size = rows * width * SIDE
        cce.copy(
            source,
            restride(self._l1[fill.held.slot], [blocks, rows * width, SIDE], [size, SIDE, 1]),
        )

    def load(self, event: Load, region: ShareRegion, l0: ir.Value) -> None:
        """Windows of a block that a piece has the channels of, to L0A, [windows][k]."""
        piece, block = event.held.piece, event.block
        k, width = common(piece.k, block.k), block.k.size
        shape = [block.other.size, k.size, SIDE, SIDE]
        strides = [width * FRACTAL, FRACTAL, SIDE, 1]
        target = restride(l0, shape, strides, (k.start - block.k.start) * FRACTAL)
        geometry, element = self._image.geometry, k.start - piece.k.start
        blocks, rows = self._blocks(piece), self._image.rows(piece.other.size)
        columns = geometry.image[1]
        first = mul(add(region.other.start, block.other.start), SIDE)
        row = self._first_row(piece, region)
        size = rows * columns * SIDE
        source = self._l1[event.held.slot]
        top, _, left, right = geometry.pads
        cce.load3d(
            restride(source, [blocks, rows, columns, SIDE], [size, columns * SIDE, SIDE, 1]),
            as_value(first),
            as_value(add(mul(row, -1), -top)),
            target,
            kernel=geometry.kernel,
            strides=geometry.strides,
            dilations=geometry.dilations,
            pads=(left, right),
            element=element,
            padding=word_of(self._image.padding) if self._image.padding else None,
        )

    def _blocks(self, piece: Block) -> int:
        return piece.k.size // self._image.elements

    def _block(self, region: ShareRegion) -> IndexLike:
        """The first block of channels of a region, which begins with a whole one."""
        return divided(region.k.start, self._image.elements)

    def _first_row(self, piece: Block, region: ShareRegion) -> IndexLike:
        """The first row of the image that a piece has."""
        geometry = self._image.geometry
        last = geometry.image[0] - self._image.rows(piece.other.size)
        if last == 0:
            return 0
        window = mul(add(region.other.start, piece.other.start), SIDE)
        line = divided(window, geometry.windows[1])
        row = add(mul(line, geometry.strides[0]), -geometry.pads[0])
        return limited(row, last)


def word_of(byte: int) -> int:
    """The bits of a word of two bytes alike."""
    return (byte & 0xFF) * 0x101


def limited(index: IndexLike, most: int) -> IndexLike:
    """`index` within 0 and `most`."""
    if isinstance(index, int):
        return min(max(index, 0), most)
    least = arith.MaxSIOp(index, constant_index(0)).result
    return arith.MinSIOp(least, constant_index(most)).result
