"""Many plans made side by side, each from the bottom up, by priorities that learn from failures.

A *dive* places buffers in order of their offsets: next comes a buffer whose least possible offset,
the top of the placed buffers that it conflicts with, is the lowest of all, of these the one of the
highest priority. What such dives make cannot be packed more tightly by moving buffers down. All
dives are rows of the same arrays, so a step of all of them is a few operations of NumPy.

Behind each dive, buffers that ended above the lower bound gain priority by how far they did
(squeaky wheel optimization, Joslin and Clements, 1999), with a little noise.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from davinci.planning.problem import Ints, Problem

STEPS = 1_500
"""Buffers that one row of the arrays places, in all generations together: 0.03 s."""

ELEMENTS = 2_200_000
"""Elements of arrays that all steps work on together, where buffers are few: 0.03 s."""

MOST_GENERATIONS = 16

FEWEST_ROWS = 8

BLAME = 5.0
"""Priority, in standard deviations, for ending above the lower bound by all of the bound."""

NOISE = 0.05
"""Standard deviation of what is added to priorities from one dive to the next."""

FIRST_NOISE = 0.3
"""The same for the first dives, but for one of each measure."""

Reals = npt.NDArray[np.float64]


def dives(problem: Problem) -> list[int]:
    """Offsets of the lowest of all dives, which are the same in each call."""
    count = len(problem.buffers)
    if count == 0 or problem.lower_bound == 0:
        return [0] * count
    unit = int(np.gcd.reduce(problem.sizes))
    sizes, bound = problem.sizes // unit, problem.lower_bound // unit
    generations = min(MOST_GENERATIONS, max(1, STEPS // count))
    rows = max(FEWEST_ROWS, ELEMENTS // (count * count * generations))
    random = np.random.default_rng(0)
    measures = _measures(problem)
    priorities = measures[np.arange(rows) % len(measures)]
    noisy = (np.arange(rows) >= len(measures))[:, None]
    priorities = priorities + random.normal(size=priorities.shape) * FIRST_NOISE * noisy
    best, found = None, np.zeros(count, dtype=np.int64)
    for _ in range(generations):
        tops = _dive(sizes, problem.overlaps, priorities)
        heights = tops.max(axis=1)
        row = int(heights.argmin())
        if best is None or heights[row] < best:
            best, found = int(heights[row]), tops[row] - sizes
        if best <= bound:
            break
        above = np.maximum(tops - bound, 0) / bound
        heard = random.random(size=above.shape) < 0.7
        priorities = priorities + BLAME * above * heard
        priorities += random.normal(size=above.shape) * NOISE
    return [int(offset) * unit for offset in found]


def _dive(sizes: Ints, overlaps: npt.NDArray[np.bool_], priorities: Reals) -> Ints:
    """Where each buffer ends in each dive, in units.

    Each element of `keys` is the least offset of a buffer times the number of buffers, plus its
    rank by priority, so that the least key is the buffer to be placed next.
    """
    rows, count = priorities.shape
    rank = np.argsort(np.argsort(-priorities, axis=1, kind="stable"), axis=1, kind="stable")
    largest = (int(sizes.sum()) + 1) * count
    kind = np.int32 if largest < np.iinfo(np.int32).max else np.int64
    placed = np.iinfo(kind).max
    rank, sizes = rank.astype(kind), sizes.astype(kind)
    scaled = overlaps.astype(kind) * count
    keys, raised = rank.copy(), np.empty_like(rank)
    tops = np.zeros((rows, count), dtype=kind)
    every = np.arange(rows)
    for _ in range(count):
        chosen = keys.argmin(axis=1)
        top = keys[every, chosen] // count + sizes[chosen]
        tops[every, chosen] = top
        keys[every, chosen] = placed
        np.take(scaled, chosen, axis=0, out=raised)
        raised *= top[:, None]
        raised += rank
        np.maximum(keys, raised, out=keys)
    return tops.astype(np.int64)


def _measures(problem: Problem) -> Reals:
    """Priorities that have proven themselves, a row each: logarithms, of mean 0 and deviation 1."""
    live, sizes = problem.live, problem.sizes.astype(np.float64)
    time = np.array([b.upper - b.lower for b in problem.buffers], dtype=np.float64)
    fullest = np.where(live, (live @ problem.sizes)[:, None], 0).max(axis=0).astype(np.float64)
    sections = live.sum(axis=0).astype(np.float64)
    beside = problem.overlaps @ problem.sizes + sizes
    measures = np.array(
        [
            fullest**4 * time,
            fullest**8 * sizes * time,
            time,
            sections,
            sections * sizes,
            time * sizes,
            beside,
            beside * sizes,
        ]
    )
    logarithms = np.log(np.maximum(measures, 1))
    deviation = logarithms.std(axis=1, keepdims=True)
    centred: Reals = logarithms - logarithms.mean(axis=1, keepdims=True)
    return centred / np.where(deviation > 0, deviation, 1)
