"""Windows of images on the vector unit: what a tile is, what it holds in UB and what it takes.

    plane     a block of 16 channels of an image: pixels in raster order, [h w][16]
    tile      some planes, of each some rows of windows

A tile's pixels come with what pads them around, [planes][rows][columns][16], so that all windows
are alike. The rows of a window are combined first, all columns beside each other, then its columns:

    image [rows][columns]  ->  [rows of windows][columns]  ->  [rows of windows][columns of windows]

What follows the reduction is done to the tile while it is there (`products.epilogue`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from davinci.isa.core import DTYPES
from davinci.machine import Machine
from davinci.operators.conv import Geometry
from davinci.operators.reduce import REDUCTIONS
from davinci.operators.vector_program import DTYPE_OF
from davinci.schedule.moves.transfers import Costs
from davinci.schedule.products.epilogue import Epilogue
from davinci.schedule.vector.space import NoSpace
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import REPEAT_BYTES, ceil_div


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
    def pixels(self) -> int:
        """Of a plane of the result, with those that pad it to whole fractals."""
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
class PoolSchedule:
    """How tiles are cut.

    Attributes:
        planes: of a tile.
        rows: of windows of a tile; the last has those that are left.
        cores: blocks of the launch.
        slots: buffers of what moves.
        cycles: estimated.
    """

    planes: int
    rows: int
    cores: int
    slots: int
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


def tile_pixels(pool: Pool, band: Band) -> int:
    """Pixels of the result that a tile stores of a plane, those that pad the plane included."""
    windows = band.rows * pool.geometry.windows[1]
    if band.last:
        windows += pool.pixels - math.prod(pool.geometry.windows)
    return windows


def tile_fractals(pool: Pool, band: Band) -> int:
    """Fractals of a plane in which they lie in UB."""
    return ceil_div(tile_pixels(pool, band), SIDE)


def tile_bytes(pool: Pool, planes: int, band: Band, slots: int) -> int:
    """Bytes in UB of a tile, with `slots` buffers for what moves."""
    item, wide = DTYPES[DTYPE_OF[pool.element]].itemsize, DTYPES[pool.accumulator].itemsize
    line = pool.columns * SIDE
    came = planes * band.reached * line * item * slots
    widened = planes * band.reached * line * wide if wide != item else 0
    lines = planes * band.rows * line * wide if pool.geometry.kernel[0] > 1 else 0
    fractals = tile_fractals(pool, band)
    rounded = pool.end.sums.dtype != pool.accumulator
    sums = planes * fractals * SIDE * SIDE * wide if rounded else 0
    end = pool.end.part_bytes(planes, fractals, slots, slots) + pool.end.tile_bytes(planes)
    return came + widened + lines + sums + end


def choose(pool: Pool, machine: Machine, cores: int) -> PoolSchedule:
    """The schedule of fewest estimated cycles.

    Raises:
        NoSpace: not even a row of windows of a plane fits UB.
    """
    found = min(candidates(pool, machine, cores), key=lambda made: made.cycles, default=None)
    if found is None:
        raise NoSpace("a row of windows that does not fit UB")
    return found


def candidates(pool: Pool, machine: Machine, cores: int) -> Iterator[PoolSchedule]:
    """All that fit UB."""
    total = pool.geometry.windows[0]
    heights = sorted({ceil_div(total, parts) for parts in range(1, total + 1)})
    shared = max(1, pool.whole_blocks)
    for planes in (n for n in range(1, shared + 1) if shared % n == 0):
        for rows in heights:
            cut = bands(pool.geometry, rows)
            tall = max(cut, key=lambda band: band.reached * pool.columns + tile_pixels(pool, band))
            groups = pool.whole_blocks // planes + (pool.blocks > pool.whole_blocks)
            units = pool.images * groups * sum(band.count for band in cut)
            each = ceil_div(units, cores)
            slots = 2 if each > 1 else 1
            if tile_bytes(pool, planes, tall, slots) > machine.buffers.UB.bytes:
                break
            cycles = tiles_cycles(pool, planes, tall, each, machine)
            yield PoolSchedule(planes, rows, min(units, cores), slots, cycles)


def tiles_cycles(pool: Pool, planes: int, band: Band, tiles: int, machine: Machine) -> int:
    """Of a core that does so many tiles: loads, steps and stores of neighbours overlap."""
    costs, fixed = Costs(machine), machine.vector.fixed_cycles
    item, wide = DTYPES[DTYPE_OF[pool.element]].itemsize, DTYPES[pool.accumulator].itemsize
    inside = band.reached - band.above - band.below
    load = costs.read(planes, inside * pool.geometry.image[1] * SIDE * item)
    pixels, outputs = tile_pixels(pool, band), pool.end.program.outputs
    store = sum(costs.write(planes, pixels * SIDE * DTYPES[v.dtype].itemsize) for v in outputs)
    whole = [extra.value for extra in pool.end.extras if not extra.row]
    load += sum(costs.read(planes, pixels * SIDE * DTYPES[v.dtype].itemsize) for v in whole)
    (high, across), columns = pool.geometry.kernel, pool.geometry.windows[1]

    def lines(elements: int) -> float:
        """A combination of as many pixels of each row of windows."""
        return planes * band.rows * (fixed + ceil_div(elements * SIDE * wide, REPEAT_BYTES))

    part = planes * tile_fractals(pool, band) * SIDE * SIDE * 4 / REPEAT_BYTES
    work = (high - 1) * lines(pool.columns) + max(1, across - 1) * lines(columns)
    work += (len(pool.end.program.steps) + 1) * (fixed + part)
    if wide != item:
        work += planes * band.reached * pool.columns * SIDE * wide / REPEAT_BYTES
    longest = max(load, work, store)
    return int(costs.starts + load + work + store + (tiles - 1) * longest)
