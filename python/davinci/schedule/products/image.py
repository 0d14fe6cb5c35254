"""A of a product whose rows are windows of an image: load3d makes them of rows of pixels in L1.

    m     windows in raster order
    k     blocks of channels, in each the elements of the kernel

A piece of A in L1 is some blocks of channels of the rows of the image that a tile's windows reach,
[blocks][rows][width][16]: rows that two windows share come once, those that two tiles share twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci.machine import Machine, prices
from davinci.machine.views import loads_rectangles
from davinci.operators.conv import Geometry
from davinci.units import BLOCK_BYTES, FRACTAL_BYTES, ceil_div
from davinci.units import FRACTAL_SIDE as SIDE


@dataclass(frozen=True)
class Image:
    """The images of a product, one for each matrix of its batch.

    Attributes:
        geometry: of the windows.
        blocks: of 16 channels, or of 32 of bytes.
        padding: the byte that lies outside of images of bytes.
    """

    geometry: Geometry
    blocks: int
    padding: int = 0

    @property
    def elements(self) -> int:
        """Elements of the kernel for one channel, which is how many fractals of k a block of
        channels has."""
        return self.geometry.elements

    def whole_depths(self, most: int) -> set[int]:
        """The largest depth of a mad, at most `most` fractals along k, with which each load stays
        within one block of channels or takes whole ones: what divides the fractals of a block, or
        is a multiple of them."""
        fit = (d for d in range(min(most, self.elements), 0, -1) if self.elements % d == 0)
        return {next(fit, 1)} if most < self.elements else {most // self.elements * self.elements}

    def rows(self, fractals: int) -> int:
        """Rows of the image that the windows of so many fractals may reach, wherever they begin."""
        shape = self.geometry
        down, across = shape.windows
        lines = min(down, (fractals * SIDE + across - 2) // across + 1)
        return min(shape.image[0], (lines - 1) * shape.strides[0] + shape.extent[0])

    def piece_bytes(self, blocks: int, fractals: int) -> int:
        """Bytes in L1 of so many blocks of channels for so many fractals of windows."""
        return blocks * self.rows(fractals) * self.geometry.image[1] * BLOCK_BYTES

    def piece_fractals(self, blocks: int, fractals: int) -> int:
        """Fractals in L1 of so many blocks of channels for so many fractals of windows."""
        return ceil_div(self.piece_bytes(blocks, fractals), FRACTAL_BYTES)


def windows_cycles(image: Image, machine: Machine, m: int, k: float, part: bool = False) -> float:
    """Cycles of MTE1 for `m` x `k` fractals of windows of a piece for L0A.

    Args:
        part: whether the block in L0A has more of k, so that fractals of other windows lie apart:
            what loads rectangles takes an instruction for each `m` then, and one for all else.
    """
    shape = image.geometry
    place = machine, "L0A", shape.strides[1], shape.windows[1]
    instructions = min(m, k)
    if loads_rectangles(machine, "L0A"):
        instructions = m if part else 1
    return prices.load3d_on_average(*place, m * k, instructions)
