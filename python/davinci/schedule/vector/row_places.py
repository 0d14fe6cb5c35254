"""Where the statistics of rows lie for the instructions that combine them with rows.

A statistic is one value a row, in all lanes of a block. An instruction reads one block of it for
each of its repeats: a block stride of 0 brings it to all 8 blocks of a unit of the row. From repeat
to repeat both operands move by fixed strides, so where there is one block a row, each row, or each
unit of all rows, is an instruction of its own. `copies` of the statistic make one of all of them:

    copies = 1                 |r0|r1|r2| ..                         min(rows, units) instructions
    copies = units             |r0|r0|r0|r0|r1|r1|r1|r1| ..          1, but half of its repeats wait
    copies = units, pitch 8    |r0|......|r0|......|r0|......| ..    1 and none waits

Units of a row alternate between the halves of the bank groups, so only copies that lie an odd
number of units apart can be read beside all of them. The gaps hold copies of the other `groups`
that neighbouring rows are divided in, an instruction each.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from davinci.isa import INSTRUCTIONS
from davinci.isa.core import DTYPES
from davinci.isa.vector_plan import InstructionLimits, Issue, Nest, plan_vector
from davinci.machine import Machine
from davinci.machine.vector_banks import BankLayout, OperandBlocks, repeats_cycles
from davinci.schedule.vector.steps import View
from davinci.units import BLOCK_BYTES, REPEAT_BLOCKS

SAMPLED_REPEATS = 32
"""Repeats of an instruction that are looked at: banks meet in the same way again and again."""

USES_KEPT = 4096
"""Answers that are kept: statistics of few shapes are asked for again and again."""


def block_lanes(dtype: str) -> int:
    """Elements of a block."""
    return BLOCK_BYTES // DTYPES[dtype].itemsize


@dataclass(frozen=True)
class RowPlaces:
    """The places of one value a row.

    Attributes:
        rows: how many.
        copies: blocks that hold the value of a row.
        unit: blocks of a row that read one copy; the next ones read the next copy, in turn.
        pitch: blocks from one copy to the next.
        groups: parts of the rows, a power of two that divides them; the second part lies a block
            behind the first.
    """

    rows: int
    copies: int = 1
    unit: int = REPEAT_BLOCKS
    pitch: int = 1
    groups: int = 1

    def __post_init__(self) -> None:
        assert self.groups <= self.pitch, "more groups than the gap holds"
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
        return View(buffer, shape, strides)

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
        return View(rows, shape, theirs), View(statistic, shape, mine)


def whole_units(row_blocks: int) -> int:
    """Blocks that can be read beside one block of a statistic: a repeat, or a part of a row."""
    return math.gcd(row_blocks, REPEAT_BLOCKS)


def places_of(rows: int, row_blocks: int) -> Iterator[RowPlaces]:
    """The places worth a thought for rows of `row_blocks` blocks."""
    unit = whole_units(row_blocks)
    units = row_blocks // unit
    yield RowPlaces(rows, 1, unit)
    if units > 1:
        yield RowPlaces(rows, units, unit)
    if unit == REPEAT_BLOCKS and units > 1:
        if units % 2 == 0 and units > 2:
            yield RowPlaces(rows, 2, unit, REPEAT_BLOCKS)
        for groups in (1, 2, 4, 8):
            if rows % groups == 0:
                yield RowPlaces(rows, units, unit, REPEAT_BLOCKS, groups)
    if 1 < unit < REPEAT_BLOCKS:
        yield RowPlaces(rows, row_blocks, 1)


@lru_cache(maxsize=USES_KEPT)
def use_cycles(
    places: RowPlaces,
    row_blocks: int,
    dtype: str,
    machine: Machine,
    slices: int = 1,
    name: str = "",
) -> float:
    """Cycles of one operation that combines rows with their statistics and leaves the results in
    the place of the rows, the waits for banks of UB with them: a repeat waits where its statistic
    lies in the group of a block of its row, and where what another repeat has to write does. Both
    lie in banks of their own, in those halves of the groups where they meet less.

    Args:
        name: of the operation, which has the fields of most; by default it takes as long, too.
    """
    usual = "vor" if dtype == "s16" else "vmax"
    unit, views = machine.vector, places.operands(row_blocks, dtype, "rows", "statistic", slices)
    rows, statistic = views
    fixed, each = unit.price(name or usual, dtype)
    layout, depth = BankLayout.of(unit), max(fixed - unit.head_cycles, 1)
    limits = InstructionLimits.of(INSTRUCTIONS[f"{usual}.{dtype}"], fixed, unit.bank_groups, each)
    steps = [rows.strides, rows.strides, statistic.strides]
    nests = plan_vector(rows.shape, steps, (DTYPES[dtype].itemsize,) * len(steps), limits)
    lanes = block_lanes(dtype)

    def waiting(issue: Issue, ours: int, theirs: int) -> float:
        """Cycles of the repeats of an instruction.

        Args:
            ours, theirs: places of rows and statistics among the groups.
        """
        written, read, third = (
            OperandBlocks(block, REPEAT_BLOCKS, stride, repeat)
            for block, stride, repeat in zip(
                (ours, ours, layout.row_blocks + theirs),
                issue.blk_stride,
                issue.rep_stride,
                strict=True,
            )
        )
        count = min(issue.repeat, SAMPLED_REPEATS)
        taken = repeats_cycles((read, third), (written,), count, each, depth, layout)
        return taken * issue.repeat / count

    def begins(nest: Nest) -> Counter[tuple[int, ...]]:
        """How often an instruction begins where among the groups, for each operand."""
        found: Counter[tuple[int, ...]] = Counter()
        for at in itertools.product(*(range(loop.size) for loop in nest.loops)):
            moved = [
                sum(i * loop.strides[n] for i, loop in zip(at, nest.loops, strict=True))
                for n in range(len(steps))
            ]
            places = zip(nest.issue.offsets, moved, strict=True)
            found[tuple((offset + by) // lanes % layout.groups for offset, by in places)] += 1
        return found

    def taking(apart: int) -> float:
        """Cycles with the statistics so many groups behind the rows."""
        return sum(
            count * (fixed + waiting(nest.issue, ours, (theirs + apart) % layout.groups))
            for nest in nests
            for (_, ours, theirs), count in begins(nest).items()
        )

    return min(taking(0), taking(REPEAT_BLOCKS))
