"""The problem of static memory planning, and what a plan is: plain data without MLIR.

Every buffer has a size and a lifetime, the half-open interval [lower, upper) of times at which its
bytes are needed. Two buffers *conflict* where their lifetimes meet, or where they are declared to;
buffers that conflict get disjoint ranges of one memory. The memory's size, the *height* of a plan,
is to be small; finding the least one is NP-hard (dynamic storage allocation, problem SR2 of Garey
and Johnson).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from davinci.units import round_up

Ints = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Buffer:
    """Bytes that are needed for some time.

    Attributes:
        size: in bytes, 0 or more.
        lower: the first time at which they are needed.
        upper: the first time at which they are needed no more; above `lower`.
        name: for messages and reports.
    """

    size: int
    lower: int
    upper: int
    name: str = ""


@dataclass(frozen=True)
class Problem:
    """Buffers that share one memory.

    Attributes:
        buffers: to be placed.
        align: offsets are multiples of it, in bytes.
        conflicts: pairs of numbers of buffers that may not overlap although their lifetimes do
            not meet, for example because kernels that run at the same time use them.
    """

    buffers: tuple[Buffer, ...]
    align: int = 1
    conflicts: frozenset[tuple[int, int]] = frozenset()

    @functools.cached_property
    def sizes(self) -> Ints:
        """Bytes of each buffer, rounded up to the alignment, so that sums of them are aligned."""
        return np.array([round_up(b.size, self.align) for b in self.buffers], dtype=np.int64)

    @functools.cached_property
    def live(self) -> Truths:
        """Rows are times, columns are buffers: which of them are live then.

        Only times at which a buffer begins to live are rows, and of these only the ones whose
        buffers are not all live at the next one as well: what is live at any other time is live
        at one of these.
        """
        lower = np.array([b.lower for b in self.buffers], dtype=np.int64)
        upper = np.array([b.upper for b in self.buffers], dtype=np.int64)
        times = np.unique(lower)
        live = (lower <= times[:, None]) & (times[:, None] < upper)
        if len(times) < 2:
            return live
        ends_before_next = (live[:-1] & ~live[1:]).any(axis=1)
        kept: Truths = live[np.append(ends_before_next, True)]
        return kept

    @functools.cached_property
    def overlaps(self) -> Truths:
        """Square: which pairs of buffers conflict; a buffer does not conflict with itself."""
        count = len(self.buffers)
        lower = np.array([b.lower for b in self.buffers], dtype=np.int64)
        upper = np.array([b.upper for b in self.buffers], dtype=np.int64)
        found = (lower[:, None] < upper) & (lower < upper[:, None])
        for one, other in self.conflicts:
            found[one, other] = found[other, one] = True
        found[np.arange(count), np.arange(count)] = False
        return found

    @functools.cached_property
    def lower_bound(self) -> int:
        """The largest sum of bytes that are live at one time: no plan is lower."""
        return int((self.live @ self.sizes).max(initial=0))


@dataclass(frozen=True)
class Plan:
    """Where every buffer of a problem lies.

    Attributes:
        problem: that it solves.
        offsets: of each buffer, in bytes.
        algorithm: that found it, a name in `ALGORITHMS`.
        seconds: that it took to find it.
        bound: in bytes; no plan is lower. At least the problem's lower bound, more where a search
            has proven that this bound cannot be met.
    """

    problem: Problem
    offsets: tuple[int, ...]
    algorithm: str
    seconds: float = 0.0
    bound: int = field(default=0)

    @functools.cached_property
    def height(self) -> int:
        """Bytes of memory that the plan takes, a multiple of the alignment."""
        ends = np.array(self.offsets, dtype=np.int64) + self.problem.sizes
        return int(ends.max(initial=0))

    @property
    def ratio(self) -> float:
        """The height, in units of the largest sum of live bytes; 1 for a problem without bytes."""
        bound = self.problem.lower_bound
        return self.height / bound if bound else 1.0

    @property
    def optimal(self) -> bool:
        """Whether no plan is known to be lower because none can be."""
        return self.height <= max(self.bound, self.problem.lower_bound)


def live_bytes(buffers: Sequence[Buffer], times: int) -> Ints:
    """Bytes of the buffers that are live at each of the times from 0 to `times` - 1."""
    change = np.zeros(times + 1, dtype=np.int64)
    for buffer in buffers:
        change[buffer.lower] += buffer.size
        change[buffer.upper] -= buffer.size
    sums: Ints = np.cumsum(change[:-1])
    return sums


def faults(problem: Problem, offsets: Sequence[int]) -> list[str]:
    """What is wrong with a plan, checked pair by pair and without any algorithm's data; [] if
    nothing is."""
    found = []
    buffers = problem.buffers
    if len(offsets) != len(buffers):
        return [f"{len(offsets)} offsets for {len(buffers)} buffers"]
    for i, (one, at) in enumerate(zip(buffers, offsets, strict=True)):
        if at < 0 or at % problem.align:
            found.append(f"buffer {one.name or i} at {at}, not a multiple of {problem.align}")
        for j in range(i):
            other, there = buffers[j], offsets[j]
            declared = (i, j) in problem.conflicts or (j, i) in problem.conflicts
            together = one.lower < other.upper and other.lower < one.upper
            apart = at + one.size <= there or there + other.size <= at
            if (declared or together) and not apart and one.size and other.size:
                found.append(
                    f"buffers {other.name or j} at {there} and {one.name or i} at {at} overlap"
                )
    return found
