"""How results that leave the cube as columns of fractals become rows.

Where right factors of a loop are the left operand of the cube, whose path from L1 is the wider one,
a result is the columns of [n / 16][16][16]: of lane l, the numbers of all rows are one line of 64
bytes. Two rounds of transpositions of 16 x 16 words of 16 bits make rows of them. In the first, the
16 sources are lanes 8 apart, and it is repeated for 8 neighbouring lanes p; in the second they are
the two halves of the numbers of a row in these 8 lanes:

    lanes p, p + 8, .., p + 120    ->   of row r: |p.lo p+8.lo ..|p.hi p+8.hi ..|
    both halves of p = 0 .. 7      ->   |0 1 2 .. 7| |8 9 .. 15| ..                 128 lanes
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from davinci.isa.transpose import ROWS
from davinci.machine import Machine, prices
from davinci.schedule.vector.row_steps import DIGITS, Digits
from davinci.units import BLOCK_BYTES, ceil_div
from davinci.units import FRACTAL_SIDE as SIDE

LANES = BLOCK_BYTES // 4
"""Lanes of f32 in a block, and rows in half a line."""

SECTION = ROWS * LANES
"""Lanes that two transpositions bring to a row."""

TURNED = LANES * ROWS * LANES
"""Elements of f32 between the transpositions, of a section and half a line."""

MOST_ROWS = SIDE
"""Rows of a column of fractals."""

HALVES = 2
"""Words of 16 bits of a number."""


@dataclass(frozen=True)
class LaneSection:
    """Lanes from `first` on, a multiple of 16 and 128 at most."""

    first: int
    lanes: int

    @property
    def digits(self) -> tuple[int, ...]:
        """Strides, in blocks of 8 lanes, of the binary digits of the 16 places."""
        found = Digits.of(self.lanes // LANES, DIGITS)
        assert found.repeats == 1, "a section has 16 blocks at most"
        return found.strides


def sections_of(lanes: int) -> Iterator[LaneSection]:
    """So many lanes in sections."""
    for first in range(0, lanes, SECTION):
        yield LaneSection(first, min(SECTION, lanes - first))


def halves_of(rows: int) -> Iterator[tuple[int, int]]:
    """First row and number of rows of each half of a line that has any."""
    for first in range(0, rows, LANES):
        yield first, min(LANES, rows - first)


def scratch_elements(lanes: int, rows: int) -> int:
    """Elements of f32 between the transpositions of so many lanes."""
    return ceil_div(lanes, SECTION) * ceil_div(rows, LANES) * TURNED


def turning_cycles(machine: Machine, lanes: int, rows: int) -> float:
    """Estimated cycles of both rounds."""
    sections, halves = ceil_div(lanes, SECTION), ceil_div(rows, LANES)
    first = prices.vector(
        machine, "scatter_vnchwconv", "b16", 2 * LANES * sections * halves, sections * halves
    )
    instructions = 1 if rows == 1 else sections * halves
    second = prices.vector(machine, "scatter_vnchwconv", "b16", 2 * sections * rows, instructions)
    return first + second + 2 * machine.sync.barrier_cycles
