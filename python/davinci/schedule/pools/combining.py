"""The operations of a tile of windows on the vector unit: what their operands are in UB.

    fills      what pads the pixels of a tile is written around them
    lines      rows of pixels are combined, as many terms as a window has rows
    columns    columns of these are combined, as many terms as a window has columns

The builder makes these operations and the estimate prices them. Sizes and strides are elements,
outermost dimension first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from davinci.isa.core import DTYPES
from davinci.schedule.pools.pool import (
    Band,
    Pool,
    came_pixels,
    line_pixels,
    phases,
    tile_fractals,
)
from davinci.units import BLOCK_BYTES, REPEAT_BYTES, round_up
from davinci.units import FRACTAL_SIDE as SIDE


@dataclass(frozen=True)
class PadFill:
    """What pads the pixels of each plane, written with the number that a reduction starts with.

    Attributes:
        rows, size: runs of a plane and the elements of each.
        begin: the first element in a plane.
    """

    rows: int
    size: int
    begin: int


@dataclass(frozen=True)
class Combination:
    """Operands of an operation that combines terms.

    Attributes:
        sizes: common to all operands.
        source, result: strides of a term and of the result.
        starts: first element of each term.
    """

    sizes: tuple[int, ...]
    source: tuple[int, ...]
    result: tuple[int, ...]
    starts: tuple[int, ...]

    def turn_start(self, pool: Pool) -> int:
        """The first element of the sum of the first two terms in a buffer of its own: buffers begin
        with a half of the banks of UB, so this and the third term can lie in different halves."""
        third = self.starts[2] if len(self.starts) > 2 else 0
        return third % (REPEAT_BYTES // DTYPES[pool.accumulator].itemsize)


def fills_of(pool: Pool, band: Band) -> Iterator[PadFill]:
    """What is written around the pixels that come."""
    line, sides = pool.pitch * SIDE, (pool.pitch - pool.inner) * SIDE
    for phase in phases(pool, band).values():
        rows, begin = phase.rows - phase.above - phase.below, phase.begin * SIDE
        inside = begin + phase.above * line + pool.left * SIDE
        if rows <= 0:
            found = [PadFill(1, phase.rows * line + pool.left * SIDE, begin)]
        else:
            found = [
                PadFill(1, inside - begin, begin),
                PadFill(rows, sides, inside + pool.inner * SIDE),
                PadFill(1, phase.below * line, inside + rows * line),
            ]
        yield from (fill for fill in found if fill.rows and fill.size)


def lines_of(pool: Pool, band: Band, planes: int) -> Combination:
    """Rows combined, [planes][pixels][16]."""
    shape, windows = pool.geometry, pool.flat(band.rows)
    reached = (windows - 1) * shape.strides[1] * SIDE + shape.extent[1] * SIDE
    # Whole repeats, where there are pixels: they alternate between halves of the banks.
    reached = round_up(reached, REPEAT_BYTES // DTYPES[pool.accumulator].itemsize)
    there = (band.rows * pool.pitch + pool.left) * SIDE
    places = [divmod(i * shape.dilations[0], shape.strides[0]) for i in range(shape.kernel[0])]
    begins = phases(pool, band)
    starts = [(begins[first].begin + row * pool.pitch) * SIDE for row, first in places]
    return Combination(
        (planes, min(reached, there)),
        (came_pixels(pool, band) * SIDE, 1),
        (line_pixels(pool, band) * SIDE, 1),
        tuple(starts),
    )


def columns_of(pool: Pool, band: Band, planes: int) -> Combination:
    """Columns combined, [planes][fractals][16][16] as the epilogue takes them."""
    shape, windows = pool.geometry, pool.flat(band.rows)
    several = shape.kernel[0] > 1
    plane = (line_pixels if several else came_pixels)(pool, band) * SIDE
    start = 0 if several else phases(pool, band)[0].begin * SIDE
    wide = pool.end.lanes(pool.end.sums)
    together = wide // SIDE
    fractals = tile_fractals(pool, band) * SIDE * SIDE
    dims = [
        (planes // together, together * plane, together * fractals),
        (together, plane, SIDE),
    ]
    if shape.strides[1] == 1:
        dims += [(windows, SIDE, wide), (SIDE, 1, 1)]
    else:  # Blocks of a pixel are taken apart: those of a row of windows are equally far apart.
        block = BLOCK_BYTES // DTYPES[pool.accumulator].itemsize
        dims += [(SIDE // block, block, block)]
        dims += [(windows, shape.strides[1] * SIDE, wide), (block, 1, 1)]
    sizes, source, result = zip(*dims, strict=True)
    right = shape.dilations[1] * SIDE
    return Combination(
        sizes, source, result, tuple(start + j * right for j in range(shape.kernel[1]))
    )
