"""What the machine orders in a stream of instructions, worked out as a graph of events.

Made from docs/architecture.md ("Ordering that the machine gives by itself") and the instruction
records alone, so that the simulator's race check can be held against it. Every instruction has a
read event and a write event: it reads all its sources, then writes all its results. A flag or
barrier has one event. Edges are what the machine guarantees; everything else follows transitively.
Several cores make one graph: their steps one core after the other, the flags between the cores of a
split machine as edges, or the counters by which those of a coupled one wait for each other. A line
of counters only grows, so who waits for a number comes after the first post that reaches it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from davinci.isa.core import Pipe
from davinci.isa.counters import LINE_BYTES
from fuzz.stream_steps import AWAIT, END_POLL, POLL, POST, SCALAR, SIGNAL, Conflicts, Step


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
        unmatched: flags set and waited for unequally often, or set from several sides in no known
            order; lines in which a counter does not grow, or in which several cores count.
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
        running: ends of the instructions of a pipe; what a flag or barrier has waited for stands
            for all before it.
    """

    def __init__(self) -> None:
        self.issue: list[int] = []
        self.gate: dict[Pipe, list[int]] = defaultdict(list)
        self.started: dict[Pipe, int] = {}
        self.running: dict[Pipe, list[int]] = defaultdict(list)


@dataclass
class _Look:
    """A look at counters.

    Attributes:
        lines, wanted: lines that a core looks at, and the number that it waits for.
        end: of the look.
        loads: reads of the loads since its beginning, that of the counters first.
        seen: posts that it comes after.
    """

    lines: range
    wanted: int
    end: int
    loads: list[int]
    seen: list[int] = field(default_factory=list)


@dataclass
class _SharedFlag:
    """A flag that a core waits for and that several sides set.

    Attributes:
        sides: of each side, the sets that no wait is answered by yet: events, of all its setters.
        waits: those that are not answered yet.
    """

    sides: list[deque[tuple[int, ...]]]
    waits: deque[int]


