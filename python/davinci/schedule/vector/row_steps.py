"""The steps that reductions of rows and their results' way to all lanes are made of.

**Folds.** Neighbouring blocks of a row are combined, all rows in one instruction: blocks 0, 2, 4,
.. with blocks 1, 3, 5, .. (which never meet in a bank group); rows of half the length remain.
Where the number is odd, what is behind the middle is combined with the beginning, in place.

**Transpositions.** 16 x 16 words of 16 bits: word i of a block of 16 rows becomes a block of its
own, so the two halves of lane l of 16 rows are two blocks. Taken in turn as the 16 sources of a
second transposition they become 16 blocks, one a row, with lane l in all lanes:

    x[row] = |a b c d ..|     turned: |a0.lo a1.lo ..|a0.hi a1.hi ..|b0.lo ..| ..
                              spread: |a0 a0 a0 ..| |b0 b0 b0 ..| ..              8 blocks a row

The 16 rows of a transposition are four binary digits, each with a stride that is at most what the
digits below it and the repeats cover. So any number of rows is covered exactly, some of them
twice, and nothing beside them is read or written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from davinci.isa.core import DTYPES
from davinci.isa.transpose import ROWS
from davinci.machine import Machine
from davinci.operators.reduce import REDUCTIONS
from davinci.schedule.vector.row_places import RowPlaces, block_lanes
from davinci.schedule.vector.steps import (
    OF_BLOCKS,
    RESULT,
    SOURCE,
    SPREAD,
    TRANSPOSITION,
    TRANSPOSITION_RECORD,
    BufferStep,
    BufferSteps,
    View,
    copy_of,
)
from davinci.units import MAX_STRIDE, REPEAT_BLOCKS, round_up

DIGITS = 4
WORD_BYTES = 2


@dataclass(frozen=True)
class BufferBlocks:
    """[slices, rows, count] blocks of a buffer, rows `row_stride` blocks apart, slices without
    gaps between them."""

    buffer: str
    slices: int
    rows: int
    count: int
    row_stride: int
    offset: int = 0


@dataclass(frozen=True)
class Digits:
    """A number of rows as 16 places of a transposition and its repeats.

    Attributes:
        strides: rows that each binary digit of a place stands for, the highest first.
        repeats: neighbouring rows that each place goes through.
    """

    strides: tuple[int, ...]
    repeats: int

    @staticmethod
    def of(count: int, digits: int) -> Digits:
        """Digits that cover 0 .. count - 1.

        >>> Digits.of(24, 4)
        Digits(strides=(12, 6, 3, 1), repeats=2)
        """
        strides, rest = [], count
        for _ in range(digits):
            strides.append(rest // 2)
            rest -= rest // 2
        return Digits(tuple(strides), rest)


@dataclass(frozen=True)
class SpreadWay:
    """How two transpositions spread statistics to their places.

    Attributes:
        digits: of the rows that are turned.
        copies: digits of the copies; those of the rows that stand for nothing are theirs.
        rows_repeat: whether the second transposition repeats over rows, and each copy is an
            instruction, or the other way round.
    """

    digits: Digits
    copies: Digits
    rows_repeat: bool

    @property
    def instructions(self) -> int:
        """Instructions of the second transposition."""
        return self.copies.repeats if self.rows_repeat else self.digits.repeats

    @staticmethod
    def of(places: RowPlaces, number: int) -> SpreadWay:
        """The way that gives rows `number` digits."""
        rows = Digits.of(places.rows, number)
        copies = Digits.of(places.copies, DIGITS - number)
        even = rows.repeats <= places.rows // places.groups
        return SpreadWay(rows, copies, even and copies.repeats <= rows.repeats)


@dataclass
class RowSteps:
    """Writes the steps down, on buffers of one element type.

    Attributes:
        kind: of the reduction, if there is one.
        scratch: elements of the buffers besides the caller's.
        written: elements, from the first on, that folds have written of each buffer.
    """

    kind: str
    dtype: str
    machine: Machine
    steps: list[BufferStep] = field(default_factory=list)
    scratch: dict[str, int] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lanes = block_lanes(self.dtype)
        self.words = DTYPES[self.dtype].itemsize // WORD_BYTES

    def done(self) -> BufferSteps:
        return BufferSteps(self.dtype, tuple(self.steps), self.scratch)

    # Folds.

    def fold(self, blocks: BufferBlocks, least: int = 1) -> BufferBlocks:
        """Combines the blocks of each row until at most `least` are left, then the slices."""
        while blocks.count > least:
            blocks = self._fold_row(blocks)
        while blocks.slices > 1:
            blocks = self._fold_slices(blocks)
        return blocks

    def _fold_row(self, blocks: BufferBlocks) -> BufferBlocks:
        """Half as many blocks a row, rounded up."""
        half, rows = blocks.count // 2, blocks.slices * blocks.rows
        stride = blocks.row_stride

        def part(start: int, step: int, count: int) -> View:
            return self.array(blocks, ((rows, stride), (count, step)), start)

        if blocks.count % 2 and blocks.buffer != SOURCE:
            low = part(0, 1, half)
            self._combine(low, part(half + 1, 1, half), low)
            return replace(blocks, count=half + 1)
        buffer = self.buffer(self.other(blocks.buffer), rows * half * self.lanes)
        self.written[buffer] = self.scratch[buffer]
        result = BufferBlocks(buffer, blocks.slices, blocks.rows, half, half)
        whole = self.array(result, ((rows, half), (half, 1)))
        self._combine(part(0, 2, half), part(1, 2, half), whole)
        if blocks.count % 2:
            last = self.array(result, ((rows, half), (1, 1)), half - 1)
            self._combine(last, part(blocks.count - 1, 1, 1), last)
        return result

    def _fold_slices(self, blocks: BufferBlocks) -> BufferBlocks:
        """Half as many slices, rounded up."""
        half, length = blocks.slices // 2, blocks.rows * blocks.row_stride

        def part(start: int, step: int, count: int) -> View:
            dims = ((count, step * length), (blocks.rows, blocks.row_stride), (blocks.count, 1))
            return self.array(blocks, dims, start * length)

        if blocks.slices % 2 and blocks.buffer != SOURCE:
            low = part(0, 1, half)
            self._combine(low, part(half + 1, 1, half), low)
            return replace(blocks, slices=half + 1)
        size = half * blocks.rows * blocks.count
        buffer = self.buffer(self.other(blocks.buffer), size * self.lanes)
        result = BufferBlocks(buffer, half, blocks.rows, blocks.count, blocks.count)
        dims = ((blocks.rows, blocks.count), (blocks.count, 1))
        width = blocks.rows * blocks.count
        whole = self.array(result, ((half, width), *dims))
        self._combine(part(0, 2, half), part(1, 2, half), whole)
        if blocks.slices % 2:
            last = self.array(result, ((1, width), *dims), (half - 1) * width)
            self._combine(last, part(blocks.slices - 1, 1, 1), last)
        return result

    def combine_last(self, pair: BufferBlocks, places: RowPlaces) -> None:
        """Combines the last two blocks of each row, into all copies at once."""
        row = pair.row_stride * self.lanes
        first, second = (
            _over_copies(View(pair.buffer, (), (), at), row, places, self.dtype)
            for at in (0, self.lanes)
        )
        self._combine(first, second, places.view(RESULT, self.dtype))

    def copy(self, places: RowPlaces, buffer: str = SOURCE) -> None:
        """A spread statistic of a block a row to all places, bit by bit the same."""
        source = _over_copies(View(buffer, (), ()), self.lanes, places, self.dtype)
        result = places.view(RESULT, self.dtype)
        self.steps.append(copy_of(source, result, self.dtype))

    # Reductions of blocks, and lanes that are repeated, of machines that have them.

    def reduce_blocks(self, blocks: BufferBlocks) -> BufferBlocks | None:
        """One lane for each block: a row of as many blocks as a block has lanes is one block then,
        rows of one block are neighbouring lanes. None if no instruction takes the blocks as they
        lie.

        A repeat reduces 8 blocks. Those that the last one has behind the last row hold numbers.
        """
        count, stride = blocks.count, blocks.row_stride
        if count == 1:
            repeats = -(-blocks.rows // REPEAT_BLOCKS)
            behind = repeats * REPEAT_BLOCKS - blocks.rows
            if behind and not self._fill(blocks, blocks.rows * stride, behind, stride):
                return None
            dims = ((repeats, REPEAT_BLOCKS * stride), (REPEAT_BLOCKS, stride))
        elif count % self.lanes == 0 and (stride == count or count == REPEAT_BLOCKS):
            repeats = blocks.rows * count // REPEAT_BLOCKS
            distance = stride if count == REPEAT_BLOCKS else REPEAT_BLOCKS
            dims = ((repeats, distance), (REPEAT_BLOCKS, 1))
        else:
            return None
        buffer = self.buffer(
            self.other(blocks.buffer), round_up(repeats * REPEAT_BLOCKS, self.lanes)
        )
        self.written[buffer] = max(self.written.get(buffer, 0), repeats * REPEAT_BLOCKS)
        lanes = View(buffer, (repeats, REPEAT_BLOCKS), (REPEAT_BLOCKS, 1))
        self.steps.append(BufferStep(OF_BLOCKS[self.kind], (self.array(blocks, dims), lanes)))
        left = max(count // self.lanes, 1)
        return BufferBlocks(buffer, 1, blocks.rows, left, left)

    def _fill(self, blocks: BufferBlocks, first: int, count: int, stride: int) -> bool:
        """Has `count` blocks behind the rows hold numbers; false of the caller's buffer."""
        if blocks.buffer == SOURCE:
            return False
        end = (blocks.offset + first + (count - 1) * stride + 1) * self.lanes
        self.buffer(blocks.buffer, end)
        if self.written.get(blocks.buffer, 0) < end:
            behind = self.array(blocks, ((count, stride),), first)
            self.steps.append(BufferStep("vector_dup", (behind,), 0.0))
        return True

    def repeat_lanes(self, lanes: str, rows: int, places: RowPlaces) -> None:
        """Neighbouring lanes, one a row, to all lanes of `places`: at once, or by way of a block
        a row, whichever takes less time."""
        group_rows = rows // places.groups
        whole = group_rows % REPEAT_BLOCKS == 0
        whole = whole and REPEAT_BLOCKS * places.copies * places.pitch <= MAX_STRIDE
        aligned = places.groups == 1 or group_rows % self.lanes == 0
        group, row, copy = (stride * self.lanes for stride in places.strides())
        direct = [
            self._spread(lanes, g * group_rows, group_rows, RESULT, g * group + c * copy, row)
            for g in range(places.groups)
            for c in range(places.copies)
        ]
        held = round_up(rows, REPEAT_BLOCKS) * self.lanes
        two = RowSteps(self.kind, self.dtype, self.machine)
        spread = two.buffer("spread", held)
        two.steps.append(self._spread(lanes, 0, rows, spread, 0, self.lanes))
        two.copy(places, spread)
        if whole and aligned and self._time(direct) <= self._time(two.steps):
            self.steps += direct
            return
        self.steps += two.steps
        self.buffer("spread", held)

    def _time(self, steps: Sequence[BufferStep]) -> float:
        """Cycles of steps, with half of the barriers between them."""
        made = BufferSteps(self.dtype, tuple(steps), {}).estimate(self.machine)
        return made.cycles + made.links * self.machine.sync.barrier_cycles / 2

    def _spread(
        self, lanes: str, first: int, rows: int, buffer: str, start: int, row: int
    ) -> BufferStep:
        """The step that repeats lanes from `first` on; `start` and `row` in elements."""
        repeats = -(-rows // REPEAT_BLOCKS)
        source = View(lanes, (repeats, REPEAT_BLOCKS), (REPEAT_BLOCKS, 1), first)
        shape = (repeats, REPEAT_BLOCKS, self.lanes)
        return BufferStep(
            SPREAD, (source, View(buffer, shape, (REPEAT_BLOCKS * row, row, 1), start))
        )

    # Transpositions.

    def turn(self, buffer: str, offset: int, row_stride: int, digits: Digits) -> BufferBlocks:
        """One block a row: word i of 16 rows to block i, for each repeat 16 blocks.

        Args:
            offset, row_stride: of the rows, in blocks.
        """
        strides = [*digits.strides, *(0,) * (DIGITS - len(digits.strides))]
        dims = (*((2, row_stride * s) for s in strides), (digits.repeats, row_stride))
        rows = self.array(BufferBlocks(buffer, 1, 1, 1, 1, offset), dims)
        turned = self.buffer("turned", digits.repeats * ROWS * self.lanes)
        result = BufferBlocks(turned, 1, digits.repeats, ROWS, ROWS)
        words = self.array(result, ((ROWS, 1), (digits.repeats, ROWS)))
        self.steps.append(BufferStep(TRANSPOSITION, (rows, words)))
        return result

    def spread_lanes(self, turned: BufferBlocks, rows: int, digits: Digits) -> BufferBlocks:
        """Each 32-bit lane of a row to a block of its own, all lanes equal."""
        buffer = self.buffer(self.other(turned.buffer), rows * self.lanes * self.lanes)
        result = BufferBlocks(buffer, 1, rows, self.lanes, self.lanes)
        self.spread_words(turned, result, digits)
        return result

    def spread_words(self, turned: BufferBlocks, result: BufferBlocks, digits: Digits) -> None:
        """The words of rows of 32-bit lanes, turned, to blocks from that of `result` on."""
        repeats = digits.repeats * self.lanes
        words = self.array(turned, ((ROWS // 2, 0), (2, 1), (repeats, 2)))
        places = (*((2, self.lanes * s) for s in digits.strides), (repeats, 1))
        self.steps.append(BufferStep(TRANSPOSITION, (words, self.array(result, places))))

    def spread(self, buffer: str, row_lanes: int, places: RowPlaces) -> None:
        """Lane 0 of a block a row to all lanes of `places`."""
        way = min((SpreadWay.of(places, n) for n in range(DIGITS + 1)), key=self._cycles)
        turned = self.turn(buffer, 0, row_lanes // self.lanes, way.digits)
        self.place(turned, way, places)

    def _cycles(self, way: SpreadWay) -> int:
        """Cycles of the transpositions of a way."""
        fixed, each = self.machine.vector.price(TRANSPOSITION_RECORD, "b16")
        repeats = way.digits.repeats * (1 + way.copies.repeats)
        return fixed * (1 + way.instructions) + each * repeats

    def place(self, turned: BufferBlocks, way: SpreadWay, places: RowPlaces) -> None:
        """The first words of 16 rows, turned, to all words of `places`."""
        rows, copies = way.digits, way.copies
        _, _, copy = places.strides()
        digits = (
            *((2, places.block_of(s)) for s in rows.strides),
            *((2, copy * s) for s in copies.strides),
        )
        low = (ROWS // self.words, 0), (self.words, 1)
        result = BufferBlocks(RESULT, 1, 1, 1, 1)
        for i in range(way.instructions):
            if way.rows_repeat:
                turns, steps = (rows.repeats, turned.row_stride), (rows.repeats, places.block_of(1))
                source, start = 0, i * copy
            else:
                turns, steps = (copies.repeats, 0), (copies.repeats, copy)
                source, start = i * turned.row_stride, places.block_of(i)
            words = self.array(turned, (*low, turns), source)
            spread = self.array(result, (*digits, steps), start)
            self.steps.append(BufferStep(TRANSPOSITION, (words, spread)))

    # Helpers.

    def _combine(self, a: View, b: View, result: View) -> None:
        self.steps.append(BufferStep(REDUCTIONS[self.kind].step, (a, b, result)))

    def array(self, blocks: BufferBlocks, dims: Sequence[tuple[int, int]], start: int = 0) -> View:
        """Blocks of a buffer: dimensions as (size, stride in blocks), from block `start` on."""
        shape = (*(size for size, _ in dims), self.lanes)
        strides = (*(stride * self.lanes for _, stride in dims), 1)
        return View(blocks.buffer, shape, strides, (blocks.offset + start) * self.lanes)

    def buffer(self, name: str, elements: int) -> str:
        self.scratch[name] = max(elements, self.scratch.get(name, 0))
        return name

    @staticmethod
    def other(name: str) -> str:
        """The one of two buffers that is not `name`."""
        return "odd" if name == "even" else "even"


def _over_copies(first: View, row: int, places: RowPlaces, dtype: str) -> View:
    """Blocks `row` elements apart, one a row, in the shape of `places`."""
    group, row_of_group, copies, lanes = places.view("", dtype).shape
    shape = (group, row_of_group, copies, lanes)
    return replace(first, shape=shape, strides=(row_of_group * row, row, 0, 1))
