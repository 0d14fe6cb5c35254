"""Short rows that lie one after the other in UB, turned so that they are lanes, and back.

b rows make up a block where they are lanes: 16 of elements of one word of 16 bits, 8 of two words.
Such a **group** of b rows of c elements is c blocks before and behind it. Two transpositions of
16 x 16 words bring it there, for 16 groups at a time:

    rows       |r0c0 r0c1 .. r1c0 ..|              c blocks a group
    words      |w0 of 16 groups| |w1| ..           16 c blocks: word w of a group is word h of
                                                   element (r, c) = w / words
    lanes      c0: |r0 r1 .. of group 0| |group 1| ..      c1: ..

The second one takes the blocks of all rows and words of one c. Groups are covered by the digits of
`row_steps`, so any number of them is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from davinci.isa.core import DTYPES
from davinci.isa.transpose import ROWS
from davinci.schedule.vector.row_places import block_lanes
from davinci.schedule.vector.row_steps import DIGITS, WORD_BYTES, Digits
from davinci.schedule.vector.steps import (
    RESULT,
    SOURCE,
    TRANSPOSITION,
    BufferStep,
    BufferSteps,
    View,
)

WORDS = "words"
"""The scratch buffer of the blocks of words."""


@dataclass(frozen=True)
class TurnedRows:
    """Arrays of short rows that are turned.

    Attributes:
        count: arrays, one after the other.
        inside: elements of a row.
        rows: of an array, whole groups.
        pitch: lanes that the rows take where they are lanes, whole blocks.
    """

    dtype: str
    count: int
    inside: int
    rows: int
    pitch: int

    def to_lanes(self) -> BufferSteps:
        """RESULT [count, inside, pitch] = SOURCE [count, rows, inside]; lanes behind the rows are
        0."""
        arrays = range(self.count)
        steps = [BufferStep(TRANSPOSITION, (self._rows(SOURCE, i), self._words(i))) for i in arrays]
        for i in arrays:
            steps += (BufferStep(TRANSPOSITION, pair) for pair in self._pairs(i, RESULT))
        if self.pitch > self.rows:
            shape = (self.count * self.inside, self.pitch - self.rows)
            behind = View(RESULT, shape, (self.pitch, 1), self.rows)
            steps.append(BufferStep("vector_dup", (behind,), 0.0))
        return BufferSteps(self.dtype, tuple(steps), self._scratch)

    def to_rows(self) -> BufferSteps:
        """RESULT [count, rows, inside] = SOURCE [count, inside, pitch]."""
        arrays = range(self.count)
        steps = [
            BufferStep(TRANSPOSITION, (lanes, words))
            for i in arrays
            for words, lanes in self._pairs(i, SOURCE)
        ]
        steps += (
            BufferStep(TRANSPOSITION, (self._words(i), self._rows(RESULT, i))) for i in arrays
        )
        return BufferSteps(self.dtype, tuple(steps), self._scratch)

    @property
    def _block(self) -> int:
        """Elements of a block, and rows of a group."""
        return block_lanes(self.dtype)

    @cached_property
    def _digits(self) -> Digits:
        return Digits.of(self.rows // self._block, DIGITS)

    @cached_property
    def _held(self) -> int:
        """Elements of the words of an array."""
        return self._digits.repeats * self.inside * ROWS * self._block

    @property
    def _scratch(self) -> dict[str, int]:
        return {WORDS: self.count * self._held}

    def _rows(self, buffer: str, number: int) -> View:
        """The blocks of the rows of an array, [2, 2, 2, 2, repeats, lanes]."""
        digits, block = self._digits, self._block
        group = self.inside * block
        shape = (*(2,) * DIGITS, digits.repeats * self.inside, block)
        strides = (*(group * stride for stride in digits.strides), block, 1)
        return View(buffer, shape, strides, number * self.rows * self.inside)

    def _words(self, number: int) -> View:
        """The blocks of all words of an array, [16, repeats, lanes]."""
        block = self._block
        shape = (ROWS, self._digits.repeats * self.inside, block)
        return View(WORDS, shape, (block, ROWS * block, 1), number * self._held)

    def _pairs(self, number: int, buffer: str) -> Iterator[tuple[View, View]]:
        """Blocks of words, and those of lanes that a transposition makes of them, or they of these:
        an instruction for each element of a row, or for each repeat of the digits, whichever are
        fewer."""
        digits, block, inside = self._digits, self._block, self.inside
        words = DTYPES[self.dtype].itemsize // WORD_BYTES
        sizes, places = (block, words)[:words], (inside * words, 1)[:words]
        across = ROWS * inside, 1  # blocks from one repeat of the digits to the next
        along = words, self.pitch // block  # from one element of a row to the next
        first, array = number * self._held, number * inside * self.pitch
        steps = [(inside, along), (digits.repeats, across)]
        (times, turn), (repeats, step) = sorted(steps, key=lambda each: each[0])
        for i in range(times):
            taken = View(
                WORDS,
                (*sizes, repeats, block),
                (*(n * block for n in places), step[0] * block, 1),
                first + i * turn[0] * block,
            )
            lanes = View(
                buffer,
                (*(2,) * DIGITS, repeats, block),
                (*(n * block for n in digits.strides), step[1] * block, 1),
                array + i * turn[1] * block,
            )
            yield taken, lanes
