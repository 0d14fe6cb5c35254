"""Where the blocks of transpositions lie: apart, so that those moved at once are in other banks, or
where they belong at once.

A transposition makes 16 blocks of 16 words each. Where equal blocks of several are moved at once,
16 blocks apart, all of them would meet one group of banks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Words:
    """The 16 words of a square, as several dimensions, the outer ones first, and how far apart
    their blocks belong."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True)
class Repeats:
    """Squares that one instruction transposes: how many, which of all squares of a piece the next
    one is, and how far apart their blocks belong."""

    size: int
    step: int
    stride: int


@dataclass(frozen=True)
class Parted:
    """The words of a piece, 16 by 16.

    Attributes:
        others: for each instruction its first square, and where its first block belongs.
    """

    words: Words
    repeats: Repeats
    others: tuple[tuple[int, int], ...]


def parted(dims: Sequence[tuple[int, int, int]], count: int, place: int) -> Parted | None:
    """Squares of words of which all dimensions lie at equal distances in the result; None if there
    are words in between, or 16 of them are no whole dimensions.

    Args:
        dims: sizes, and strides of words as they come and of their blocks in the result.
        count: of words that come.
        place: where the first block belongs.
    """
    left, squares, along, step = ROWS, 1, list[tuple[int, int]](), 1
    rest: list[Repeats] = []
    for size, stride, result in sorted((d for d in dims if d[0] > 1), key=lambda d: d[1]):
        own = math.gcd(size, left)
        if stride != step or own != min(size, left):
            return None
        if own > 1:
            along.insert(0, (own, result))
        left //= own
        if size > own:
            rest.append(Repeats(size // own, squares, result * own))
            squares *= size // own
        step *= size
    if left > 1 or step != count:
        return None
    words = Words(*(tuple(each) for each in zip(*along, strict=True)))
    repeats = max(rest, key=lambda dim: dim.size, default=Repeats(1, 1, 0))
    walked = [dim for dim in rest if dim is not repeats]
    others = tuple(
        (
            sum(i * dim.step for i, dim in zip(index, walked, strict=True)),
            place + sum(i * dim.stride for i, dim in zip(index, walked, strict=True)),
        )
        for index in itertools.product(*(range(dim.size) for dim in walked))
    )
    return Parted(words, repeats, others)
