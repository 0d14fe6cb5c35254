"""The fractals that `cce.load2d` takes, where they are columns as loads of rectangles read them."""

from __future__ import annotations

from dataclasses import dataclass

from davinci.dialects.cce.buffers import BufferView
from davinci.units import FRACTAL_SIDE as SIDE

FRACTAL = SIDE * SIDE
"""Elements of a fractal of f16."""


@dataclass(frozen=True)
class ColumnsOfFractals:
    """Fractals in L1 that are an image of one row of pixels: fractals of a column follow each
    other, and each column is a block of channels.

    Attributes:
        pixels, channels: fractals down a column, and columns.
        pitch: from a column to the next, in fractals.
        space: where they go to.
        dtype: the element type.
        transpose: whether channels become rows of the destination.
    """

    pixels: int
    channels: int
    pitch: int
    space: str
    dtype: str
    transpose: bool

    @staticmethod
    def of(src: BufferView, dst: BufferView, transpose: bool) -> ColumnsOfFractals | None:
        """The image that fractals [rows][columns] of L0A or [k][n] of L0B are loaded from; None if
        they lie otherwise, there or in L1, or are one row or one column.

        Pixels are the rows of what is not transposed in L0A, else its columns; in L0B they are k,
        and the load always transposes.
        """
        down, across = (0, 1) if transpose == (dst.space == "L0B") else (1, 0)
        pixels, channels = src.shape[down], src.shape[across]
        pitch, rest = divmod(src.strides[across], FRACTAL)
        lies = src.strides[down] == FRACTAL and pitch >= pixels and not rest
        lies = lies and dst.strides[0] == dst.shape[1] * FRACTAL
        if not lies or min(pixels, channels) == 1 or (dst.space == "L0B" and not transpose):
            return None
        return ColumnsOfFractals(pixels, channels, pitch, dst.space, src.dtype, transpose)
