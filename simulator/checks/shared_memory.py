"""Memories on the chip that several cores of a group reach, as ranges of addresses behind those of
global memory: races between cores are found in both in the same way."""

from __future__ import annotations

from collections.abc import Mapping

from davinci.isa.core import Space

FIRST = 1 << 56
"""The first address of a memory on the chip; global memory ends before it."""

BLOCK_SHIFT, SPACE_SHIFT = 36, 32
"""Where the block and the space stand in an address."""


def shared_places(shared: Mapping[Space, int], block: int) -> dict[Space, int]:
    """Where memories of a block's group begin.

    Args:
        shared: by space, where in the group's memory that of the core begins.
    """
    first = FIRST + (block << BLOCK_SHIFT)
    return {space: first + (space << SPACE_SHIFT) + start for space, start in shared.items()}


def in_words(low: int, high: int) -> str:
    """A range of bytes, on the chip as the cube core counts them.

    >>> place = shared_places({Space.UB: 0x100}, 3)[Space.UB]
    >>> in_words(place, place + 16), in_words(0, 16)
    ('UB [0x100, 0x110)', 'GM [0x0, 0x10)')
    """
    if low < FIRST:
        return f"GM [{low:#x}, {high:#x})"
    mask = (1 << SPACE_SHIFT) - 1
    space = Space(low >> SPACE_SHIFT & (1 << BLOCK_SHIFT - SPACE_SHIFT) - 1)
    return f"{space.name} [{low & mask:#x}, {high & mask:#x})"
