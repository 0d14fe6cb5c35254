"""Buffers with pieces are placed one by one, each as low as its pieces fit those of the others.

The pieces of a buffer are a rigid shape: where they lie follows from the offset of the buffer. So
for each two pieces that are needed at one time, there is an interval of offsets that the buffer
may not have, and its place is the lowest offset outside of all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from davinci.planning.problem import Ints, Problem, Truths

ROUNDS = 12
"""Orders that are tried, each made from the one before."""

NOISE = 0.1
"""Standard deviation of what is added to the logarithms of priorities."""


def settle(problem: Problem, offsets: Sequence[int]) -> list[int]:
    """Offsets of the lowest plan of several orders, the same in each call.

    Args:
        problem: some of whose buffers have pieces.
        offsets: of a plan of `problem.whole`. The order of the first round is that of its offsets,
            so no buffer ends up higher than it is there.
    """
    pieces = _Pieces(problem)
    start = np.array(offsets, dtype=np.int64)
    best = pieces.placed(np.argsort(start, kind="stable"))
    lives = np.array([b.upper - b.lower for b in problem.buffers], dtype=np.float64)
    sizes = problem.sizes.astype(np.float64)
    random = np.random.default_rng(0)
    for priority in (sizes, sizes * lives):
        logarithm = np.log(np.maximum(priority, 1))
        for number in range(ROUNDS // 2):
            if _height(problem, best) <= problem.lower_bound:
                return [int(offset) for offset in best]
            noise = random.normal(size=len(sizes)) * NOISE * (number > 0)
            found = pieces.placed(np.argsort(-(logarithm + noise), kind="stable"))
            if _height(problem, found) < _height(problem, best):
                best = found
    return [int(offset) for offset in best]


def _height(problem: Problem, offsets: Ints) -> int:
    return int((offsets + problem.sizes).max(initial=0))


class _Pieces:
    """The pieces of all buffers as arrays, the pieces of a buffer side by side."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        counts = [len(parts) for parts in problem.parts]
        self._first = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
        self._owner = np.repeat(np.arange(len(counts)), counts)
        parts = [part for parts in problem.parts for part in parts]
        columns = [(p.begin, p.end, p.lower, p.upper) for p in parts]
        table = np.array(columns, dtype=np.int64).reshape(-1, 4)
        self._begin, self._end, self._lower, self._upper = table.T
        self._declared: dict[int, set[int]] = {}
        for one, other in problem.conflicts:
            self._declared.setdefault(one, set()).add(other)
            self._declared.setdefault(other, set()).add(one)

    def placed(self, order: Ints) -> Ints:
        """Offsets of all buffers, placed in that order, each as low as it fits."""
        offsets = np.full(len(order), -1, dtype=np.int64)
        for number in order:
            offsets[number] = self._lowest(int(number), offsets)
        return offsets

    def _lowest(self, number: int, offsets: Ints) -> int:
        """The lowest offset of a buffer beside those that are placed, whose offsets are not
        negative."""
        there = offsets[self._owner] >= 0
        at = offsets[self._owner]
        starts, ends = [], []
        for piece in range(self._first[number], self._first[number + 1]):
            begin, end = self._begin[piece], self._end[piece]
            if begin == end:
                continue
            meet = there & self._together(number, piece) & (self._begin < self._end)
            starts.append((at + self._begin)[meet] - end)
            ends.append((at + self._end)[meet] - begin)
        if not starts:
            return 0
        return _outside(np.concatenate(starts), np.concatenate(ends))

    def _together(self, number: int, piece: int) -> Truths:
        """Which pieces may not share bytes with one of the buffer of that number."""
        meet: Truths = (self._lower < self._upper[piece]) & (self._lower[piece] < self._upper)
        for other in self._declared.get(number, ()):
            meet = meet | (self._owner == other)
        return meet


def _outside(starts: Ints, ends: Ints) -> int:
    """The lowest number from 0 on that lies in none of the open intervals."""
    order = np.argsort(starts, kind="stable")
    lowest = 0
    for start, end in zip(starts[order].tolist(), ends[order].tolist(), strict=True):
        if start >= lowest:
            break
        lowest = max(lowest, end)
    return lowest
