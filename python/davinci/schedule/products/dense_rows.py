"""Rows that follow each other without gaps, as they lie in GM, and rows that begin at blocks.

The vector unit moves nothing smaller than a block of 32 bytes, but a transposition of 16 x 16 words
of 16 bits makes a block of each word, and one back takes blocks from anywhere:

    dense   |p0 p1 p2 q0 q1 q2 r0 ..|            rows p, q, r, .. of three words
    turned  |p0 of 16 lanes|p1|p2|q0|q1|q2|..    a lane goes through rows of its own
    ends    |p2|0 ..|q2|0 ..|..                  what a row has besides whole blocks, in its last
    apart   |p0 p1 p2 0 ..|q0 q1 q2 0 ..|..      each row in whole blocks

Whole blocks of rows go from `turned` to `apart` wherever a row begins, since a word is a block
there; only the ends are copied, to be filled up with zeros.
A lane takes units of the fewest rows that are whole blocks. The 16 lanes are the digits of
`row_steps`, so any number of units is covered, some twice, and nothing beside them is touched.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

from davinci.isa.transpose import ROWS
from davinci.schedule.vector.row_steps import DIGITS, Digits
from davinci.schedule.vector.steps import (
    RESULT,
    SOURCE,
    TRANSPOSITION,
    BufferStep,
    BufferSteps,
    View,
    copy_of,
)
from davinci.units import BLOCK_BYTES, ceil_div
from davinci.units import FRACTAL_SIDE as SIDE

TURNED, ENDS, WIDE = "turned", "ends", "wide"
"""Scratch buffers: the words of rows without gaps, those of their last blocks; rows in f32."""

WORD_BYTES = 2

PARTINGS_KEPT = 1024
"""Ways in which rows are parted that are kept: the schedules of a product share few of them."""


@dataclass(frozen=True)
class DenseRows:
    """Rows of a matrix between the two forms.

    Attributes:
        rows: a multiple of 16.
        width: elements of a row.
        itemsize: bytes of an element, 2 or 4.
        places: of each block of a row that is apart, how many blocks behind the row's first.
        pitch: blocks from row to row, where they are apart.
        same: whether all rows that are apart are the same one, to be repeated.
    """

    rows: int
    width: int
    itemsize: int
    places: tuple[int, ...]
    pitch: int
    same: bool = False

    @property
    def dtype(self) -> str:
        """In which blocks are moved; words need be no numbers."""
        return "s16" if self.itemsize == WORD_BYTES else "s32"

    @property
    def lanes(self) -> int:
        """Elements of `dtype` in a block."""
        return BLOCK_BYTES // self.itemsize

    @property
    def words(self) -> int:
        """Words of a row."""
        return self.width * self.itemsize // WORD_BYTES

    @property
    def unit(self) -> int:
        """Rows that are whole blocks."""
        return ROWS // math.gcd(ROWS, self.words)

    @cached_property
    def digits(self) -> Digits:
        """The units that the lanes begin with, and how many each goes through."""
        return Digits.of(ceil_div(self.rows, self.unit), DIGITS)

    @property
    def depth(self) -> int:
        """Rows that a lane goes through."""
        return self.digits.repeats * self.unit

    @property
    def whole(self) -> int:
        """Words of a row that are whole blocks as they are apart."""
        return self.words // ROWS * ROWS

    @property
    def end(self) -> int:
        """Words that a row has apart besides its whole blocks, with the zeros behind it."""
        return len(self.places) * ROWS - self.whole

    @cached_property
    def scratch(self) -> dict[str, int]:
        """Elements of `dtype` of the buffers of blocks."""
        sizes = {TURNED: self.words, ENDS: self.end}
        return {name: self.depth * size * self.lanes for name, size in sizes.items() if size}

    def parted(self) -> BufferSteps:
        """RESULT = the dense rows of SOURCE, apart; what they lack of whole blocks is 0."""
        steps = [BufferStep(TRANSPOSITION, (self._dense(SOURCE), self._turned))]
        rest = self.words - self.whole
        if self.end > rest:
            gap = self._rows_of(ENDS, rest, self.end - rest)
            steps.append(BufferStep("vector_dup", (gap,), 0.0))
        if rest:
            steps.append(copy_of(self._rest_of_rows(TURNED), self._rest_of_rows(ENDS), self.dtype))
        steps += [BufferStep(TRANSPOSITION, pair) for pair in self._apart(RESULT)]
        return BufferSteps(self.dtype, tuple(steps), self.scratch)

    def packed(self) -> BufferSteps:
        """RESULT = the rows of SOURCE without what is between them."""
        steps = [BufferStep(TRANSPOSITION, (apart, words)) for words, apart in self._apart(SOURCE)]
        if self.words > self.whole:
            steps.append(copy_of(self._rest_of_rows(ENDS), self._rest_of_rows(TURNED), self.dtype))
        steps.append(BufferStep(TRANSPOSITION, (self._turned, self._dense(RESULT))))
        return BufferSteps(self.dtype, tuple(steps), self.scratch)

    def _rest_of_rows(self, buffer: str) -> View:
        """The words of each row besides its whole blocks."""
        first = self.whole if buffer == TURNED else 0
        return self._rows_of(buffer, first, self.words - self.whole)

    def _rows_of(self, buffer: str, first: int, count: int) -> View:
        """Blocks of words of each row."""
        shape = (self.depth, count * self.lanes)
        return View(buffer, shape, (self._row(buffer), 1), first * self.lanes)

    def _row(self, buffer: str) -> int:
        """Elements of `dtype` of a row's words."""
        return (self.words if buffer == TURNED else self.end) * self.lanes

    def _lanes_of(self, block: int) -> tuple[int, ...]:
        """Strides of the lanes' digits; `block`: blocks of a unit."""
        return tuple(stride * block * self.lanes for stride in self.digits.strides)

    def _dense(self, buffer: str) -> View:
        """The blocks of dense rows, by lanes."""
        block = self.unit * self.words // ROWS
        shape = (*(2,) * DIGITS, self.digits.repeats * block, self.lanes)
        return View(buffer, shape, (*self._lanes_of(block), self.lanes, 1))

    @property
    def _turned(self) -> View:
        """Blocks of words, 16 at a time."""
        count = self.depth * self.words // ROWS
        return View(TURNED, (ROWS, count, self.lanes), (self.lanes, ROWS * self.lanes, 1))

    def _apart(self, apart: str) -> Iterator[tuple[View, View]]:
        """Words of 16 lanes, and the blocks of rows that they are; a row each time, or a block of
        all rows."""
        pitch = 0 if self.same else self.pitch
        of_lanes, lanes = self._lanes_of(self.unit * pitch), self.lanes
        whole = self.places[: self.whole // ROWS]
        steps = {b - a for a, b in pairwise(whole)}
        if len(steps) == 1 and self.depth < len(whole):
            (step,) = steps
            count = len(whole)
            for row in range(self.depth):
                words = View(
                    TURNED, (ROWS, count, lanes), (lanes, ROWS * lanes, 1), row * self._row(TURNED)
                )
                shape, strides = (*(2,) * DIGITS, count, lanes), (*of_lanes, step * lanes, 1)
                yield words, View(apart, shape, strides, (row * pitch + whole[0]) * lanes)
            whole = ()
        blocks = [(TURNED, number, place) for number, place in enumerate(whole)]
        blocks += [
            (ENDS, number, place) for number, place in enumerate(self.places[self.whole // ROWS :])
        ]
        for buffer, number, place in blocks:
            start = number * ROWS * lanes
            words = View(buffer, (ROWS, self.depth, lanes), (lanes, self._row(buffer), 1), start)
            shape, strides = (*(2,) * DIGITS, self.depth, lanes), (*of_lanes, pitch * lanes, 1)
            yield words, View(apart, shape, strides, place * lanes)


def ended(rows: int, itemsize: int, pitch: int, width: int) -> BufferSteps:
    """Moves the last elements of each row of RESULT that make a whole block into its last block;
    what is behind them no longer matters.

    Args:
        rows: a multiple of 16.
        pitch: blocks from row to row.
        width: elements of a row, more than a block and no whole blocks.
    """
    last, rest = divmod(width, BLOCK_BYTES // itemsize)
    return shifted(rows, itemsize, pitch, (last - 1, last), (last,), rest)


def shifted(
    rows: int,
    itemsize: int,
    pitch: int,
    sources: Sequence[int],
    results: Sequence[int],
    shift: int,
) -> BufferSteps:
    """Writes elements of blocks of each row of RESULT into other blocks of it, all of which may be
    among those that are read.

    Args:
        rows: a multiple of 16.
        pitch: blocks from row to row.
        sources: numbers of the blocks that are read, as places from the row's first.
        results: the same of those that are written, one less, or as many.
        shift: elements of the first source that are left out.
    """
    lanes, digits = BLOCK_BYTES // itemsize, Digits.of(rows, DIGITS)
    of_lanes = tuple(stride * pitch * lanes for stride in digits.strides)
    shape, row = (*(2,) * DIGITS, digits.repeats, lanes), len(sources) * ROWS * lanes

    def block(number: int) -> View:
        return View(RESULT, shape, (*of_lanes, pitch * lanes, 1), number * lanes)

    def words(first: int) -> View:
        return View(TURNED, (ROWS, digits.repeats, lanes), (lanes, row, 1), first * lanes)

    left_out = shift * itemsize // WORD_BYTES
    turns = [
        BufferStep(TRANSPOSITION, (block(number), words(place * ROWS)))
        for place, number in enumerate(sources)
    ]
    turns += [
        BufferStep(TRANSPOSITION, (words(place * ROWS + left_out), block(number)))
        for place, number in enumerate(results)
    ]
    dtype = "f16" if itemsize == WORD_BYTES else "s32"
    return BufferSteps(dtype, tuple(turns), {TURNED: digits.repeats * row})


BEGUN_BYTES = 2 * ROWS * BLOCK_BYTES
"""Bytes of `TURNED` for one block whose elements move to its beginning."""


def begun(itemsize: int, count: int) -> BufferSteps:
    """Moves the last `count` elements of the block RESULT to its beginning; what is behind them no
    longer matters.

    All 16 rows of the transposition are that block, so each of its words becomes a block of 16
    equal ones; all 16 rows of the one back are the block again.
    """
    lanes = BLOCK_BYTES // itemsize
    first = ROWS - count * itemsize // WORD_BYTES
    block = View(RESULT, (ROWS, 2, lanes), (0, 0, 1))
    words = View(TURNED, block.shape, (lanes, ROWS * lanes, 1))
    moved = View(TURNED, (ROWS, 1, lanes), (lanes, lanes, 1), first * lanes)
    turns = (
        BufferStep(TRANSPOSITION, (block, words)),
        BufferStep(TRANSPOSITION, (moved, View(RESULT, moved.shape, (0, lanes, 1)))),
    )
    dtype = "f16" if itemsize == WORD_BYTES else "s32"
    return BufferSteps(dtype, turns, {TURNED: BEGUN_BYTES // itemsize})


def scratch_bytes(ways: Sequence[DenseRows]) -> dict[str, int]:
    """Bytes of the scratch buffers that several use in turn."""
    found: dict[str, int] = {}
    for way in ways:
        for name, count in way.scratch.items():
            found[name] = max(count * way.itemsize, found.get(name, 0))
    return found


def fractal_rows(
    rows: int, columns: int, width: int, itemsize: int, pitch: int, column: int
) -> DenseRows:
    """Rows of fractals of 16 columns, of which `width` elements are meant.

    Args:
        pitch, column: blocks from row to row, and from a fractal to the one beside it.
    """
    each = SIDE * itemsize // BLOCK_BYTES
    places = tuple(i // each * column + i % each for i in range(columns * each))
    return DenseRows(rows, width, itemsize, places, pitch)


@lru_cache(PARTINGS_KEPT)
def parting_of(rows: int, columns: int, width: int, itemsize: int) -> DenseRows:
    """How dense rows become fractals [columns][16 rows + 1][16] of f16, or f32 [rows][columns][16].

    Args:
        rows, columns: fractals.
    """
    height = rows * SIDE
    if itemsize == WORD_BYTES:
        return fractal_rows(height, columns, width, itemsize, 1, height + 1)
    pitch = SIDE * itemsize // BLOCK_BYTES
    return fractal_rows(height, columns, width, itemsize, columns * pitch, pitch)
