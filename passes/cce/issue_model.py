"""When instructions start that one scalar unit issues in order to the queues of several pipes.

Nothing here knows of MLIR. All figures are cycles.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["work", "set", "wait", "barrier"]


@dataclass(frozen=True)
class Item:
    """What one pipe is told.

    Attributes:
        pipe: any number; of a flag the one that sets or waits.
        kind: instructions, or one of what orders them.
        flag: which one is set or waited for.
        count: instructions, each issued in a cycle of its own.
        busy: from the start until the pipe can go on.
        result: from the start until all is complete.
    """

    pipe: int
    kind: Kind
    flag: tuple[int, int, int] | None = None
    count: int = 1
    busy: int = 0
    result: int = 0


@dataclass(frozen=True)
class Rules:
    """The machine's rules of issue: how many instructions a queue holds, and cycles of issuing one,
    of a flag until another pipe sees it, and of a barrier."""

    depth: int
    issue: int
    flag: int
    barrier: int


ENDLESS = 1 << 60
"""Instructions in a queue that never fills."""


class Clock:
    """The pipes of a core, from when nothing is under way."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._free: dict[int, int] = {}
        self._done: dict[int, int] = {}
        self._flags: dict[tuple[int, int, int], deque[int]] = {}
        self._left: dict[int, deque[int]] = {}
        self._now = 0

    @property
    def end(self) -> int:
        """When all is complete."""
        return max([self._now, *self._free.values(), *self._done.values()])

    def issue(self, item: Item) -> int:
        """When a pipe starts an item, or a wait is over."""
        rules, pipe = self._rules, item.pipe
        left = self._left.setdefault(pipe, deque())
        for _ in range(item.count):
            self._now += rules.issue
            if len(left) >= rules.depth:
                self._now = max(self._now, left.popleft())
        start = max(self._now, self._free.get(pipe, 0))
        done = self._done.get(pipe, 0)
        if item.kind == "work":
            self._free[pipe] = start + item.busy
            self._done[pipe] = max(done, start + item.result)
            left.extend(start + item.busy * i // item.count for i in range(item.count))
            return start
        if item.kind == "set":
            assert item.flag is not None, "sets and waits have a flag"
            self._flags.setdefault(item.flag, deque()).append(max(start, done) + rules.flag)
            left.append(start)
            return start
        if item.kind == "barrier":
            start = self._free[pipe] = max(start, done) + rules.barrier
        else:
            assert item.flag is not None, "sets and waits have a flag"
            waiting = self._flags.get(item.flag)
            # A flag that was set before all this is there from the first.
            start = self._free[pipe] = max(start, waiting.popleft() if waiting else 0)
        left.append(start)
        return start


def starts(items: Iterable[Item], rules: Rules) -> tuple[list[int], int]:
    """When each item starts, and when all is complete."""
    clock = Clock(rules)
    return [clock.issue(item) for item in items], clock.end


def by_start(items: Sequence[Item], rules: Rules, repeated: bool) -> list[int] | None:
    """The numbers of items in the order in which they would start if no queue were ever full; None
    if the given order takes no longer.

    Items of one pipe keep their order, a wait stays behind the set that it is for.

    Args:
        repeated: whether all of it is done again and again.
    """
    turns = 2 if repeated else 1
    endless = Rules(ENDLESS, rules.issue, rules.flag, rules.barrier)
    times = starts([*items] * turns, endless)[0][-len(items) :]
    order = sorted(range(len(items)), key=times.__getitem__)
    _, given = starts([*items] * turns, rules)
    _, sorted_ = starts([items[number] for number in order] * turns, rules)
    return order if sorted_ < given else None
