"""Where the statistics of rows lie for the instructions that combine them with rows.

A statistic is one value a row, in all lanes of a block. An instruction reads one block of it for
each of its repeats: a block stride of 0 brings it to all 8 blocks of a unit of the row. From repeat
to repeat both operands move by fixed strides, so where there is one block a row, each row, or each
unit of all rows, is an instruction of its own. `copies` of the statistic make one of all of them:

    copies = 1                 |r0|r1|r2| ..                         min(rows, units) instructions
    copies = units             |r0|r0|r0|r0|r1|r1|r1|r1| ..          1, but half of its repeats wait
    copies = units, pitch 8    |r0|......|r0|......|r0|......| ..    1 and none waits

Units of a row alternate between the halves of the bank groups, so only copies that lie an odd
number of units apart can be read beside all of them. The gaps hold other statistics, and those of
the `groups` that neighbouring rows are divided in, an instruction each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from davinci.isa.core import DTYPES
from davinci.machine import Machine
from davinci.schedule.vector.steps import Step, View, cost_of
from davinci.units import BLOCK_BYTES, REPEAT_BLOCKS


def block_lanes(dtype: str) -> int:
    """Elements of a block."""
    return BLOCK_BYTES // DTYPES[dtype].itemsize


@dataclass(frozen=True)
class Places:
    """The places of one value a row.

    Attributes:
        rows: how many.
        copies: blocks that hold the value of a row.
        unit: blocks of a row that read one copy; the next ones read the next copy, in turn.
        pitch: blocks from one copy to the next.
        groups: parts of the rows, a power of two that divides them; the second part lies a block
            behind the first.
        slot: block of the first copy in its gap.
    """

    rows: int
    copies: int = 1
    unit: int = REPEAT_BLOCKS
    pitch: int = 1
    groups: int = 1
    slot: int = 0

    def __post_init__(self) -> None:
        assert self.slot + self.groups <= self.pitch, "more statistics than the gap holds"
        assert self.rows % self.groups == 0 and self.groups.bit_count() == 1, "uneven groups"

    @property
    def blocks(self) -> int:
        """Blocks of the buffer that they lie in."""
        return self.rows // self.groups * self.copies * self.pitch

    def strides(self) -> tuple[int, int, int]:
        """Blocks from group to group, from row to row of a group, from copy to copy."""
        return 1, self.copies * self.pitch, self.pitch

    def block_of(self, row: int) -> int:
        """Blocks from the first copy of row 0 to that of `row`."""
        group, inside, _ = self.strides()
        number, place = divmod(row, self.rows // self.groups)
        return number * group + place * inside

    def view(self, buffer: str, dtype: str) -> View:
        """The view of all rows, [groups, rows of a group, copies, lanes of a block]."""
        lanes = block_lanes(dtype)
        shape = (self.groups, self.rows // self.groups, self.copies, lanes)
        strides = (*(stride * lanes for stride in self.strides()), 1)
        return View(buffer, shape, strides, self.slot * lanes)

    def operands(
        self, row_blocks: int, dtype: str, rows: str, statistic: str, slices: int = 1
    ) -> tuple[View, View]:
        """Rows of `row_blocks` blocks, and the statistic, as arrays of one shape.

        Args:
            rows, statistic: the buffers.
            slices: of the rows, one after the other, that have one statistic in common (Nz).
        """
        lanes, unit, group_rows = block_lanes(dtype), self.unit, self.rows // self.groups
        assert row_blocks % (unit * self.copies) == 0, "rows are not whole turns of the copies"
        turns = row_blocks // (unit * self.copies)
        group, row, copy = self.strides()
        dims = (
            (slices, self.rows * row_blocks, 0),
            (self.groups, group_rows * row_blocks, group),
            (group_rows, row_blocks, row),
            (turns, self.copies * unit, 0),
            (self.copies, unit, copy),
            (unit, 1, 0),
        )
        shape = (*(size for size, _, _ in dims), lanes)
        theirs = (*(stride * lanes for _, stride, _ in dims), 1)
        mine = (*(stride * lanes for _, _, stride in dims), 1)
        return View(rows, shape, theirs), View(statistic, shape, mine, self.slot * lanes)


def whole_units(row_blocks: int) -> int:
    """Blocks that can be read beside one block of a statistic: a repeat, or a part of a row."""
    return math.gcd(row_blocks, REPEAT_BLOCKS)


def places_of(rows: int, row_blocks: int) -> Iterator[Places]:
    """The places worth a thought for rows of `row_blocks` blocks."""
    unit = whole_units(row_blocks)
    units = row_blocks // unit
    yield Places(rows, 1, unit)
    if units > 1:
        yield Places(rows, units, unit)
    if unit == REPEAT_BLOCKS and units > 1:
        if units % 2 == 0 and units > 2:
            yield Places(rows, 2, unit, REPEAT_BLOCKS)
        for groups in (1, 2, 4, 8):
            if rows % groups == 0:
                yield Places(rows, units, unit, REPEAT_BLOCKS, groups)
    if 1 < unit < REPEAT_BLOCKS:
        yield Places(rows, row_blocks, 1)


def use_cycles(
    places: Places, row_blocks: int, dtype: str, machine: Machine, slices: int = 1
) -> int:
    """Cycles of one operation (vmax, say) that combines rows with their statistics.

    Where units and copies do not keep to different halves of the bank groups, every other repeat
    waits a cycle for its second source; every one where rows are read that are not side by side.
    """
    rows, statistic = places.operands(row_blocks, dtype, "rows", "statistic", slices)
    name = "vor" if dtype == "s16" else "vmax"
    _, cycles = cost_of(Step(name, (rows, statistic, rows)), dtype, machine)
    blocks = places.rows * row_blocks
    repeats = slices * blocks // REPEAT_BLOCKS
    if places.unit == 1:
        # Each slice reads the copies as they lie.
        return cycles if blocks % (2 * REPEAT_BLOCKS) == 0 else cycles + repeats // 2
    if places.unit < REPEAT_BLOCKS:
        return cycles + repeats
    apart = places.pitch % (2 * REPEAT_BLOCKS) == REPEAT_BLOCKS
    return cycles if apart else cycles + repeats // 2


def with_slot(places: Places, number: int) -> Places:
    """The same for another statistic that shares the gaps."""
    return replace(places, slot=number * places.groups)
