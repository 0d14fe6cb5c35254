"""Races: accesses to the same bytes, one of them a write, that nothing orders.

Each pipe numbers its instructions. The clock of a pipe says, for every pipe, up to which number
its next instruction knows the instructions there to be complete. `set_flag` sends the clock of its
pipe, including all its instructions so far; `wait_flag` takes it over; a barrier adds what it
waited for. An access races with an earlier one that the clock does not cover, if their bytes meet:
bounds first, then byte-exactly, so that there are neither false alarms nor escapes. In the same way
a flag must not be set again unless its pipe knows that the wait for it is over.

Stores that add elements of one type to global memory do so as one indivisible operation each: two
of them need no order between them, anything else and one of them does.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from davinci.isa.core import LOCATION_SHIFT, Pipe, Records, Space
from davinci.simulator.checks.unit_flags import UnitFlags
from davinci.simulator.core.events import ALL, PIPES, Event, S, name_of
from davinci.simulator.core.forms import InstructionForm, TouchedRegion
from davinci.simulator.core.problems import UnplacedFault
from davinci.simulator.core.regions import Region, Repeated
from davinci.simulator.split.cross_core import WAITS, Knowledge, join

FEW = 24
"""Accesses that are compared one by one; more are first sieved by their bounds with NumPy."""


@dataclass(frozen=True)
class Party:
    """An instruction that touched memory: what a message says about it."""

    index: int
    form: InstructionForm
    location: int


@dataclass(frozen=True)
class InstructionRun(Party):
    """Instructions in a row that count as one, whose regions are `Repeated`; the first is `index`.

    Attributes:
        records: of them.
    """

    records: Records

    def member(self, number: int) -> Party:
        """One of them."""
        location = int(self.records[number, 0]) >> LOCATION_SHIFT
        return Party(self.index + number, self.form, location)


def add_alike(one: Party, other: Party) -> bool:
    """Whether both instructions add elements of the same type to global memory."""
    return one.form.adds != "" and one.form.adds == other.form.adds


def store_alike(one: GmAccess, other: GmAccess) -> bool:
    """Whether both leave the same at the same place, so that their order decides on nothing."""
    return one.stored != "" and (one.address, one.stored) == (other.address, other.stored)


def members(region: Region, address: int, party: Party) -> Iterator[LogEntry]:
    """The region, address and instruction of an access, or of each access of a run."""
    if not isinstance(party, InstructionRun) or not isinstance(region, Repeated):
        yield region, address, party
        return
    for i in range(region.count):
        yield region.one, address + i * region.step, party.member(i)


class GmAccess(NamedTuple):
    """A region of global memory that an instruction touched, for checks between blocks and cores.

    Attributes:
        region, address: what it touched.
        party: the instruction.
        number: of the instruction in its pipe.
        known: what it knew of other cores.
        stored: of a store where the same of two cores is no race, which bytes of the region it
            wrote, and a checksum of them; "" for any other access.
    """

    region: Region
    address: int
    party: Party
    number: int
    known: Knowledge
    stored: str = ""


Clock = Sequence[int]
"""For every pipe, up to which number its instructions are known to be complete."""

Ports = tuple[Sequence[TouchedRegion], Sequence[TouchedRegion]]
"""Regions that an instruction reads, and those that it writes."""

LogEntry = tuple[Region, int, Party]
"""Region and address of an access, and its instruction."""


class Log:
    """The accesses of one pipe to one memory, reads or writes, in program order."""

    __slots__ = ("entries", "highs", "last", "lows", "numbers")

    def __init__(self) -> None:
        self.last = 0
        self.numbers, self.lows, self.highs = array("q"), array("q"), array("q")
        self.entries: list[LogEntry] = []

    def add(self, number: int, low: int, high: int, entry: LogEntry) -> None:
        self.last = number
        self.numbers.append(number)
        self.lows.append(low)
        self.highs.append(high)
        self.entries.append(entry)

    def meeting(self, known: int, low: int, high: int) -> Iterable[LogEntry]:
        """Entries numbered above `known` whose bounds meet [low, high)."""
        first = bisect_right(self.numbers, known)
        lows, highs = self.lows, self.highs
        if len(lows) - first <= FEW:
            near = [i for i in range(first, len(lows)) if lows[i] < high and highs[i] > low]
        else:
            below = np.frombuffer(lows, dtype=np.int64)[first:] < high
            above = np.frombuffer(highs, dtype=np.int64)[first:] > low
            near = (np.flatnonzero(below & above) + first).tolist()
        return [self.entries[i] for i in near]

    def conflicts(
        self, known: int, port: TouchedRegion, base: int, does: str, did: str, party: Party
    ) -> Iterator[AccessConflict]:
        """Conflicts of a region at an address, which `party` touches, with the log's entries
        numbered above `known`."""
        region = port.region
        if region.empty:
            return
        for entry in self.meeting(known, base + region.low, base + region.high):
            if port.space == Space.GM and add_alike(entry[2], party):
                continue
            if region.overlaps(base, entry[0], entry[1]) is None:
                continue
            for other, address, before in members(*entry):
                common = region.overlaps(base, other, address)
                if common is not None:
                    yield AccessConflict(before, port.space, common, does, did)


class Races:
    """The race check of one core.

    Args:
        sequential: pipes whose own instructions never overlap.
        units: of L0C, see `isa.unit_flags`.

    Attributes:
        foreign: what instructions from now on know of other cores. A wait for another core holds
            the scalar unit, so all pipes know the same.
    """

    def __init__(self, sequential: Iterable[Pipe], units: int = 0) -> None:
        self._sequential = frozenset(int(pipe) for pipe in sequential)
        self._unit_count = units
        self.reset()

    def reset(self, queued_flags: bool = False) -> None:
        """Forgets everything, for a new block.

        Args:
            queued_flags: a flag may be set again before the wait for it is over.
        """
        self._queued_flags = queued_flags
        self._numbers = [0] * PIPES
        self._units = UnitFlags(self._unit_count)
        self._clocks = [[0] * PIPES for _ in range(PIPES)]
        self._sent: dict[Event, deque[tuple[list[int], int]]] = {}
        self._early: dict[Event, deque[tuple[int, int]]] = {}
        self._waited: dict[Event, int] = {}
        self._matched: dict[Event, tuple[int, int]] = {}
        self.foreign: Knowledge = {}
        self._polled: int | None = None
        self._reads: list[dict[int, Log]] = [{} for _ in range(max(Space) + 1)]
        self._writes: list[dict[int, Log]] = [{} for _ in range(max(Space) + 1)]

    def access(self, party: Party, words: list[int]) -> None:
        """Checks the regions of an instruction against all before it, and notes them.

        Raises:
            Race: with the last instruction before it that it is unordered with: what orders it
                after that one orders it after most others too.
        """
        form = party.form
        number, known = self._advance(party, words)
        ports = form.reads, form.writes
        conflicts = list(self._conflicts(party, words, ports, known))
        if conflicts:
            conflict = max(conflicts, key=lambda conflict: conflict.before.index)
            raise Race(conflict, party, self._flags(conflict.before, party))
        self._note(party, words, ports, number)

    def access_on_chip(self, party: Party, words: list[int]) -> None:
        """Notes what an instruction touches on the chip; it is known to race with nothing."""
        number, _ = self._advance(party, words)
        self._note(party, words, party.form.chip_ports, number)

    def access_gm(self, party: Party, words: list[int], number: int, known: Clock) -> bool:
        """Notes what an instruction, or a run, touches in global memory, unless it races there.

        Args:
            number: of it in its pipe; of a run that of the last.
            known: the clock of its pipe.

        Returns:
            Whether it does not.
        """
        ports = party.form.far_ports
        if any(self._conflicts(party, words, ports, known)):
            return False
        self._note(party, words, ports, number)
        return True

    def clock(self, pipe: int) -> Clock:
        """The pipe's vector clock as it is now."""
        return tuple(self._clocks[pipe])

    def _advance(self, party: Party, words: list[int]) -> tuple[int, Clock]:
        """The next instruction of a pipe: its number, and the pipe's clock, with what units of L0C
        add to it."""
        pipe = int(party.form.pipe)
        number = self._numbers[pipe] = self._numbers[pipe] + 1
        clock = self._clocks[pipe]
        if party.form.l0c_word:
            clock = self._units.take(party.form, words, party.index, number, clock)
        return number, clock

    def _conflicts(
        self, party: Party, words: list[int], ports: Ports, known: Clock
    ) -> Iterator[AccessConflict]:
        """With what was noted and `known` does not cover."""
        pipe = int(party.form.pipe)
        sequential = pipe in self._sequential
        reads, writes = ports
        for port in reads:
            base = words[port.word] + port.offset
            for other, log in self._writes[port.space].items():
                if log.last > known[other] and not (other == pipe and sequential):
                    yield from log.conflicts(known[other], port, base, "reads", "writes", party)
        for port in writes:
            base = words[port.word] + port.offset
            for other, log in self._writes[port.space].items():
                if log.last > known[other] and not (other == pipe and sequential):
                    yield from log.conflicts(known[other], port, base, "writes", "writes", party)
            for other, log in self._reads[port.space].items():
                if log.last > known[other] and other != pipe:
                    yield from log.conflicts(known[other], port, base, "writes", "reads", party)

    def _note(self, party: Party, words: list[int], ports: Ports, number: int) -> None:
        pipe = int(party.form.pipe)
        for logs, mine in zip((self._reads, self._writes), ports, strict=True):
            for port in mine:
                region = port.region
                if region.empty:
                    continue
                base = words[port.word] + port.offset
                by_pipe = logs[port.space]
                noted = by_pipe.get(pipe)
                if noted is None:
                    noted = by_pipe[pipe] = Log()
                noted.add(number, base + region.low, base + region.high, (region, base, party))

    def set_flag(self, event: Event, index: int) -> None:
        """The event carries all that its source pipe knows and did.

        Args:
            event: what instruction `index` sets.

        Raises:
            Problem: the wait for the same flag before may come later than this.
        """
        source, destination, number = event
        # What the scalar unit waited for is over before anything else is issued.
        late = self._waited.get(event, 0) > self._clocks[source][destination]
        if late and destination != S and not self._queued_flags:
            first, second = f"PIPE_{Pipe(source).name}", f"PIPE_{Pipe(destination).name}"
            raise UnplacedFault(
                "the flag may be set again before the wait for it is over",
                found=f"event {number} from {first} to {second}",
                expected=f"{first} to be ordered after that wait_flag of {second}",
                hint=f"put a flag from {second} to {first} between, or use another event id",
            )
        clock = self._clocks[source].copy()
        clock[source] = self._numbers[source]
        early = self._early.get(event)
        if early:
            self._waited[event], waited = early.popleft()
            self._matched[event] = index, waited
            self._learn(destination, clock)
        else:
            self._sent.setdefault(event, deque()).append((clock, index))

    def wait_flag(self, event: Event, index: int) -> None:
        """The destination learns it. If the flag is set later in program order, it learns then."""
        destination = event[1]
        self._numbers[destination] += 1
        sent = self._sent.get(event)
        if sent:
            self._waited[event] = self._numbers[destination]
            clock, was_set = sent.popleft()
            self._matched[event] = was_set, index
            self._learn(destination, clock)
        else:
            self._early.setdefault(event, deque()).append((self._numbers[destination], index))

    def _learn(self, pipe: int, clock: list[int]) -> None:
        """A pipe takes over what a flag carries. While the scalar pipe waits it issues nothing:
        what it learns holds for all pipes, which know what it knew before."""
        mine = self._clocks[pipe]
        new = [(other, n) for other, n in enumerate(clock) if n > mine[other]]
        for known in self._clocks if pipe == S else (mine,):
            for other, n in new:
                if known[other] < n:
                    known[other] = n

    def barrier(self, pipe: int) -> None:
        """Orders a pipe, or all, after what they did."""
        if pipe != ALL:
            self._clocks[pipe][pipe] = self._numbers[pipe]
            return
        self._clocks = [self._numbers.copy() for _ in range(PIPES)]
        for logs in (*self._reads[Space.L1 :], *self._writes[Space.L1 :]):
            logs.clear()

    def number(self, pipe: int) -> int:
        """Number of the last instruction of a pipe."""
        return self._numbers[pipe]

    def send(self, pipe: int, seat: int) -> tuple[Knowledge, int]:
        """`pipe` of the core on `seat` sets a flag between cores.

        Returns:
            What the flag carries, and the number that the set has in its pipe.
        """
        self._numbers[pipe] += 1
        clock = self._clocks[pipe].copy()
        clock[pipe] = self._numbers[pipe]
        return join([self.foreign, {seat: clock}]), clock[pipe]

    def receive(self, knowledge: Knowledge, seat: int) -> None:
        """The core on `seat` has waited for a flag, and learns what it carried."""
        self._numbers[WAITS] += 1
        for clock in self._clocks:
            clock[WAITS] = self._numbers[WAITS]
        own = knowledge.get(seat)
        if own is not None:
            self._learn(S, list(own))
        self.foreign = join([self.foreign, {k: v for k, v in knowledge.items() if k != seat}])

    def begin_poll(self) -> None:
        """The load issued next reads counters of other cores."""
        self._polled = self._numbers[Pipe.MTE2] + 1

    def end_poll(self) -> None:
        """The scalar unit has looked at what it loaded."""
        self._polled = None

    def is_behind_poll(self, pipe: int) -> bool:
        """Whether the next instruction of a pipe begins when a load of counters is complete at
        which the scalar unit has not looked yet."""
        return self._polled is not None and self._clocks[pipe][Pipe.MTE2] >= self._polled

    def _flags(self, before: Party, party: Party) -> MisplacedFlags:
        """The flags that were to order `party` after `before`, and fail to."""
        pair = before.form.pipe, party.form.pipe
        held = (party.form.pipe, S)
        unset = [(w, e) for e, q in self._early.items() if e[1] in held for _, w in q]
        unwaited = [(s, e) for e, q in self._sent.items() if e[:2] == pair for _, s in q]
        early = [
            (s, e) for e, (s, w) in self._matched.items() if e[:2] == pair and w > before.index
        ]
        # A wait for the pipe in question says more than one for another.
        unset.sort(key=lambda found: (found[1][0] != pair[0], found[0]))
        return MisplacedFlags(*(next(iter(found), None) for found in (unset, unwaited, early)))


