"""A of a product whose rows are windows of an image: load3d makes them of rows of pixels in L1.

    m     windows in raster order
    k     blocks of channels, in each the elements of the kernel

A piece of A in L1 is some blocks of channels of the rows of the image that a tile's windows reach,
[blocks][rows][width][16]: rows that two windows share come once, those that two tiles share twice.
"""

from __future__ import annotations

from dataclasses import dataclass

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
