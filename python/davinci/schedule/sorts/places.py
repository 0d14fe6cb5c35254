"""Where blocks of keys lie in UB while a network sorts them, by the bits of their places in a row.

The places of a layout are told by how far apart the blocks are that differ in one bit of a place.
"""

from __future__ import annotations

from davinci.units import BLOCK_BYTES

LANES = BLOCK_BYTES // 4
"""Keys of a block."""

LOW = 3
"""The lowest bits of an address in the turned order that stay where they are, at most."""

SKEWED = 512
"""Blocks from which on the upper half begins later: one more instruction an exchange, and a cycle
less for each repeat."""

SKEW = 8
"""Blocks by which it does: half of the bank groups."""

Steps = tuple[int, ...]
"""For each bit of a block's place, the lowest first, how far apart the blocks are that differ in
it, in elements."""


def bits_of(count: int) -> int:
    """Bits of the places of so many things."""
    return (count - 1).bit_length()


def skew_of(blocks: int) -> int:
    """Elements by which the upper half of so many blocks begins later."""
    return SKEW * LANES if blocks >= SKEWED else 0


def placed(last: int, bits: int, low: int) -> Steps:
    """Places of so many bits so that `last` is the highest one of an address, or the highest of
    those that move if it stays.

    Args:
        low: lowest bits of an address that stay, unless fewer than three would be left to move, as
            what lanes turn into lies evenly.
    """
    stay = max(0, min(low, bits - bits_of(LANES)))
    upper = bits - stay
    turn = min(last, upper - 1) + 1
    places = [stay + (bit - turn) % upper for bit in range(upper)]
    places += range(stay)
    skew = skew_of(1 << bits)
    return tuple((LANES << place) + skew * (place == bits - 1) for place in places)


def turned_places(used: int, in_row: int, groups: int, low: int) -> Steps:
    """Where turned keys come and go: bits of the places in a row, and behind them those that say
    which eight rows. Places that are not used are behind all others.

    Args:
        used: bits of the places that hold keys, of `in_row` that there are.
        groups: bits of the eights of rows.
        low: as `placed` takes it.
    """
    known = placed(used, used + groups, low)
    skew = skew_of(1 << len(known))
    behind = (
        (LANES << place) + skew * (place == len(known))
        for place in range(len(known), in_row + groups)
    )
    return (*known[:used], *behind, *known[used:])
