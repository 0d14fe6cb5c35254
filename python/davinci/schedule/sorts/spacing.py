"""The order of a network's steps in which few of them wait for the one before.

A vector instruction that reads what the one before it writes comes behind a barrier; where another
one lies between the two, flags order them while that one runs. So what has no part in a chain of
such steps is taken in between: keys of the upper plane are compared for the next exchange while
those of the lower one are still on their way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from davinci.schedule.sorts.network import NetworkStep
from davinci.schedule.vector.steps import View

REACH = 16
"""Steps from the first one that is left among which the next one is looked for: two exchanges."""


@dataclass(frozen=True)
class _Extent:
    """The elements of a buffer from the first to the last one of a view."""

    buffer: str
    first: int
    last: int

    @classmethod
    def of(cls, view: View) -> _Extent:
        steps = zip(view.shape, view.strides, strict=True)
        last = view.offset + sum((size - 1) * stride for size, stride in steps)
        return cls(view.buffer, view.offset, last)

    def meets(self, other: _Extent) -> bool:
        """Whether both have an element."""
        together = self.first <= other.last and other.first <= self.last
        return together and self.buffer == other.buffer


@dataclass(frozen=True)
class _Access:
    """The extents that a step of the network reads, and the one that it writes."""

    read: tuple[_Extent, ...]
    written: _Extent

    @classmethod
    def of(cls, step: NetworkStep) -> _Access:
        *read, written = map(_Extent.of, step.operands)
        return cls(tuple(read), written)

    def waits_for(self, earlier: _Access) -> bool:
        """Whether this step reads what the other one writes."""
        return any(extent.meets(earlier.written) for extent in self.read)

    def follows(self, earlier: _Access) -> bool:
        """Whether this step must stay behind the other one."""
        others = (*earlier.read, earlier.written)
        return self.waits_for(earlier) or any(map(self.written.meets, others))


def waiting(steps: Iterable[NetworkStep]) -> int:
    """Counts the steps that read what the step before them writes, and so wait for it."""
    accesses = [_Access.of(step) for step in steps]
    return sum(map(_Access.waits_for, accesses[1:], accesses))


def spaced(steps: Iterable[NetworkStep]) -> list[NetworkStep]:
    """The steps in an order in which fewer wait for the one before: of those whose turn it may be,
    one that need not wait, and of these the one with the longest chain behind it."""
    given = list(steps)
    accesses = [_Access.of(step) for step in given]
    earlier = [
        {other for other in range(max(0, n - REACH), n) if access.follows(accesses[other])}
        for n, access in enumerate(accesses)
    ]
    behind = [1] * len(given)
    for n in reversed(range(len(given))):
        for other in earlier[n]:
            behind[other] = max(behind[other], behind[n] + 1)
    left, order = list(range(len(given))), list[int]()

    def rank(n: int) -> tuple[bool, int, int]:
        waits = bool(order) and accesses[n].waits_for(accesses[order[-1]])
        return waits, -behind[n], n

    while left:
        near = [n for n in left[:REACH] if n < left[0] + REACH]
        ready = [n for n in near if earlier[n].isdisjoint(near)]
        order.append(min(ready, key=rank))
        left.remove(order[-1])
    return [given[n] for n in order]
