"""Simulated allocation with address pushing, of "Static memory planning in MegEngine".

An allocator serves the buffers in the order of time: what is needed no more is freed, and free
ranges that touch become one. A new buffer takes the smallest free range that holds it. If all are
smaller, the largest one grows, and what lies above it moves up; if nothing is free, the buffer
comes on top. So addresses of the simulation change while it runs, and only one thing is kept of
it: which buffer lies directly below which. The addresses of the plan are found at the end: each
buffer is pushed up until it lies above all that were directly below it.

Values that overwrite others in place are one buffer in a `Problem`; `settle` gives the bytes before
and behind an overwritten range to others.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass

from davinci.planning.problem import Ints, Problem


@dataclass
class MemoryRange:
    """A range of the simulated memory.

    Attributes:
        size: in bytes.
        owner: the number of the buffer that lies there; None while it is free.
    """

    size: int
    owner: int | None


class SimulatedMemory:
    """Memory whose ranges lie one above the other and may grow.

    Attributes:
        stack: all buffers that were ever allocated, from low to high addresses.
        below: of each buffer those that were directly below it.
    """

    def __init__(self) -> None:
        self.stack: list[int] = []
        self.below: defaultdict[int, set[int]] = defaultdict(set)
        self._ranges: list[MemoryRange] = []

    def free(self, owner: int) -> None:
        """Gives back the range of a buffer."""
        at = next(n for n, each in enumerate(self._ranges) if each.owner == owner)
        self._ranges[at].owner = None
        for low in (at, at - 1):
            pair = self._ranges[max(low, 0) : low + 2]
            if len(pair) == 2 and all(each.owner is None for each in pair):
                self._ranges[low : low + 2] = [MemoryRange(pair[0].size + pair[1].size, None)]

    def allocate(self, owner: int, size: int) -> None:
        """Finds a range for a buffer, and notes what lies directly below and above it."""
        free = [n for n, each in enumerate(self._ranges) if each.owner is None]
        fitting = [n for n in free if self._ranges[n].size >= size]
        if fitting:
            at = min(fitting, key=lambda n: self._ranges[n].size)
        elif free:
            at = max(free, key=lambda n: self._ranges[n].size)
        else:
            at = len(self._ranges)
        rest = self._ranges[at].size - size if fitting else 0
        self._ranges[at : at + 1] = [MemoryRange(size, owner)] + [MemoryRange(rest, None)] * (
            rest > 0
        )
        under = (each.owner for each in reversed(self._ranges[:at]) if each.owner is not None)
        above = (each.owner for each in self._ranges[at + 1 :] if each.owner is not None)
        front, behind = next(under, None), next(above, None)
        if front is not None:
            self.below[owner].add(front)
        if behind is not None:
            self.below[behind].add(owner)
        self.stack.insert(0 if front is None else self.stack.index(front) + 1, owner)


def simulated(problem: Problem) -> list[int]:
    """Offsets of the buffers of a problem without pieces."""
    sizes = problem.sizes
    events = [(b.lower, 1, n) for n, b in enumerate(problem.buffers) if sizes[n]]
    events += [(b.upper, 0, n) for n, b in enumerate(problem.buffers) if sizes[n]]
    memory = SimulatedMemory()
    for _, begins, number in sorted(events):
        if begins:
            memory.allocate(number, int(sizes[number]))
        else:
            memory.free(number)
    return _pushed(problem, memory, sizes)


def _pushed(problem: Problem, memory: SimulatedMemory, sizes: Ints) -> list[int]:
    """Offsets, each the lowest above all that were directly below a buffer, and off those buffers
    that it is declared to conflict with."""
    apart: defaultdict[int, set[int]] = defaultdict(set)
    for one, other in itertools.chain.from_iterable(
        ((one, other), (other, one)) for one, other in problem.conflicts
    ):
        apart[one].add(other)
    offsets = [0] * len(sizes)
    done: set[int] = set()
    for number in memory.stack:
        at = max((offsets[n] + int(sizes[n]) for n in memory.below[number]), default=0)
        for other in sorted(apart[number] & done, key=lambda n: offsets[n]):
            if offsets[other] < at + int(sizes[number]):
                at = max(at, offsets[other] + int(sizes[other]))
        offsets[number] = at
        done.add(number)
    return offsets
