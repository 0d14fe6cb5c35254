"""What the pipes of a core of a split machine know of each other's work, along its program.

A flag between cores is set once all earlier work of one pipe is complete. What the other pipes have
done before is complete too where that pipe has waited for it, by flags inside the core or a
barrier:

    load x      MTE2 1        set_flag MTE2 -> V, wait_flag      V knows:    MTE2 1
    compute                   set_flag V -> MTE3, wait_flag      MTE3 knows: MTE2 1
    store y     MTE3 1        set_core_flag on MTE3: x is loaded, and y is in memory

Work is counted on each pipe: accesses to global memory, and flags for other cores that are set.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from davinci.passes.analysis.not_provable import NotProvable

PIPES = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX")
"""In this order numbers of work stand in tuples."""

Numbers = tuple[int, ...]
"""How much work of each pipe is complete, -1 if nothing of the program is known to be."""

_PLACE = {pipe: place for place, pipe in enumerate(PIPES)}
_PERIOD = 12
"""Iterations after which flags between pipes are the same: a multiple of all numbers of slots."""


class UnansweredFlag(NotProvable):
    """A pipe waits for a flag that nothing before it has set."""


@dataclass
class CorePipes:
    """The pipes of a core, from the beginning of a program on.

    Attributes:
        done: how much each pipe has been given to do.
    """

    done: list[int] = field(default_factory=lambda: [0] * len(PIPES))
    _known: dict[str, Numbers] = field(
        default_factory=lambda: dict.fromkeys(PIPES, (-1,) * len(PIPES))
    )
    _flags: dict[tuple[str, str, int], deque[Numbers]] = field(
        default_factory=lambda: defaultdict(deque)
    )

    def work(self, pipe: str) -> int:
        """A pipe is given something to do; its number."""
        place = _PLACE[pipe]
        self.done[place] += 1
        return self.done[place]

    def behind(self, pipe: str) -> Numbers:
        """The numbers of work on all pipes that is complete once a pipe has done all of its own."""
        place = _PLACE[pipe]
        known = list(_joined(self._known[pipe], self._known["S"]))
        known[place] = self.done[place]
        return tuple(known)

    def set_flag(self, source: str, target: str, event: int) -> None:
        """`target` may wait for all that `source` has been given to do."""
        self._flags[source, target, event].append(self.behind(source))

    def wait_flag(self, source: str, target: str, event: int) -> None:
        """Raises `UnansweredFlag`."""
        flags = self._flags[source, target, event]
        if not flags:
            raise UnansweredFlag(f"PIPE_{target} waits for a flag that PIPE_{source} has not set")
        self._known[target] = _joined(self._known[target], flags.popleft())

    def barrier(self, pipe: str) -> None:
        """A pipe, or each of them for "ALL", waits for all work that it was given before."""
        if pipe != "ALL":
            self._known[pipe] = self.behind(pipe)
            return
        for each in PIPES:
            self._known["S"] = _joined(self._known["S"], self.behind(each))

    @property
    def scalar(self) -> Numbers:
        """What the scalar unit knows to be complete, and with it all that it issues from now on."""
        return self._known["S"]

    @property
    def left(self) -> bool:
        """Whether a flag is set that no pipe has waited for."""
        return any(self._flags.values())

    def copy(self) -> CorePipes:
        """Pipes in the same state."""
        flags = defaultdict(deque, {key: deque(own) for key, own in self._flags.items() if own})
        return CorePipes(list(self.done), dict(self._known), flags)

    def become(self, other: CorePipes) -> None:
        """Is in the state of another one."""
        self.done, self._known, self._flags = other.done, other._known, other._flags

    def may_have(self, before: CorePipes) -> None:
        """What was done since `before` may not have been: nobody counts on having waited for it.

        Raises:
            NotProvable: then flags may be set or not.
        """
        flags = self._flags.keys() | before._flags.keys()
        if any(len(self._flags[key]) != len(before._flags[key]) for key in flags):
            raise NotProvable("whether a flag between pipes is set depends on data")
        done = self.done
        self.become(before.copy())
        self.done = done

    @contextmanager
    def perhaps(self) -> Iterator[None]:
        """Follows work that may not be done, see `may_have`."""
        before = self.copy()
        yield
        self.may_have(before)

    def repeat(self, numbers: range, turn: Callable[[int], None]) -> None:
        """Follows the iterations of a loop: all, or of a long one the first and the last ones.

        Between those a multiple of `_PERIOD` is left out, after which flags are set and waited for
        as before. What the last ones wait for then was set earlier than it is, so that no more is
        known than is so.
        """
        left_out = (len(numbers) // _PERIOD - 1) * _PERIOD
        if left_out <= 0:
            for number in numbers:
                turn(number)
            return
        before = self.copy()
        half = _PERIOD // 2
        try:
            for number in (*numbers[:half], *numbers[half + left_out :]):
                turn(number)
        except UnansweredFlag:
            self.become(before)
            for number in numbers:
                turn(number)


def _joined(first: Numbers, second: Numbers) -> Numbers:
    return first if first is second else tuple(map(max, first, second))
