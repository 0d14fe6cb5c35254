"""Search for the lowest plan: complete, and stopped after a number of states.

Whether a plan of some height exists is decided by `canonical`. The search starts at the lower bound
and halves the distance to the lowest plan that is known. Which order buffers of equal offsets are
tried in decides whether a plan is found after hundreds of states or never; so several orders take
turns, each round with twice as many states as the one before.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from davinci.native import address
from davinci.planning import seams
from davinci.planning.canonical import LIBRARY, SOLVE, CountIndex, Outcome, PlaceIndex
from davinci.planning.problem import Ints, Problem
from davinci.planning.valleys import FILL

ORDERS = (
    (PlaceIndex.FULLEST, "size_time", "time"),
    (PlaceIndex.FULLEST, "time", "size_time"),
    ("time", "size_time", PlaceIndex.FULLEST),
)
"""Keys of buffers, the most important one first: how full the fullest of their sections still is,
their lifetime, and that times their size."""

DISTURBED = len(ORDERS)
"""The number of an order that is another one in each run."""

NOISE = 0.3
"""Standard deviation of the logarithms of a disturbed order."""

SEAMED = 2
"""Times that buffers are joined in each round."""

SEAMLESS = 0.97
"""Part of the buffers that remain where a plan has no seams."""

FIRST_LIMIT = 2
"""States of the first round, in units of the number of buffers."""

ROUND_SECONDS = 2.0
"""A limit in seconds is looked at when a search of as many states as take about this has ended."""


@dataclass(frozen=True)
class SearchResult:
    """The plan that a search found, and how it ended.

    Attributes:
        offsets: of a plan, in bytes; None if none was found that is lower than the one known.
        bound: no plan is lower, in bytes.
        states: that were looked at.
    """

    offsets: list[int] | None
    bound: int
    states: int


def search(
    problem: Problem,
    known: int,
    *,
    states: int,
    seconds: float | None = None,
    capacity: int | None = None,
) -> SearchResult:
    """Looks for a plan lower than one of `known` bytes.

    Args:
        problem: whose declared conflicts count as well as lifetimes.
        known: height of a plan that is known, in bytes.
        states: that may be looked at, in all.
        seconds: after which no further search is begun; None for no limit.
        capacity: a plan of this height is good enough, in bytes; None to look for the lowest one.
    """
    if not len(problem.buffers) or problem.lower_bound == 0:
        return SearchResult(None, 0, 0)
    return _HeightSearch(problem, known, states, seconds, capacity).result()


@dataclass(frozen=True)
class _Way:
    """One of the ways to search that take turns.

    Attributes:
        kernel: of the problem, or of what remains of it.
        entry: `SOLVE` or `FILL`.
        order: in which buffers are tried.
        blocks: buffers that were joined for `kernel`; none where it has the problem itself.
    """

    kernel: _Kernel
    entry: str
    order: int
    blocks: Sequence[seams.Joined] = ()


class _HeightSearch:
    """Rounds of decisions whether there is a plan of some height, in units of the kernel."""

    def __init__(
        self,
        problem: Problem,
        known: int,
        states: int,
        seconds: float | None,
        capacity: int | None,
    ) -> None:
        self._problem = problem
        self._kernel = _Kernel(problem)
        self._ways = [_Way(self._kernel, SOLVE, order) for order in range(len(ORDERS) + 1)]
        if not problem.conflicts:
            self._ways.append(_Way(self._kernel, FILL, DISTURBED))
        self._random = np.random.default_rng(0)
        self._seams = not problem.conflicts
        unit = self._kernel.unit
        self._bound, self._best = -(-problem.lower_bound // unit), -(-known // unit)
        self._enough = 0 if capacity is None else capacity // unit
        self._left = states
        self._states, self._limit = states, FIRST_LIMIT * len(problem.buffers)
        self._deadline = None if seconds is None else time.perf_counter() + seconds
        self._speed = 0.0
        self._offsets: list[int] | None = None

    def result(self) -> SearchResult:
        """Searches until a plan is good enough or the budget is used up."""
        while self._best > self._goal and self._round():
            self._limit *= 2
        return SearchResult(
            self._offsets, self._bound * self._kernel.unit, self._states - self._left
        )

    @property
    def _goal(self) -> int:
        return max(self._bound, self._enough)

    def _round(self) -> bool:
        """Tries several heights, each in all orders; returns whether the budget lasts.

        The lower bound may be out of reach; so, where no height is known to be good enough, heights
        between it and that of the best known plan are tried too.
        """
        goal, best = self._goal, self._best
        heights = (goal, (goal + best) // 2, (goal + 3 * best) // 4)
        for target in dict.fromkeys(heights[:1] if self._enough else heights):
            for way in self._ways:
                if not self._bound <= target < self._best:
                    break
                allowed = min(self._limit, self._allowed())
                if allowed <= 0:
                    return False
                self._decide(target, way, allowed)
            for likely in seams.LIKELY * SEAMED if self._seams else ():
                if self._bound <= target < self._best:
                    self._seamed(target, likely)
        return True

    def _seamed(self, target: int, likely: float) -> None:
        """Looks for a plan of what remains if buffers are joined."""
        blocks = seams.joined(self._problem, self._random, likely)
        if len(blocks) > SEAMLESS * len(self._problem.buffers):
            self._seams &= likely < max(seams.LIKELY)
        else:
            kernel = _Kernel(seams.smaller(self._problem, blocks))
            allowed = min(self._limit, self._allowed(), 50 * len(blocks))
            self._decide(target, _Way(kernel, FILL, DISTURBED, blocks), allowed)

    def _allowed(self) -> int:
        """States that may still be looked at in one go."""
        if self._deadline is None:
            return self._left
        seconds = self._deadline - time.perf_counter()
        if seconds <= 0:
            return 0
        if not self._speed:
            return min(self._left, self._limit)
        return min(self._left, int(self._speed * min(seconds, ROUND_SECONDS)) + 1)

    def _decide(self, target: int, way: _Way, allowed: int) -> None:
        began = time.perf_counter()
        capacity = target * self._kernel.unit // way.kernel.unit
        outcome, looked = way.kernel.run(way.entry, capacity, way.order, allowed)
        self._speed = looked / max(time.perf_counter() - began, 1e-6)
        self._left -= looked
        if outcome == Outcome.FOUND:
            offsets = way.kernel.offsets()
            self._offsets = seams.spread_out(way.blocks, offsets) if way.blocks else offsets
            tops = np.array(self._offsets) + self._problem.sizes
            self._best = int(tops.max()) // self._kernel.unit
        elif outcome == Outcome.NONE and not way.blocks:
            self._bound = target + 1


class _Kernel:
    """A problem as arrays of `canonical`.

    Attributes:
        unit: bytes that all sizes are multiples of.
    """

    def __init__(self, problem: Problem) -> None:
        self.unit = int(np.gcd.reduce(problem.sizes))
        live, overlaps = problem.live, problem.overlaps
        sections, count = live.shape
        time_ = np.array([b.upper - b.lower for b in problem.buffers], dtype=np.int64)
        sizes = problem.sizes // self.unit
        self._sizes = sizes
        self._measures = {"time": time_, "size_time": time_ * sizes}
        first = live.argmax(axis=0).astype(np.int64)
        last = first + live.sum(axis=0)
        crossing = np.append((live[:-1] & live[1:]).sum(axis=1), 0)
        trail = count * (count + sections) + sections
        self._start: dict[PlaceIndex, Ints] = {
            PlaceIndex.LEAST: np.zeros(count, dtype=np.int64),
            PlaceIndex.OPEN: np.ones(count, dtype=np.int64),
            PlaceIndex.FLOOR: np.zeros(sections, dtype=np.int64),
            PlaceIndex.REST: live @ sizes,
            PlaceIndex.CROSSING: crossing.astype(np.int64),
            PlaceIndex.MARKS: np.zeros(sections, dtype=np.int64),
            PlaceIndex.COUNTS: np.zeros(len(CountIndex), dtype=np.int64),
        }
        self._start[PlaceIndex.COUNTS][CountIndex.DECOMPOSE] = not problem.conflicts
        constant: dict[PlaceIndex, Ints] = {
            PlaceIndex.SIZES: sizes,
            PlaceIndex.FIRST: first,
            PlaceIndex.LAST: last,
            PlaceIndex.OVERLAPS: _starts(overlaps.sum(axis=1)),
            PlaceIndex.OVERLAPPING: np.nonzero(overlaps)[1],
            PlaceIndex.MEMBERS: _starts(live.sum(axis=1)),
            PlaceIndex.MEMBER: np.nonzero(live)[1],
            PlaceIndex.STARTS: _starts(np.bincount(first, minlength=sections + 1)),
            PlaceIndex.STARTING: np.argsort(first, kind="stable"),
            PlaceIndex.ENDS: _starts(np.bincount(last, minlength=sections + 1)),
            PlaceIndex.ENDING: np.argsort(last, kind="stable"),
        }
        scratch: dict[PlaceIndex, Ints] = {
            PlaceIndex.FULLEST: np.zeros(count, dtype=np.int64),
            PlaceIndex.OFFSETS: np.zeros(count, dtype=np.int64),
            PlaceIndex.FAILURES: np.ones(sections + 1, dtype=np.int64),
            PlaceIndex.CHANGED: np.zeros(trail, dtype=np.int64),
            PlaceIndex.BEFORE: np.zeros(trail, dtype=np.int64),
            PlaceIndex.STACK: np.zeros((2 * count + 2) * (count + 2), dtype=np.int64),
        }
        states = {place: array.copy() for place, array in self._start.items()}
        self._arrays = {**constant, **scratch, **states}
        self._place = np.zeros(len(PlaceIndex), dtype=np.int64)
        for place, array in self._arrays.items():
            self._arrays[place] = np.ascontiguousarray(array, dtype=np.int64)
            self._place[place] = address(self._arrays[place])
        self._sections, self._count = sections, count
        self._random = np.random.default_rng(0)

    def run(self, entry: str, capacity: int, order: int, allowed: int) -> tuple[Outcome, int]:
        """Decides whether there is a plan of a height, in units.

        Args:
            entry: `SOLVE` or `FILL`.
            capacity: the height.
            order: a number of `ORDERS`, or `DISTURBED` for the first of them, disturbed.
            allowed: states that may be looked at.

        Returns:
            The outcome, and how many states were looked at.
        """
        for place, array in self._start.items():
            self._arrays[place][:] = array
        keys = self._keys(order)
        for place, key in zip(
            (PlaceIndex.KEY0, PlaceIndex.KEY1, PlaceIndex.KEY2), keys, strict=True
        ):
            self._place[place] = address(key)
        counts = self._arrays[PlaceIndex.COUNTS]
        counts[CountIndex.CAPACITY], counts[CountIndex.LIMIT] = capacity, allowed
        outcome = LIBRARY.call(entry, self._place, self._sections, self._count)
        return Outcome(outcome), int(counts[CountIndex.STATES])

    def _keys(self, order: int) -> Sequence[Ints]:
        if order == DISTURBED:
            # Of one size and time, or of either, with a factor of its own for each buffer.
            powers = self._random.uniform(0, 1.2, 2)
            noise = self._random.normal(size=self._count) * NOISE
            logarithms = powers @ np.log(np.maximum([self._measures["time"], self._sizes], 1))
            return [((logarithms + noise) * 1_000_000).astype(np.int64)] * 3
        return [
            self._arrays[name] if isinstance(name, PlaceIndex) else self._measures[name]
            for name in ORDERS[order]
        ]

    def offsets(self) -> list[int]:
        """Offsets of the plan that was found last, in bytes."""
        return [int(offset) * self.unit for offset in self._arrays[PlaceIndex.OFFSETS]]


def _starts(lengths: Ints) -> Ints:
    return np.concatenate(([0], np.cumsum(lengths)))
