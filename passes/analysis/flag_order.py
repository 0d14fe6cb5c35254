"""Order between the cores of a launch on a split machine, which have flags for each other.

    cube core          store x (FIX 1)   set a flag on FIX               clock: nothing
    its vector cores                     wait for the flag   load x      FIX 1 of the cube core

A core is a list of accesses to global memory, of flags that it sets and of waits. Cores are
followed side by side; one that waits goes on when all that have to have set the flag. What a core
knows is a clock, how much work of each pipe of each core is complete; a flag carries that of its
setters, and what they have complete themselves (`core_pipes`). An access is after one of another
core if the clock of its core counts that.

As the instruction set has it (docs/checks.md, "Flags between cores"), a counter of a flag holds no
more than `cross_core.depth`, and sets that count on one core must come in a known order.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from davinci.machine import CUBE_CORE
from davinci.mlir import location_text
from davinci.passes.analysis.block_steps import FlagWait
from davinci.passes.analysis.core_pipes import PIPES
from davinci.passes.analysis.meeting_order import (
    CoreAccess,
    CoreFlagSet,
    CoreStep,
    LaunchVerdict,
    PlacedAccess,
    judge_order,
)

WAITS = len(PIPES)
"""Behind the pipes in a row of a clock: how many waits of the core for others are over."""


@dataclass(frozen=True)
class CorePlace:
    """A core of a launch.

    Attributes:
        kind: one of the machine's two kinds of cores.
        group: the cube core that it is or belongs to.
        number: of a vector core in its group.
    """

    kind: str
    group: int
    number: int = 0

    def __str__(self) -> str:
        if self.kind == CUBE_CORE:
            return f"cube core {self.group}"
        return f"vector core {self.number} of group {self.group}"


Clock = np.ndarray
"""[cores][pipes, WAITS]: numbers of work that is complete."""


@dataclass(frozen=True)
class _Set:
    """A set of a flag: core, pipe and number there, and the clock that it carries."""

    core: int
    pipe: int
    number: int
    clock: Clock
    step: CoreFlagSet

    def known_to(self, clock: Clock) -> bool:
        """Whether who has this clock comes after it."""
        return bool(clock[self.core, self.pipe] >= self.number)


@dataclass
class _Counter:
    """A flag of one core.

    Attributes:
        counts: clocks of those that no wait has taken.
        arrived: how many there were.
        last: the sets of the last one.
        waits: for each wait so far, how many waits the core has done with it.
    """

    counts: deque[Clock] = field(default_factory=deque)
    arrived: int = 0
    last: list[_Set] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)


_Group = tuple[tuple[int, ...], bool, int]
"""Cores that have to set a flag, whether it is for all cores of their kind, and its number."""


class FlagClocks:
    """Follows cores from wait to wait.

    Attributes:
        clocks: of each core, in front of its first wait and behind each one.
        faults: what goes wrong; nobody is followed any further then.

    Args:
        depth: most that a counter of a flag holds.
    """

    def __init__(
        self, places: Sequence[CorePlace], cores: Sequence[Sequence[CoreStep]], depth: int
    ) -> None:
        self._places, self._depth = places, depth
        self._work = [list(_work_of(steps)) for steps in cores]
        self._talk = [
            [s for s in steps if isinstance(s, CoreFlagSet | FlagWait)] for steps in cores
        ]
        self._pending: dict[_Group, dict[int, deque[_Set]]] = {}
        self._counters: dict[tuple[int, int], _Counter] = defaultdict(_Counter)
        self._last: dict[tuple[_Group, int], _Set] = {}
        self._scopes: dict[tuple[int, bool], tuple[tuple[int, ...], tuple[int, ...]]] = {}
        count = len(places)
        self.clocks = [[np.zeros((count, WAITS + 1), np.int32)] for _ in range(count)]
        self.faults: list[str] = []
        self._next = [0] * count
        self._ready = deque(range(count))
        while self._ready and not self.faults:
            self._advance(self._ready.popleft())
        if not self.faults:
            self.faults += self._stuck() or self._left()

    def name(self, core: int) -> str:
        """The core as its place on the machine."""
        return str(self._places[core])

    def _advance(self, core: int) -> None:
        """Takes a core as far as it comes."""
        talk, clocks = self._talk[core], self.clocks[core]
        while self._next[core] < len(talk) and not self.faults:
            step = talk[self._next[core]]
            if isinstance(step, CoreFlagSet):
                clock = clocks[-1].copy()
                np.maximum(clock[core, :WAITS], step.complete, out=clock[core, :WAITS])
                clock[core, WAITS] = len(clocks) - 1
                self._set(core, step, _Set(core, step.pipe, step.number, clock, step))
            else:
                counter = self._counters[core, step.flag]
                if not counter.counts:
                    return
                counter.waits.append(len(clocks))
                clocks.append(np.maximum(clocks[-1], counter.counts.popleft()))
            self._next[core] += 1

    def _set(self, core: int, step: CoreFlagSet, own: _Set) -> None:
        senders, receivers = self._scope(core, step.of_all)
        if not receivers:
            where = location_text(step.op.location)
            self.faults.append(f"a flag that nobody receives, set by {self.name(core)} at {where}")
            return
        group = senders, step.of_all, step.flag
        before = self._last.get((group, core))
        if before is not None and not before.known_to(own.clock):
            self._either(step.flag, before, own)
        self._last[group, core] = own
        queues = self._pending.setdefault(group, {each: deque() for each in senders})
        queues[core].append(own)
        if len(queues[core]) > self._depth:
            self._too_far(step.flag, core, own)
        if not all(queues.values()):
            return
        sets = [queue.popleft() for queue in queues.values()]
        clock = np.maximum.reduce([each.clock for each in sets])
        for receiver in receivers:
            self._arrive(receiver, step.flag, sets, clock)

    def _arrive(self, core: int, flag: int, sets: list[_Set], clock: Clock) -> None:
        counter = self._counters[core, flag]
        for before in counter.last:
            if not before.known_to(clock):
                self._either(flag, before, sets[-1])
        counter.counts.append(clock)
        self._ready.append(core)
        counter.last = sets
        counter.arrived += 1
        over = counter.arrived - self._depth
        if over > 0 and not (
            len(counter.waits) >= over and clock[core, WAITS] >= counter.waits[over - 1]
        ):
            self._too_far(flag, core, sets[-1])

    def _scope(self, core: int, of_all: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Who must set a flag, and on whom it counts then."""
        if (core, of_all) not in self._scopes:
            own = self._places[core]
            rows = list(enumerate(self._places))
            kin = tuple(i for i, p in rows if p.kind == own.kind)
            near = tuple(i for i in kin if self._places[i].group == own.group)
            others = tuple(i for i, p in rows if p.kind != own.kind and p.group == own.group)
            self._scopes[core, of_all] = (kin, kin) if of_all else (near, others)
        return self._scopes[core, of_all]

    def _either(self, flag: int, first: _Set, second: _Set) -> None:
        one, other = (
            f"{self.name(each.core)} at {location_text(each.step.op.location)}"
            for each in (first, second)
        )
        self.faults.append(f"sets of flag {flag} that may come in either order: {one} and {other}")

    def _too_far(self, flag: int, core: int, own: _Set) -> None:
        self.faults.append(
            f"flag {flag} of {self.name(core)} that may count above {self._depth}, set at "
            f"{location_text(own.step.op.location)}"
        )

    def _stuck(self) -> list[str]:
        """A deadlock: a core, and who has not set the flag that it waits for."""
        for core, talk in enumerate(self._talk):
            if self._next[core] == len(talk):
                continue
            step = talk[self._next[core]]
            late = self._late(core, step.flag)
            who = "nobody sets" if late is None else f"{self.name(late)} does not set"
            return [
                f"a deadlock: {self.name(core)} waits for flag {step.flag}, which {who}, at "
                f"{location_text(step.op.location)}"
            ]
        return []

    def _late(self, core: int, flag: int) -> int | None:
        """Who has not set a flag that others have set for a core."""
        for (senders, of_all, number), queues in self._pending.items():
            receivers = self._scope(senders[0], of_all)[1]
            if number == flag and any(queues.values()) and core in receivers:
                return next(each for each in senders if not queues[each])
        return None

    def _left(self) -> list[str]:
        """Flags that nobody has waited for."""
        counters = self._counters.items()
        found = [
            f"flag {flag} of {self.name(core)}" for (core, flag), own in counters if own.counts
        ]
        for (*_, flag), queues in self._pending.items():
            found += [f"flag {flag} by {self.name(core)}" for core, sets in queues.items() if sets]
        return [f"flags between cores that are left set: {', '.join(found[:4])}"] if found else []

    def cuts(self) -> list[list[int]]:
        """Numbers of waits of each core behind which all cores are after all in front of them.

        They are looked for where one core gets to know of all others. That is a cube core where
        there are any: in a meeting of both kinds it is the first to.
        """
        found: list[list[int]] = []
        everyone = range(len(self._places))
        first = next((c for c in everyone if self._places[c].kind == CUBE_CORE), 0)
        place, last = [0 for _ in everyone], self.clocks[first][0]
        for waits, clock in enumerate(self.clocks[first]):
            grown = np.flatnonzero((clock > last).any(axis=1))
            if not {*everyone} <= {first, *grown.tolist()}:
                continue
            need = clock.copy()
            need[first] = self._work[first][waits]
            place = [self._reached(core, need, place[core]) for core in everyone]
            if any(n == len(own) for n, own in zip(place, self.clocks, strict=True)):
                break
            if self._is_cut(place):
                found.append(place)
                last = clock
        return found

    def _reached(self, core: int, need: Clock, start: int) -> int:
        """Behind how many waits a core knows so much of all others."""
        clocks, own = self.clocks[core], need[core].copy()
        need[core] = 0
        waits = start
        while waits < len(clocks) and not (clocks[waits] >= need).all():
            waits += 1
        need[core] = own
        return waits

    def _is_cut(self, place: Sequence[int]) -> bool:
        """Whether what cores do behind so many waits is after what the others do in front."""
        everyone = range(len(place))
        work = np.stack([self._work[core][place[core]] for core in everyone])
        for core in everyone:
            clock = self.clocks[core][place[core]]
            late = np.flatnonzero((clock < work).any(axis=1))
            if not {core}.issuperset(late.tolist()):
                return False
        return True

    def ordered(self, first: PlacedAccess, second: PlacedAccess) -> bool | None:
        """Whether one of two accesses is after the other; None if only a part of a loop's is."""
        parts = False
        for (access, core, _), (_, other, waits) in ((first, second), (second, first)):
            work = access.work
            known = self.clocks[other][waits][core, work.pipe]
            if known >= work.last:
                return True
            parts |= bool(known >= work.first)
        return None if parts else False


def _work_of(steps: Sequence[CoreStep]) -> Iterator[np.ndarray]:
    """What a core has given each of its pipes to do in front of everything and in front of each
    wait, as a row of a clock."""
    done = np.zeros(WAITS + 1, np.int32)
    yield done.copy()
    for step in steps:
        if isinstance(step, FlagWait):
            yield done.copy()
        elif isinstance(step, CoreFlagSet):
            done[step.pipe] = step.number
        elif isinstance(step, CoreAccess):
            done[step.work.pipe] = step.work.last


def judge_flags(
    places: Sequence[CorePlace], cores: Sequence[Sequence[CoreStep]], depth: int
) -> LaunchVerdict:
    """Whether the cores of a launch come through all waits, and what they do without order."""
    clocks = FlagClocks(places, cores, depth)
    return judge_order(cores, clocks, clocks.faults)
