"""Elements of 64 and 32 bits as two halves: parted and joined by transposition.

The vector unit has no elements of 64 bits, none that are the halves of those of 32, and moves
nothing smaller than a block of 32 bytes; but a transposition of 16 x 16 words of 16 bits makes a
block of each word, and one back takes any. Of 64 bits:

    group of 8 elements   |a.lo a.hi b.lo b.hi ..|         two blocks; 16 groups at a time
    turned                |a.lo0 of 16 groups| |a.lo1| |a.hi0| |a.hi1| |b.lo0| ..     32 blocks
    low halves            |a.lo b.lo c.lo ..|              one block a group, of 16 of those

All groups are covered by the digits of `row_steps`, so any number of them is. Halves of 32 bits are
two words, those of 16 are one.
"""

from __future__ import annotations

from functools import lru_cache

from davinci.isa.core import DTYPES
from davinci.isa.transpose import ROWS
from davinci.schedule.vector.row_places import block_lanes
from davinci.schedule.vector.row_steps import DIGITS, Digits
from davinci.schedule.vector.steps import (
    RESULT,
    SOURCE,
    STEPS_KEPT,
    TRANSPOSITION,
    BufferStep,
    BufferSteps,
    View,
)

WORD_BYTES = 2
TURNED = "turned"
HALVES = ("low", "high")
"""Names of the sources that are joined."""


@lru_cache(maxsize=STEPS_KEPT)
def parted(count: int, half: int, dtype: str) -> BufferSteps:
    """RESULT = the low (0) or high (1) halves of SOURCE, of `count` elements in whole groups.

    Args:
        dtype: of the halves, of 32 or of 16 bits.
    """
    digits = _digits(count, dtype)
    lanes = block_lanes(dtype)
    turns = [
        BufferStep(
            TRANSPOSITION,
            (
                _groups(SOURCE, digits, lanes, lanes // 2, i * lanes // 2),
                _turned(digits, lanes, ((ROWS, 1),), i * ROWS),
            ),
        )
        for i in range(2)
    ]
    taken = _half(digits, dtype, half)
    back = BufferStep(TRANSPOSITION, (taken, _groups(RESULT, digits, lanes, lanes)))
    return BufferSteps(dtype, (*turns, back), _scratch(digits, lanes))


@lru_cache(maxsize=STEPS_KEPT)
def joined(count: int, dtype: str) -> BufferSteps:
    """RESULT = elements whose halves, of the type `dtype`, are in the buffers of `HALVES`."""
    digits = _digits(count, dtype)
    lanes = block_lanes(dtype)
    turns = [
        BufferStep(TRANSPOSITION, (_groups(name, digits, lanes, lanes), _half(digits, dtype, half)))
        for half, name in enumerate(HALVES)
    ]
    back = [
        BufferStep(
            TRANSPOSITION,
            (
                _turned(digits, lanes, ((ROWS, 1),), i * ROWS),
                _groups(RESULT, digits, lanes, lanes // 2, i * lanes // 2),
            ),
        )
        for i in range(2)
    ]
    return BufferSteps(dtype, (*turns, *back), _scratch(digits, lanes))


def _digits(count: int, dtype: str) -> Digits:
    """Those of the groups, as many elements as a block has halves."""
    group = block_lanes(dtype)
    assert count > 0 and count % group == 0, "not whole groups"
    return Digits.of(count // group, DIGITS)


def _groups(buffer: str, digits: Digits, group: int, lanes: int, offset: int = 0) -> View:
    """A block of each group of elements, [2, 2, 2, 2, repeats, lanes]."""
    strides = (*(group * stride for stride in digits.strides), group, 1)
    return View(buffer, (*(2,) * DIGITS, digits.repeats, lanes), strides, offset)


def _half(digits: Digits, dtype: str, half: int) -> View:
    """The blocks of the words of one half of all elements."""
    words = DTYPES[dtype].itemsize // WORD_BYTES
    places = ((ROWS // words, 2 * words), (words, 1))
    return _turned(digits, block_lanes(dtype), places[:words], words * half)


def _turned(digits: Digits, lanes: int, places: tuple[tuple[int, int], ...], start: int) -> View:
    """16 of the 32 blocks of each repeat, from block `start` on.

    Args:
        lanes: halves of a block.
        places: sizes and strides of the 16, in blocks.
    """
    shape = (*(size for size, _ in places), digits.repeats, lanes)
    strides = (*(stride * lanes for _, stride in places), 2 * ROWS * lanes, 1)
    return View(TURNED, shape, strides, start * lanes)


def _scratch(digits: Digits, lanes: int) -> dict[str, int]:
    return {TURNED: digits.repeats * 2 * ROWS * lanes}
