"""Buffers that are joined before the search, where a plan without free bytes seems to have a seam.

Where one buffer ends as another begins, both of the same size, such a plan hardly has them anywhere
but side by side:

    [a, m) of 5 and 2 bytes, [m, b) of 7 bytes    ->    one buffer [a, b) of 7 bytes

So stacks of buffers of one lifetime each, whose sizes have the same sum on both sides of a time,
are joined to one buffer, the least likely coincidences first, until no more are found. A plan of
what remains is a plan of all buffers; there may be none although the buffers have one.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from davinci.planning.problem import Buffer, Problem

MOST_IN_STACK = 5
"""Buffers of one side of a seam."""

MOST_STACKS = 2_000
"""Stacks of one lifetime that are looked at."""

LIKELY = (0.02, 0.3, 3.0, 30.0)
"""Expected numbers of coincidences up to which seams are believed."""

NOISE = 1.0
"""Standard deviation of the logarithm of what such a number is taken for."""


@dataclass(frozen=True)
class Joined:
    """Buffers that lie side by side and on each other, as one.

    Attributes:
        size: of all of them together, in bytes.
        lower, upper: lifetime of all of them together.
        parts: numbers of buffers of the problem, each with its offset in the whole.
    """

    size: int
    lower: int
    upper: int
    parts: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Seam:
    """Two stacks of equal height, and how many such ones are expected by chance."""

    left: tuple[Joined, ...]
    right: tuple[Joined, ...]
    chance: float


def joined(problem: Problem, random: np.random.Generator, likely: float) -> list[Joined]:
    """What remains of the buffers of a problem without declared conflicts, in one of many ways; see
    `LIKELY`."""
    blocks = {
        Joined(int(size), b.lower, b.upper, ((number, 0),))
        for number, (b, size) in enumerate(zip(problem.buffers, problem.sizes, strict=True))
    }
    lives: dict[tuple[int, int], list[Joined]] = defaultdict(list)
    for block in sorted(blocks, key=lambda block: block.parts):
        lives[block.lower, block.upper].append(block)
    unit = max(1, math.gcd(*map(int, problem.sizes)))
    seams: dict[tuple[int, int, int], Seam | None] = {}
    while True:
        for key in _places(lives):
            if key not in seams:
                seams[key] = _seam(lives[key[:2]], lives[key[1:]], unit, random)
        found = min(
            (seam for seam in seams.values() if seam is not None),
            key=lambda seam: (seam.chance, seam.left[0].parts),
            default=None,
        )
        if found is None or found.chance > likely:
            return [block for blocks in lives.values() for block in blocks]
        new = _join(found)
        touched = {(new.lower, new.upper)}
        for block in (*found.left, *found.right):
            life = block.lower, block.upper
            lives[life].remove(block)
            touched.add(life)
        lives[new.lower, new.upper].append(new)
        seams = {k: s for k, s in seams.items() if k[:2] not in touched and k[1:] not in touched}


def smaller(problem: Problem, blocks: Sequence[Joined]) -> Problem:
    """The problem of placing what remains."""
    return Problem(tuple(Buffer(b.size, b.lower, b.upper) for b in blocks), problem.align)


def spread_out(blocks: Sequence[Joined], offsets: Sequence[int]) -> list[int]:
    """Offsets of the buffers of a problem, from those of what remains of it."""
    found = {
        number: offset + inside
        for block, offset in zip(blocks, offsets, strict=True)
        for number, inside in block.parts
    }
    return [found[number] for number in range(len(found))]


def _places(lives: dict[tuple[int, int], list[Joined]]) -> Iterator[tuple[int, int, int]]:
    """Lifetimes that follow each other, as first, common and last time."""
    begins: dict[int, list[int]] = defaultdict(list)
    for (lower, upper), blocks in lives.items():
        if blocks:
            begins[lower].append(upper)
    for (lower, upper), blocks in lives.items():
        if blocks:
            for end in begins[upper]:
                yield lower, upper, end


def _seam(
    left: list[Joined], right: list[Joined], unit: int, random: np.random.Generator
) -> Seam | None:
    """The stacks of equal height on both sides of a time that are least likely by chance."""
    sums: dict[int, tuple[Joined, ...]] = {}
    for stack in _stacks(left):
        sums.setdefault(sum(block.size for block in stack), stack)
    best: Seam | None = None
    for stack in _stacks(right):
        height = sum(block.size for block in stack)
        other = sums.get(height)
        if other is None:
            continue
        pairs = math.comb(len(left), len(other)) * math.comb(len(right), len(stack))
        chance = pairs / max(1, height // unit) * math.exp(NOISE * random.normal())
        if best is None or chance < best.chance:
            best = Seam(other, stack, chance)
    return best


def _stacks(blocks: list[Joined]) -> Iterator[tuple[Joined, ...]]:
    """Stacks of few buffers, the smallest number of them first."""
    sizes = range(1, MOST_IN_STACK + 1)
    every = (stack for size in sizes for stack in itertools.combinations(blocks, size))
    return itertools.islice(every, MOST_STACKS)


def _join(seam: Seam) -> Joined:
    """The buffers of both stacks as one."""
    parts = []
    for stack in (seam.left, seam.right):
        height = 0
        for block in stack:
            parts += [(number, height + offset) for number, offset in block.parts]
            height += block.size
    left, right = seam.left[0], seam.right[0]
    size = sum(block.size for block in seam.left)
    return Joined(size, left.lower, right.upper, tuple(parts))
