"""What the machine orders in a stream of instructions, worked out as a graph of events.

Made from docs/architecture.md ("Ordering that the machine gives by itself") and the instruction
records alone, so that the simulator's race check can be held against it. Every instruction has a
read event and a write event: it reads all its sources, then writes all its results. A flag or
barrier has one event. Edges are what the machine guarantees; everything else follows transitively.
Several cores of a split machine make one graph: their steps one core after the other, the flags
between the cores as edges.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from davinci.isa.core import Pipe
from fuzz.stream_steps import AWAIT, SCALAR, SIGNAL, Conflicts, Step


@dataclass(frozen=True)
class Place:
    """Which core of a split machine runs a program.

    Attributes:
        kind: "AIC" or "AIV".
        group: number of the cube core that it is or belongs to.
    """

    kind: str
    group: int


def scope(places: Sequence[Place], core: int, mode: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of a flag between cores that `core` sets: who must set it, and on whom it counts then."""
    own = places[core]
    kin = tuple(i for i, p in enumerate(places) if p.kind == own.kind)
    if mode == 0:
        return kin, kin
    near = tuple(i for i in kin if places[i].group == own.group)
    if mode == 1:
        return near, near
    return near, tuple(i for i, p in enumerate(places) if p.group == own.group and i not in near)


@dataclass
class Verdict:
    """What is wrong with a stream.

    Attributes:
        unordered: pairs of steps that conflict and that nothing orders as the program does.
        reused: set_flags that may come before the wait for the same flag before is over, and sets
            of a flag between cores that may come before the same core's set before.
        unmatched: flags set and waited for unequally often, or set from several sides.
        stuck: steps that can never happen, however long the queues are.
    """

    unordered: list[tuple[int, int]] = field(default_factory=list)
    reused: list[int] = field(default_factory=list)
    unmatched: list[tuple[int, ...]] = field(default_factory=list)
    stuck: list[int] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        return not (self.unordered or self.reused or self.unmatched or self.stuck)


class _Core:
    """What the next instruction of a core comes after, while the graph is made: events.

    Attributes:
        issue: what every later instruction is issued after.
        gate: waits and barriers that later instructions of a pipe start after.
        started: start of the last instruction of a pipe.
        running: ends of the instructions of a pipe.
    """

    def __init__(self) -> None:
        self.issue: list[int] = []
        self.gate: dict[Pipe, list[int]] = defaultdict(list)
        self.started: dict[Pipe, int] = {}
        self.running: dict[Pipe, list[int]] = defaultdict(list)


