"""How far apart the blocks of transpositions lie, so that those moved at once are in other banks.

A transposition makes 16 blocks of 16 words each. Where equal blocks of several are moved at once,
16 blocks apart, all of them would meet one group of banks.
"""

from __future__ import annotations

from collections.abc import Sequence

from davinci.isa.transpose import ROWS

APART = ROWS + 1
"""Blocks from those of one transposition to those of the next: an odd number."""


def best_apart(walks: Sequence[tuple[Sequence[tuple[int, int]], int]]) -> int:
    """Blocks from those of one transposition to those of the next: more than there are where all
    walks go from each to equal ones of others.

    Args:
        walks: sizes and strides in blocks, and the first block.
    """
    for dims, first in walks:
        own = first % ROWS + sum((n - 1) * s for n, s in dims if s % ROWS)
        if own >= ROWS or all(n == 1 or s % ROWS for n, s in dims):
            return ROWS
    return APART


def spread(blocks: int, apart: int) -> int:
    """Where a block is, or how far it is from another, if `apart` stand for 16."""
    return blocks // ROWS * apart + blocks % ROWS
