"""The order of the steps of a tile in which few of them wait for the one before.

A vector instruction that reads what the one before it writes comes behind a barrier. Where another
one lies between the two, flags order them while that one runs. So steps of independent chains are
taken in turn:

    a = vmuls x       a = vmuls x
    a' = vadds a      b = vmuls y
    b = vmuls y       a' = vadds a
    b' = vadds b      b' = vadds b

More values live at a time then, so a tile takes more of UB.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from davinci.operators.vector_program import TileStep, Value
from davinci.schedule.vector.tile_program import MOVED, REDUCE, VIEW, TileProgram


def waiting(steps: Sequence[TileStep]) -> int:
    """Counts the steps that read the result of the step before them, and so wait for it."""
    made: set[Value] = set()
    found = 0
    for step in steps:
        if step.name == VIEW:
            made |= {step.result} if made.intersection(step.sources) else set()
        else:
            found += not made.isdisjoint(step.sources)
            made = {step.result}
    return found


def interleaved(program: TileProgram) -> TileProgram | None:
    """The same program in an order in which fewer steps wait; None if there is none, or if not all
    steps are elementwise on rows."""
    apart = any(step.name == REDUCE or step.name in MOVED for step in program.steps)
    if apart or program.together:
        return None
    order = _Order(program.steps).found()
    if waiting(order) >= waiting(program.steps):
        return None
    return replace(program, steps=order, assignments={})


class _Order:
    """Takes steps one by one, of those that need not wait the one with most to follow.

    Attributes:
        after: numbers of the steps that a step comes after.
        behind: steps of the longest chain that begins with a step.
    """

    def __init__(self, steps: Sequence[TileStep]) -> None:
        self.steps = steps
        self.after = _earlier(steps)
        self.followers: dict[int, list[int]] = defaultdict(list)
        for number, earlier in enumerate(self.after):
            for other in earlier:
                self.followers[other].append(number)
        self.behind = [0] * len(steps)
        for number in reversed(range(len(steps))):
            follow = (self.behind[other] for other in self.followers[number])
            self.behind[number] = max(follow, default=0) + (steps[number].name != VIEW)

    def found(self) -> list[TileStep]:
        """The steps in an order that keeps those that wait for each other apart: of all that are
        ready, views first, then the one of lowest rank."""
        left = [len(earlier) for earlier in self.after]
        ready = [number for number, count in enumerate(left) if not count]
        order: list[int] = []
        made: set[int] = set()
        while ready:
            views = [number for number in ready if self.steps[number].name == VIEW]
            number = views[0] if views else min(ready, key=lambda n: self._rank(n, made))
            if not views:
                made = {number}
            elif made.intersection(self.after[number]):
                made.add(number)
            ready.remove(number)
            order.append(number)
            for other in self.followers[number]:
                left[other] -= 1
                if not left[other]:
                    ready.append(other)
        return [self.steps[number] for number in order]

    def _rank(self, number: int, made: set[int]) -> tuple[bool, int, int]:
        return not made.isdisjoint(self.after[number]), -self.behind[number], number


def _earlier(steps: Sequence[TileStep]) -> list[set[int]]:
    """Of each step the steps that it comes after: those that make its sources, and, if it adds into
    its first one, those that read that."""
    makers: dict[Value, int] = {}
    readers: dict[Value, list[int]] = defaultdict(list)
    found: list[set[int]] = []
    for number, step in enumerate(steps):
        earlier = {makers[value] for value in step.sources if value in makers}
        if step.accumulates:
            earlier.update(readers[step.sources[0]])
        for value in step.sources:
            readers[value].append(number)
        makers[step.result] = number
        found.append(earlier)
    return found