class AccessConflict(NamedTuple):
    """An access to bytes that an instruction before it, `before`, touched.

    Attributes:
        space, common: the bytes, from and to.
        does, did: "reads" or "writes", of the later and the earlier one.
    """

    before: Party
    space: Space
    common: tuple[int, int]
    does: str
    did: str


class MisplacedFlags(NamedTuple):
    """Flags between two instructions that do not order them, each with its instruction's index.

    Attributes:
        unset: a `wait_flag` before the second one, whose flag nothing has set.
        unwaited: a `set_flag` for which nothing has waited.
        early: a `set_flag` before the first one, whose `wait_flag` is behind it.
    """

    unset: tuple[int, Event] | None
    unwaited: tuple[int, Event] | None
    early: tuple[int, Event] | None


class Race(UnplacedFault):
    """Two accesses that nothing orders.

    Attributes:
        before: the earlier one in program order.
    """

    def __init__(self, conflict: AccessConflict, party: Party, flags: MisplacedFlags) -> None:
        first, second = conflict.before.form.pipe, party.form.pipe
        super().__init__(
            "race",
            expected="a flag or barrier between accesses to the same bytes, if one of them writes",
            hint=advice(first, second, conflict.before.index, flags),
        )
        self.before, self._did = conflict.before, conflict.did
        low, high = conflict.common
        self._does = f"it {conflict.does} {conflict.space.name} [{low:#x}, {high:#x})"
        self._unset = flags.unset

    def between(self, before: str) -> str:
        """The message, with the earlier instruction as `before` describes it."""
        race = f"race: {self._does}, which {before} {self._did}, without an order between them"
        if self._unset is None:
            return race
        index, event = self._unset
        return (
            f"wait_flag #{index} waits for {name_of(event)}, which no set_flag has set; so {race}"
        )