class Order:
    """The transitive order of a stream, some of its steps left out."""

    def __init__(
        self,
        steps: Sequence[Step],
        sequential: Iterable[Pipe],
        without: Collection[int] = (),
        places: Sequence[Place] = (),
    ) -> None:
        """Works it out.

        Args:
            sequential: pipes whose own instructions never overlap.
            without: numbers of steps that are left out.
            places: of the cores of a split machine, by their number.
        """
        self._steps, self._sequential, self._places = steps, frozenset(sequential), places
        self._kept = [i for i in range(len(steps)) if i not in without]
        self._before: list[list[int]] = [[] for _ in range(2 * len(steps))]
        self._sets: dict[tuple[int, ...], list[int]] = defaultdict(list)
        self._waits: dict[tuple[int, ...], list[int]] = defaultdict(list)
        self._signals: dict[tuple[int, ...], list[int]] = defaultdict(list)
        """Core, mode and flag -> sets of a flag between cores."""
        self._awaits: dict[tuple[int, ...], list[int]] = defaultdict(list)
        """Core and flag -> waits for it."""
        self._uneven: list[tuple[int, ...]] = []
        self._lonely: list[int] = []
        """Waits that nothing answers."""
        self._build()
        self._answer_flags()
        self._answer_other_cores()
        self.known: list[int] = [0] * len(self._before)
        """For each event the events before it, a bit each: 2 i reads of step i, 2 i + 1 writes."""
        self.stuck = self._close()

    def _build(self) -> None:
        cores: dict[int, _Core] = defaultdict(_Core)
        for i in self._kept:
            step, core, read, write = self._steps[i], cores[self._steps[i].core], 2 * i, 2 * i + 1
            pipe, before = step.pipe, self._before[2 * i]
            self._before[write].append(read)
            before += core.issue
            if pipe == Pipe.ALL:
                before += [event for events in core.running.values() for event in events]
                before += list(core.started.values())
                core.issue = [write]
                continue
            before += core.gate[pipe]
            if pipe in core.started and step.name not in ("set_flag", SIGNAL):
                before.append(core.started[pipe])
            if step.name in ("set_flag", SIGNAL, "pipe_barrier"):
                before += core.running[pipe]
            elif step.name == SCALAR or (
                pipe in self._sequential and pipe != Pipe.S and step.name != "wait_flag"
            ):
                before += core.running[pipe][-1:]
            if step.name == "set_flag":
                self._sets[(step.core, *step.event)].append(write)
            elif step.name == SIGNAL:
                self._signals[step.core, step.values["mode"], step.values["flag"]].append(write)
            elif step.name in ("wait_flag", AWAIT, "pipe_barrier"):
                core.started[pipe], core.gate[pipe] = write, [write]
                if step.name == "wait_flag":
                    self._waits[(step.core, *step.event)].append(write)
                elif step.name == AWAIT:
                    self._awaits[step.core, step.values["flag"]].append(write)
                if pipe == Pipe.S:
                    core.issue = [write]
            elif step.name == SCALAR:
                # It may take longer than the next waits of the scalar unit.
                core.running[pipe].append(write)
            else:
                core.started[pipe] = read
                if pipe != Pipe.S:
                    core.running[pipe].append(write)

    def _answer_flags(self) -> None:
        """A wait for a flag comes after its set."""
        for event in {*self._sets, *self._waits}:
            sets, waits = self._sets[event], self._waits[event]
            if len(sets) != len(waits):
                self._uneven.append(event)
            for wait, fired in zip(waits, sets, strict=False):
                self._before[wait - 1].append(fired)
            self._lonely += waits[len(sets) :]

    def _answer_other_cores(self) -> None:
        """The n-th wait for a flag between cores comes after the n-th set of all its setters."""
        counts: dict[tuple[int, ...], list[tuple[int, ...]]] = defaultdict(list)
        done = set()
        for core, mode, flag in list(self._signals):
            setters, receivers = scope(self._places, core, mode)
            if (setters, mode, flag) in done:
                continue
            done.add((setters, mode, flag))
            parts = [self._signals[setter, mode, flag] for setter in setters]
            if len(set(map(len, parts))) > 1:
                self._uneven.append((core, mode, flag))
            for receiver in receivers:
                if counts[receiver, flag]:
                    self._uneven.append((receiver, mode, flag))
                counts[receiver, flag] += zip(*parts, strict=False)
        for key in {*counts, *self._awaits}:
            waits = self._awaits[key]
            if len(counts[key]) != len(waits):
                self._uneven.append(key)
            for wait, fired in zip(waits, counts[key], strict=False):
                self._before[wait - 1] += fired
            self._lonely += waits[len(counts[key]) :]

    def _close(self) -> list[int]:
        """Fills `known` in an order that respects the edges; returns steps in circles."""
        after: list[list[int]] = [[] for _ in self._before]
        missing = [len(before) for before in self._before]
        for event, before in enumerate(self._before):
            for earlier in before:
                after[earlier].append(event)
        for wait in self._lonely:
            missing[wait] += 1
        ready = deque(event for event, count in enumerate(missing) if count == 0)
        while ready:
            event = ready.popleft()
            known = 0
            for earlier in self._before[event]:
                known |= self.known[earlier] | 1 << earlier
            self.known[event] = known
            for later in after[event]:
                missing[later] -= 1
                if missing[later] == 0:
                    ready.append(later)
        return sorted({event // 2 for event, count in enumerate(missing) if count > 0})

    def verdict(self, conflicts: Conflicts) -> Verdict:
        """Holds the order against the conflicts of the whole stream."""
        found = Verdict(stuck=self.stuck, unmatched=self._uneven)
        for event, sets in self._sets.items():
            for wait, again in zip(self._waits[event], sets[1:], strict=False):
                if not self.known[again] >> wait & 1:
                    found.reused.append(again // 2)
        for signals in self._signals.values():
            for first, again in pairwise(signals):
                if not self._follows(first, again):
                    found.reused.append(again // 2)
        kept = sum(1 << i for i in self._kept)
        for j in self._kept:
            for mask, reads in ((conflicts.after_write[j], False), (conflicts.after_read[j], True)):
                for i in bits(mask & kept):
                    if not self._ordered(i, j, reads):
                        found.unordered.append((i, j))
        return found

    def _follows(self, first: int, again: int) -> bool:
        """Whether a set of a flag comes after another one of its core: a pipe's own do."""
        pipes = {self._steps[event // 2].pipe for event in (first, again)}
        return len(pipes) == 1 or bool(self.known[again] >> first & 1)

    def _ordered(self, i: int, j: int, reads: bool) -> bool:
        """Whether step i is done with what it reads, or writes, before j touches it.

        Two cores may also come the other way round.
        """
        if self.known[2 * j + reads] >> 2 * i + (not reads) & 1:
            return True
        other = self._steps[i].core != self._steps[j].core
        return other and bool(self.known[2 * i] >> 2 * j + 1 & 1)


def bits(mask: int) -> list[int]:
    """Numbers of the bits that are set."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found
