"""What the machine orders in a stream of instructions, worked out as a graph of events.

Made from docs/architecture.md ("Ordering that the machine gives by itself") and the instruction
records alone, so that the simulator's race check can be held against it. Every instruction has a
read event and a write event: it reads all its sources, then writes all its results. A flag or
barrier has one event. Edges are what the machine guarantees; everything else follows transitively.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
import numpy.typing as npt

from davinci.isa.core import BY_OPCODE, Access, Instruction, Pipe, Registers, Space

Records = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Event = tuple[int, int, int]
FLAGS = ("set_flag", "wait_flag")
SYNC = (*FLAGS, "pipe_barrier")


@dataclass(frozen=True)
class Footprint:
    """Bytes of one memory: disjoint ranges, sorted."""

    space: Space
    starts: Ints
    ends: Ints

    def meets(self, other: Footprint) -> bool:
        """Whether there is a common byte."""
        if self.space != other.space:
            return False
        last = np.searchsorted(other.starts, self.ends, side="left") - 1
        return bool(((last >= 0) & (other.ends[last] > self.starts)).any())


def footprint(access: Access) -> Footprint | None:
    """The bytes of an access, None if there are none."""
    offsets = np.array([access.address], dtype=np.int64)
    for count, stride in access.dims:
        offsets = (offsets[:, None] + stride * np.arange(count)).reshape(-1)
    size = access.dtype.itemsize
    if access.mask is None:
        size *= access.run
    else:
        offsets = (offsets[:, None] + size * np.arange(access.run)).reshape(-1)
        offsets = offsets[np.broadcast_to(access.mask, access.shape).reshape(-1)]
    if not offsets.size or not size:
        return None
    starts = np.unique(offsets)
    reach = np.maximum.accumulate(starts + size)
    first = np.concatenate([[True], starts[1:] > reach[:-1]])
    last = np.concatenate([first[1:], [True]])
    return Footprint(access.space, starts[first], reach[last])


@dataclass(frozen=True)
class Step:
    """One instruction of a stream.

    Attributes:
        registers: as they are when it is issued.
        event: of a flag: source pipe, destination pipe, id.
    """

    record: Instruction
    values: dict[str, int]
    pipe: Pipe
    registers: Registers
    accesses: tuple[Sequence[Access], Sequence[Access]]
    reads: tuple[Footprint, ...] = ()
    writes: tuple[Footprint, ...] = ()

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def event(self) -> Event:
        return self.values["src_pipe"], self.values["dst_pipe"], self.values["event"]


class Decoder:
    """Turns words into steps, in program order; keeps the registers that the scalar unit sets."""

    def __init__(self) -> None:
        self._registers = Registers()

    def step(self, words: Sequence[int]) -> Step:
        record, registers = BY_OPCODE[words[0] & 0xFFFF], self._registers
        values = record.decode(words[1:])
        now = Registers(registers.mask_low, registers.mask_high, va=registers.va.copy())
        reads, writes = accesses = record.accesses(values, now)
        pipe = record.pipe_of(values)
        if pipe == Pipe.S and not (reads or writes):
            record.compute(values, registers, [])
        touched = [
            tuple(f for f in map(footprint, part) if f is not None) for part in (reads, writes)
        ]
        return Step(record, values, pipe, now, accesses, *touched)


def decode(records: Records) -> list[Step]:
    """The steps of a stream."""
    decoder = Decoder()
    return [decoder.step(words) for words in records.tolist()]


class Conflicts:
    """Which earlier steps touch the same bytes as a step, one of the two writing.

    Attributes:
        after_write: for each step the earlier ones that write what it reads or writes, a bit each.
        after_read: for each step the earlier ones that read what it writes.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._prints: list[Footprint] = []
        self._meeting: list[set[int]] = []
        self._readers: dict[int, int] = defaultdict(int)
        self._writers: dict[int, int] = defaultdict(int)
        self.after_write: list[int] = []
        self.after_read: list[int] = []
        for step in steps:
            self._add(step)

    def _add(self, step: Step) -> None:
        reads = [self._number(f) for f in step.reads]
        writes = [self._number(f) for f in step.writes]
        near = {n for f in (*reads, *writes) for n in self._meeting[f]}
        written = {n for f in writes for n in self._meeting[f]}
        bit = 1 << len(self.after_write)
        self.after_write.append(reduce(or_, (self._writers[n] for n in near), 0))
        self.after_read.append(reduce(or_, (self._readers[n] for n in written), 0))
        for numbers, masks in ((reads, self._readers), (writes, self._writers)):
            for n in numbers:
                masks[n] |= bit

    def _number(self, wanted: Footprint) -> int:
        key = (wanted.space, wanted.starts.tobytes(), wanted.ends.tobytes())
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._prints)
            meeting = {n for n, other in enumerate(self._prints) if wanted.meets(other)}
            for n in meeting:
                self._meeting[n].add(found)
            self._prints.append(wanted)
            self._meeting.append(meeting | {found})
        return found


