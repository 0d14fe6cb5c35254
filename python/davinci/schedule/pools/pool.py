"""Windows of images on the vector unit: what a tile is, what it holds in UB and what it takes.

    plane     a block of 16 channels of an image: pixels in raster order, [h w][16]
    tile      some planes, of each some rows of windows

A tile's pixels come with what pads them around. Rows of windows may step over rows of pixels: these
lie in as many phases, one behind the other, so that the rows that windows combine follow each
other, and so do their columns: a row's right padding is the left one of the next. All rows of a
tile are one run for an instruction:

    image [rows][columns]  ->  [phases][rows][pitch]
          ->  rows combined [rows of windows][pitch]  ->  columns too [rows of windows][windows]

A row of windows may end with some that are none (`Pool.row`); they do not leave.
What follows the reduction is done to the tile while it is there (`products.epilogue`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from davinci.isa.core import DTYPES
from davinci.operators.conv import Geometry
from davinci.operators.reduce import REDUCTIONS
from davinci.operators.vector_program import DTYPE_OF
from davinci.schedule.products.epilogue import Epilogue
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import REPEAT_BYTES, ceil_div, round_up

FEW = 8
"""Rows may be longer by one of so many columns."""


@dataclass(frozen=True)
class Pool:
    """A reduction over windows, and what follows it.

    Attributes:
        kind: of `REDUCTIONS`.
        images: how many.
        channels: of an image.
        element: of the images, "f16" or "f32".
        end: what is done to windows on their way to GM.
    """

    geometry: Geometry
    kind: str
    images: int
    channels: int
    element: str
    end: Epilogue

    @property
    def accumulator(self) -> str:
        """The type in which pixels are combined."""
        return DTYPE_OF[REDUCTIONS[self.kind].accumulator(self.element)]

    @property
    def blocks(self) -> int:
        """Planes of an image."""
        return ceil_div(self.channels, SIDE)

    @property
    def whole_blocks(self) -> int:
        """Planes of an image whose channels are all there."""
        return self.channels // SIDE

    @property
    def columns(self) -> int:
        """Columns of pixels that windows reach, with padding."""
        shape = self.geometry
        return (shape.windows[1] - 1) * shape.strides[1] + shape.extent[1]

    @property
    def left(self) -> int:
        """Columns of padding in front of a row, and behind the last row of a tile."""
        return self.geometry.pads[2]

    @property
    def inner(self) -> int:
        """Columns of a row that are of the image."""
        return min(self.geometry.image[1], self.columns - self.left)

    @property
    def pitch(self) -> int:
        """Columns from row to row: a whole number of windows, with the padding of both sides.

        Rows begin in different halves of the banks of UB if that takes few columns more.

        >>> shape = Geometry((112, 112), (3, 3), (2, 2), (1, 1), (1, 0, 1, 0))
        >>> Pool(shape, "max", 1, 16, "f16", None).pitch
        120
        """
        behind = self.columns - self.left - self.inner
        step = self.geometry.strides[1]
        least = ceil_div(self.columns - min(self.left, behind), step) * step
        apart = self.in_half(least, 1)
        return apart if apart % step == 0 and (apart - least) * FEW <= least else least

    def in_half(self, pixel: int, half: int) -> int:
        """From a pixel on the first where half 0 or 1 of the banks of UB begins."""
        pixels = REPEAT_BYTES // (SIDE * DTYPES[self.accumulator].itemsize)
        return round_up(pixel - half * pixels, 2 * pixels) + half * pixels

    @property
    def row(self) -> int:
        """Windows from row to row."""
        return self.pitch // self.geometry.strides[1]

    def flat(self, rows: int) -> int:
        """Windows from the first to the last of so many rows."""
        return (rows - 1) * self.row + self.geometry.windows[1]

    @property
    def pixels(self) -> int:
        """Pixels of a plane of the result, with those that pad it to whole fractals."""
        return ceil_div(math.prod(self.geometry.windows), SIDE) * SIDE


@dataclass(frozen=True)
class Band:
    """`count` tiles of rows of windows, `rows` each, the first of which begins at `first`.

    Attributes:
        above, below: rows of padding that the windows of each reach.
        reached: rows that they reach, padding included.
        last: whether the last row of windows is there.
    """

    first: int
    count: int
    rows: int
    above: int
    below: int
    reached: int
    last: bool


@dataclass(frozen=True)
class RowPhase:
    """Every `strides[0]`th row of pixels that a tile reaches.

    Attributes:
        first: the row that it begins with.
        rows: how many; `above` and `below` of them are padding.
        begin: pixels of a plane in front of them in UB.
    """

    first: int
    rows: int
    above: int
    below: int
    begin: int


def phases(pool: Pool, band: Band) -> dict[int, RowPhase]:
    """The phases that the windows of a band combine, by the number of their first row. Every other
    one begins in the second half of the banks of UB, so that rows of two phases do not meet there.

    >>> shape = Geometry((9, 9), (3, 3), (2, 2), (1, 1), (1, 0, 1, 0))
    >>> pool = Pool(shape, "max", 1, 16, "f16", None)
    >>> [(x.first, x.rows, x.above, x.begin) for x in phases(pool, bands(shape, 2)[0]).values()]
    [(0, 3, 1, 0), (1, 2, 0, 40)]
    """
    shape, found, begin = pool.geometry, dict[int, RowPhase](), 0
    step = shape.strides[0]
    firsts = sorted({i * shape.dilations[0] % step for i in range(shape.kernel[0])})
    for number, first in enumerate(firsts):
        rows, above, behind = (
            ceil_div(max(0, end - first), step)
            for end in (band.reached, band.above, band.reached - band.below)
        )
        begin = pool.in_half(begin, number % 2)
        found[first] = RowPhase(first, rows, min(above, rows), rows - behind, begin)
        begin += rows * pool.pitch + pool.left
    return found


def came_pixels(pool: Pool, band: Band) -> int:
    """Pixels of a plane of a tile in UB as they come."""
    last = max(x.begin + x.rows * pool.pitch + pool.left for x in phases(pool, band).values())
    return pool.in_half(last, 0)


def line_pixels(pool: Pool, band: Band) -> int:
    """Pixels of a plane of a tile in UB once the rows of its windows are combined."""
    return pool.in_half(band.rows * pool.pitch + pool.left, 0)


@dataclass(frozen=True)
class PoolSchedule:
    """How tiles are cut.

    Attributes:
        planes: of a tile.
        rows: of windows of a tile; the last has those that are left.
        cores: blocks of the launch.
        slots: buffers of what moves.
        turns: whether sums of more than two terms lie in two buffers by turns, as where UB has room
            for both.
        cycles: estimated.
    """

    planes: int
    rows: int
    cores: int
    slots: int
    turns: bool
    cycles: int

    def __str__(self) -> str:
        tile = f"{self.planes} x {self.rows} rows of windows a tile"
        return f"{tile}; {self.cores} cores, {self.slots} slots"


def bands(shape: Geometry, rows: int) -> list[Band]:
    """The tiles of a plane; neighbours that reach no padding are one band.

    >>> shape = Geometry((9, 9), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1))
    >>> [(band.first, band.count, band.above) for band in bands(shape, 2)]
    [(0, 1, 1), (2, 3, 0), (8, 1, 0)]
    """
    found: list[Band] = []
    total = shape.windows[0]
    for first in range(0, total, rows):
        count = min(rows, total - first)
        begin = first * shape.strides[0] - shape.pads[0]
        reached = (count - 1) * shape.strides[0] + shape.extent[0]
        above, below = max(0, -begin), max(0, begin + reached - shape.image[0])
        band = Band(first, 1, count, above, below, reached, first + count == total)
        before = found[-1] if found else None
        inner = before is not None and not (before.above or before.below)
        if before and inner and replace(before, first=first, count=1) == band:
            found[-1] = replace(before, count=before.count + 1)
        else:
            found.append(band)
    return found


def padding(pool: Pool, band: Band) -> int:
    """Pixels that pad a plane of the result, if a tile stores them."""
    return pool.pixels - math.prod(pool.geometry.windows) if band.last else 0


def tile_fractals(pool: Pool, band: Band) -> int:
    """Fractals of a plane of the result in UB: rows of windows, then padding."""
    return ceil_div(pool.flat(band.rows) + padding(pool, band), SIDE)


def turn_pixels(pool: Pool, band: Band) -> int:
    """Pixels of a plane of a tile for every other result of more than two terms: an instruction
    that writes where it reads waits for its own banks.

    >>> shape = Geometry((9, 9), (3, 3), (2, 2), (1, 1), (1, 0, 1, 0))
    >>> pool = Pool(shape, "max", 1, 16, "f16", None)
    >>> turn_pixels(pool, bands(shape, 2)[0]), line_pixels(pool, bands(shape, 2)[0])
    (32, 32)
    """
    high, wide = pool.geometry.kernel
    lines = line_pixels(pool, band) if high > 2 else 0
    columns = tile_fractals(pool, band) * SIDE if wide > 2 else 0
    most = max(lines, columns)
    return most and most + REPEAT_BYTES // (SIDE * DTYPES[pool.accumulator].itemsize)


def tile_bytes(pool: Pool, planes: int, band: Band, slots: int, turns: bool) -> int:
    """Bytes in UB of a tile, with `slots` buffers for what moves; `turns` as of a schedule."""
    item, wide = DTYPES[DTYPE_OF[pool.element]].itemsize, DTYPES[pool.accumulator].itemsize
    pixels = came_pixels(pool, band)
    came = planes * pixels * SIDE * item * slots
    widened = planes * pixels * SIDE * wide if wide != item else 0
    high = pool.geometry.kernel[0]
    lines = planes * line_pixels(pool, band) * SIDE * wide if high > 1 else 0
    fractals = tile_fractals(pool, band)
    turn = planes * turn_pixels(pool, band) * SIDE * wide if turns else 0
    rounded = pool.end.sums.dtype != pool.accumulator
    sums = planes * fractals * SIDE * SIDE * wide if rounded else 0
    end = pool.end.part_bytes(planes, fractals, slots, slots) + pool.end.tile_bytes(planes)
    return came + widened + lines + turn + sums + end
