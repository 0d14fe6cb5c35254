"""Plans made in one pass: buffers are taken in some order, and none is moved again."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from davinci.planning.problem import Ints, Problem


def by_size(problem: Problem) -> list[int]:
    """Largest buffer first, each in the smallest gap that it fits.

    The gaps are those between placed buffers that conflict with it; without one it lies above all
    of these. Greedy by size of Pisarchyk and Lee (2020), with declared conflicts as in "Memory
    and parallel execution of a network's graph" (2021), F(t1, t2).
    """
    lower = [b.lower for b in problem.buffers]
    order = sorted(range(len(lower)), key=lambda i: (-problem.sizes[i], lower[i], i))
    return _place(problem, order, best=True)


def first_fit(problem: Problem) -> list[int]:
    """In order of birth, of equal ones the one that lives longest first, each as low as it fits."""
    lives = [(b.lower, -b.upper) for b in problem.buffers]
    order = sorted(range(len(lives)), key=lambda i: (lives[i], -problem.sizes[i], i))
    return _place(problem, order, best=False)


def _place(problem: Problem, order: Iterable[int], best: bool) -> list[int]:
    """Offsets of buffers that are placed in `order`, in the smallest gap or in the lowest."""
    offsets = np.full(len(problem.buffers), -1, dtype=np.int64)
    sizes, overlaps = problem.sizes, problem.overlaps
    for i in order:
        if not sizes[i]:
            offsets[i] = 0
            continue
        there = overlaps[i] & (offsets >= 0) & (sizes > 0)
        offsets[i] = _gap(offsets[there], sizes[there], int(sizes[i]), best)
    return [int(offset) for offset in offsets]


def _gap(starts: Ints, sizes: Ints, size: int, best: bool) -> int:
    """Offset of a gap of at least `size` bytes between ranges, the smallest or the lowest one;
    without one, the top of the ranges."""
    order = np.argsort(starts, kind="stable")
    tops = np.maximum.accumulate(np.concatenate(([0], (starts + sizes)[order])))
    room = starts[order] - tops[:-1]
    fits = np.flatnonzero(room >= size)
    if not len(fits):
        return int(tops[-1])
    return int(tops[fits[np.argmin(room[fits])] if best else fits[0]])