def advice(first: Pipe, second: Pipe, index: int, flags: MisplacedFlags) -> str:
    """Advice on a race of an instruction of pipe `second` with number `index` of `first`."""
    pair = f"PIPE_{first.name}, PIPE_{second.name}"
    if flags.unset is not None and flags.unset[1][0] != first:
        source, destination, event = flags.unset[1]
        pair = f"PIPE_{Pipe(source).name}, PIPE_{Pipe(destination).name}"
        return f"put set_flag({pair}, {event}) before that wait_flag, or remove it"
    if flags.unset is not None and flags.unwaited is not None:
        (wait, waited), (setter, was_set) = flags.unset, flags.unwaited
        return (
            f"give set_flag #{setter} and wait_flag #{wait} one event id: they have {was_set[2]} "
            f"and {waited[2]}"
        )
    if flags.unset is not None:
        return f"put set_flag({pair}, {flags.unset[1][2]}) after the first"
    if first == second:
        return f"put pipe_barrier(PIPE_{first.name}) between them"
    misplaced = flags.unwaited or flags.early
    if misplaced is None:
        return f"put set_flag({pair}, id) after the first and wait_flag({pair}, id) before this"
    setter, (*_, number) = misplaced
    parts = [f"put set_flag #{setter} after the first"] if setter < index else []
    if flags.unwaited is not None:
        parts.append(f"put wait_flag({pair}, {number}) before this, for the flag of #{setter}")
    return " and ".join(parts)