@dataclass
class Verdict:
    """What is wrong with a stream.

    Attributes:
        unordered: pairs of steps that conflict and that nothing orders as the program does.
        reused: set_flags that may come before the wait for the same flag before is over.
        unmatched: flags set and waited for unequally often.
        stuck: steps that can never happen, however long the queues are.
    """

    unordered: list[tuple[int, int]] = field(default_factory=list)
    reused: list[int] = field(default_factory=list)
    unmatched: list[Event] = field(default_factory=list)
    stuck: list[int] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        return not (self.unordered or self.reused or self.unmatched or self.stuck)


class Order:
    """The transitive order of a stream, some of its steps left out."""

    def __init__(
        self, steps: Sequence[Step], sequential: Iterable[Pipe], without: Collection[int] = ()
    ) -> None:
        self._steps, self._sequential = steps, frozenset(sequential)
        self._kept = [i for i in range(len(steps)) if i not in without]
        self._before: list[list[int]] = [[] for _ in range(2 * len(steps))]
        self._sets: dict[Event, list[int]] = defaultdict(list)
        self._waits: dict[Event, list[int]] = defaultdict(list)
        self._build()
        self.known: list[int] = [0] * len(self._before)
        """For each event the events before it, a bit each: 2 i reads of step i, 2 i + 1 writes."""
        self.stuck = self._close()

    def _build(self) -> None:
        issue: list[int] = []
        """What every later instruction is issued after."""
        gate: dict[Pipe, list[int]] = defaultdict(list)
        started: dict[Pipe, int] = {}
        running: dict[Pipe, list[int]] = defaultdict(list)
        for i in self._kept:
            step, read, write = self._steps[i], 2 * i, 2 * i + 1
            pipe, before = step.pipe, self._before[2 * i]
            self._before[write].append(read)
            before += issue
            if pipe == Pipe.ALL:
                before += [event for events in running.values() for event in events]
                before += list(started.values())
                issue = [write]
                continue
            before += gate[pipe]
            if pipe in started and step.name != "set_flag":
                before.append(started[pipe])
            if step.name in ("set_flag", "pipe_barrier"):
                before += running[pipe]
            elif pipe in self._sequential and running[pipe]:
                before.append(running[pipe][-1])
            if step.name == "set_flag":
                self._sets[step.event].append(write)
            elif step.name in ("wait_flag", "pipe_barrier"):
                started[pipe], gate[pipe] = write, [write]
                if step.name == "wait_flag":
                    self._waits[step.event].append(write)
                    if pipe == Pipe.S:
                        issue = [write]
            else:
                started[pipe] = read
                running[pipe].append(write)
        for event, waits in self._waits.items():
            for wait, fired in zip(waits, self._sets[event], strict=False):
                self._before[wait - 1].append(fired)

    def _close(self) -> list[int]:
        """Fills `known` in an order that respects the edges; returns steps in circles."""
        after: list[list[int]] = [[] for _ in self._before]
        missing = [len(before) for before in self._before]
        for event, before in enumerate(self._before):
            for earlier in before:
                after[earlier].append(event)
        lonely = [wait for e, waits in self._waits.items() for wait in waits[len(self._sets[e]) :]]
        for wait in lonely:
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
        found = Verdict(stuck=self.stuck)
        for event in {*self._sets, *self._waits}:
            sets, waits = self._sets[event], self._waits[event]
            if len(sets) != len(waits):
                found.unmatched.append(event)
            for wait, again in zip(waits, sets[1:], strict=False):
                if not self.known[again] >> wait & 1:
                    found.reused.append(again // 2)
        kept = sum(1 << i for i in self._kept)
        for j in self._kept:
            for mask, reads in ((conflicts.after_write[j], False), (conflicts.after_read[j], True)):
                mask &= kept
                # The read events of a mask of steps are its bits spread out, the writes one above.
                for i in bits(mask):
                    earlier = 2 * i + (not reads)
                    if not self.known[2 * j + reads] >> earlier & 1:
                        found.unordered.append((i, j))
        return found


def bits(mask: int) -> list[int]:
    """Numbers of the bits that are set."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found