class Order:
    """The transitive order of a stream, some of its steps left out."""

    def __init__(
        self,
        steps: Sequence[Step],
        sequential: Iterable[Pipe],
        without: Collection[int] = (),
        places: Sequence[Place] = (),
        queued: bool = False,
    ) -> None:
        """Works it out.

        Args:
            sequential: pipes whose own instructions never overlap.
            without: numbers of steps that are left out.
            places: of the cores of a split machine, by their number.
            queued: a flag may be set again before the wait for it is over, if that wait is issued.
        """
        self._queued = queued
        self._steps, self._sequential, self._places = steps, frozenset(sequential), places
        self._kept = [i for i in range(len(steps)) if i not in without]
        self._before: list[list[int]] = [[] for _ in range(2 * len(steps))]
        self._sets: dict[tuple[int, ...], list[int]] = defaultdict(list)
        self._waits: dict[tuple[int, ...], list[int]] = defaultdict(list)
        self._signals: dict[tuple[int, ...], list[int]] = defaultdict(list)
        """Core, mode and flag -> sets of a flag between cores."""
        self._awaits: dict[tuple[int, ...], list[int]] = defaultdict(list)
        """Core and flag -> waits for it."""
        self._posts: dict[int, list[tuple[int, int]]] = defaultdict(list)
        """Line of a counter -> numbers, and when they are there."""
        self._looks: list[_Look] = []
        self._uneven: list[tuple[int, ...]] = []
        self._lonely: list[int] = []
        """Waits that nothing answers."""
        self._shared: dict[tuple[int, ...], _SharedFlag] = {}
        """Core and flag -> sets from several sides, and waits."""
        self.known: list[int] = [0] * len(self._before)
        """For each event, 2 i reads of step i and 2 i + 1 writes, the events before it: a bit each,
        writes of all steps from bit 0 on, then their reads."""
        self._build()
        self._answer_flags()
        self._answer_other_cores()
        self._answer_counters()
        self._answer_shared_flags()
        self.stuck = self._close()
        if self._acquire():
            self.stuck = self._close()

    def _build(self) -> None:
        cores: dict[int, _Core] = defaultdict(_Core)
        polls: dict[int, tuple[Step, list[int]]] = {}
        for i in self._kept:
            step, core, read, write = self._steps[i], cores[self._steps[i].core], 2 * i, 2 * i + 1
            pipe, before = step.pipe, self._before[2 * i]
            self._before[write].append(read)
            before += core.issue
            if pipe == Pipe.ALL:
                before += [event for events in core.running.values() for event in events]
                before += list(core.started.values())
                core.issue = [write]
                core.running.clear()
                continue
            before += core.gate[pipe]
            if pipe in core.started and step.name not in ("set_flag", SIGNAL, POST):
                before.append(core.started[pipe])
            if step.name in ("set_flag", SIGNAL, POST, "pipe_barrier"):
                before += core.running[pipe]
                if step.name not in (SIGNAL, POST):
                    core.running[pipe] = [write]
            elif step.name == SCALAR or (
                pipe in self._sequential and pipe != Pipe.S and step.name != "wait_flag"
            ):
                before += core.running[pipe][-1:]
            if step.name == "set_flag":
                self._sets[(step.core, *step.event)].append(write)
            elif step.name == POST:
                self._posts[step.values["line"]].append((step.values["value"], write))
            elif step.name == POLL:
                polls[step.core] = step, []
            elif step.name == SIGNAL:
                self._signals[step.core, step.values["mode"], step.values["flag"]].append(write)
            elif step.name in ("wait_flag", AWAIT, END_POLL, "pipe_barrier"):
                core.started[pipe], core.gate[pipe] = write, [write]
                if step.name == "wait_flag":
                    self._waits[(step.core, *step.event)].append(write)
                elif step.name == AWAIT:
                    self._awaits[step.core, step.values["flag"]].append(write)
                elif step.name == END_POLL:
                    begin, loads = polls.pop(step.core)
                    poll = begin.values
                    last = poll["lines"] + poll["count"] * LINE_BYTES
                    lines = range(poll["lines"], last, LINE_BYTES)
                    self._looks.append(_Look(lines, poll["value"], write, loads))
                if pipe == Pipe.S:
                    core.issue = [write]
            elif step.name == SCALAR:
                # It may take longer than the next waits of the scalar unit.
                core.running[pipe].append(write)
            else:
                if step.core in polls and pipe == Pipe.MTE2:
                    polls[step.core][1].append(read)
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
        sides: dict[tuple[int, ...], list[deque[tuple[int, ...]]]] = defaultdict(list)
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
                sides[receiver, flag].append(deque(zip(*parts, strict=False)))
        for key in {*sides, *self._awaits}:
            sets, waits = sides[key], self._awaits[key]
            if sum(map(len, sets)) != len(waits):
                self._uneven.append(key)
            if len(sets) > 1:
                self._shared[key] = _SharedFlag(sets, deque(waits))
                continue
            answers = sets[0] if sets else ()
            for wait, fired in zip(waits, answers, strict=False):
                self._before[wait - 1] += fired
            self._lonely += waits[len(answers) :]

    def _answer_shared_flags(self) -> None:
        """A wait for a flag that several sides set comes after the one set that can be there first.

        Each wait that is answered orders more of the sets, so those of all flags are looked at
        until no more is known.
        """
        answered = bool(self._shared)
        while answered:
            answered = False
            self._close()
            for flag in self._shared.values():
                if flag.waits and (first := self._first_side(flag)) is not None:
                    self._before[flag.waits.popleft() - 1] += first.popleft()
                    answered = True
        for key, flag in self._shared.items():
            self._lonely += flag.waits
            if flag.waits or any(flag.sides):
                self._uneven.append(key)

    def _first_side(self, flag: _SharedFlag) -> deque[tuple[int, ...]] | None:
        """The side whose set the next wait is answered by: those of all others come after it, or
        after the wait. None if that is not known."""
        wait, sides = flag.waits[0], [side for side in flag.sides if side]

        def later(other: tuple[int, ...], first: tuple[int, ...]) -> bool:
            return any(self._knows(event, wait) for event in other) or all(
                any(self._knows(event, earlier) for event in other) for earlier in first
            )

        for side in sides:
            if all(later(other[0], side[0]) for other in sides if other is not side):
                return side
        return None

    def _answer_counters(self) -> None:
        """Who has seen counters comes after the first posts that reach what it waits for."""
        for line, posts in self._posts.items():
            cores = {self._steps[event // 2].core for _, event in posts}
            if len(cores) > 1 or any(b <= a for (a, _), (b, _) in pairwise(posts)):
                self._uneven.append((line,))
        for look in self._looks:
            for line in look.lines:
                reached = (event for value, event in self._posts[line] if value >= look.wanted)
                found = next(reached, None)
                if found is None:
                    self._lonely.append(look.end)
                else:
                    look.seen.append(found)
            self._before[look.end - 1] += look.seen

    def _acquire(self) -> bool:
        """What is loaded between a poll and its end when the counters have been comes after the
        posts that were seen. Says whether there is such a load."""
        found = False
        for look in self._looks:
            if not look.loads:
                continue
            counters, *others = look.loads
            for read in others:
                if self._knows(read, counters + 1):
                    self._before[read] += look.seen
                    found = True
        return found

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
        through = [0] * len(self._before)  # what is known behind an event: itself too
        while ready:
            event = ready.popleft()
            known = 0
            for earlier in self._before[event]:
                known |= through[earlier]
            self.known[event] = known
            through[event] = known | 1 << self._bit(event)
            for later in after[event]:
                missing[later] -= 1
                if missing[later] == 0:
                    ready.append(later)
        return sorted({event // 2 for event, count in enumerate(missing) if count > 0})

    def verdict(self, conflicts: Conflicts) -> Verdict:
        """Holds the order against the conflicts of the whole stream."""
        unordered, reused = list(self._unordered(conflicts)), list(self._reused())
        return Verdict(unordered, reused, self._uneven, self.stuck)

    def sound(self, conflicts: Conflicts) -> bool:
        """Whether the verdict is; found sooner where it is not."""
        wrong = self._uneven or self.stuck or any(True for _ in self._reused())
        return not (wrong or any(True for _ in self._unordered(conflicts)))

    def _reused(self) -> Iterator[int]:
        for event, sets in self._sets.items():
            for wait, again in zip(self._waits[event], sets[1:], strict=False):
                if wait > again if self._queued else not self._knows(again, wait):
                    yield again // 2
        for signals in self._signals.values():
            for first, again in pairwise(signals):
                if not self._follows(first, again):
                    yield again // 2

    def _unordered(self, conflicts: Conflicts) -> Iterator[tuple[int, int]]:
        kept = sum(1 << i for i in self._kept)
        many = len(self._steps)
        for j in self._kept:
            # The write of i must be over before j reads, the read of i before j writes.
            written = conflicts.after_write[j] & kept & ~self.known[2 * j]
            read = conflicts.after_read[j] & kept & ~(self.known[2 * j + 1] >> many)
            for mask in (written, read):
                yield from ((i, j) for i in bits(mask) if not self._after(i, j))

    def _bit(self, event: int) -> int:
        """Its place in `known`."""
        return event // 2 if event % 2 else len(self._steps) + event // 2

    def _knows(self, event: int, before: int) -> bool:
        return bool(self.known[event] >> self._bit(before) & 1)

    def _follows(self, first: int, again: int) -> bool:
        """Whether a set of a flag comes after another one of its core: a pipe's own do."""
        pipes = {self._steps[event // 2].pipe for event in (first, again)}
        return len(pipes) == 1 or self._knows(again, first)

    def _after(self, i: int, j: int) -> bool:
        """Whether step i, of another core than j, comes after it altogether."""
        other = self._steps[i].core != self._steps[j].core
        return other and self._knows(2 * i, 2 * j + 1)


def bits(mask: int) -> Iterator[int]:
    """Numbers of the bits that are set."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
