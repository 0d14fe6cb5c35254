"""Elements of 64 bits as two halves of 32: parted and joined by transposition.

The vector unit has no elements of 64 bits, and moves nothing smaller than a block of 32 bytes; but
a transposition of 16 x 16 words of 16 bits makes a block of each word, and one back takes any:

    group of 8 elements   |a.lo a.hi b.lo b.hi ..|         two blocks; 16 groups at a time
    turned                |a.lo0 of 16 groups| |a.lo1| |a.hi0| |a.hi1| |b.lo0| ..     32 blocks
    low halves            |a.lo b.lo c.lo ..|              one block a group, of 16 of those

All groups are covered by the digits of `row_steps`, so any number of them is.
"""

from __future__ import annotations

from davinci.isa.transpose import ROWS
from davinci.schedule.vector.row_steps import DIGITS, Digits
from davinci.schedule.vector.steps import RESULT, SOURCE, TRANSPOSITION, Step, Steps, View

HALF = "s32"
GROUP = 8
"""Elements of a group: their halves are a block."""

LONG_LANES, HALF_LANES = 4, 8
"""Elements of a block, of 64 and of 32 bits."""

TURNED = "turned"
HALVES = ("low", "high")
"""Names of the sources that are joined."""


def parted(count: int, half: int) -> Steps:
    """RESULT = the low (0) or high (1) halves of SOURCE, of `count` elements in whole groups."""
    digits = _digits(count)
    turns = [
        Step(
            TRANSPOSITION,
            (_groups(SOURCE, digits, LONG_LANES, i * LONG_LANES), _turned(digits, ((ROWS, 1),), i)),
        )
        for i in range(GROUP // LONG_LANES)
    ]
    taken = _turned(digits, ((GROUP, 4), (2, 1)), 0, 2 * half)
    back = Step(TRANSPOSITION, (taken, _groups(RESULT, digits, HALF_LANES)))
    return Steps(HALF, (*turns, back), _scratch(digits))


def joined(count: int) -> Steps:
    """RESULT = elements of 64 bits whose halves are in the buffers of `HALVES`."""
    digits = _digits(count)
    turns = [
        Step(
            TRANSPOSITION,
            (
                _groups(name, digits, HALF_LANES),
                _turned(digits, ((GROUP, 4), (2, 1)), 0, 2 * half),
            ),
        )
        for half, name in enumerate(HALVES)
    ]
    back = [
        Step(
            TRANSPOSITION,
            (_turned(digits, ((ROWS, 1),), i), _groups(RESULT, digits, LONG_LANES, i * LONG_LANES)),
        )
        for i in range(GROUP // LONG_LANES)
    ]
    return Steps(HALF, (*turns, *back), _scratch(digits))


def _digits(count: int) -> Digits:
    assert count > 0 and count % GROUP == 0, "not whole groups"
    return Digits.of(count // GROUP, DIGITS)


def _groups(buffer: str, digits: Digits, lanes: int, offset: int = 0) -> View:
    """A block of each group, [2, 2, 2, 2, repeats, lanes]."""
    strides = (*(GROUP * stride for stride in digits.strides), GROUP, 1)
    return View(buffer, (*(2,) * DIGITS, digits.repeats, lanes), strides, offset)


def _turned(
    digits: Digits, places: tuple[tuple[int, int], ...], block: int, start: int = 0
) -> View:
    """16 of the 32 blocks of each repeat, from number 16 `block` + `start` on.

    Args:
        places: sizes and strides of the 16, in blocks.
    """
    shape = (*(size for size, _ in places), digits.repeats, HALF_LANES)
    strides = (*(stride * HALF_LANES for _, stride in places), 2 * ROWS * HALF_LANES, 1)
    return View(TURNED, shape, strides, (block * ROWS + start) * HALF_LANES)


def _scratch(digits: Digits) -> dict[str, int]:
    return {TURNED: digits.repeats * 2 * ROWS * HALF_LANES}
