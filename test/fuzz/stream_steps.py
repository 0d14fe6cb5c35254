"""Streams of instructions, decoded: what each one reads and writes, and which of them meet.

Made from the instruction records alone; it shares nothing with the simulator.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
import numpy.typing as npt

from davinci.isa.core import (
    BY_OPCODE,
    INSTRUCTIONS,
    OPCODE_MASK,
    Access,
    Instruction,
    Pipe,
    Records,
    Registers,
    Space,
)
from davinci.isa.counters import LINE_BYTES

Ints = npt.NDArray[np.int64]
Event = tuple[int, int, int]
FLAGS = ("set_flag", "wait_flag")
SYNC = (*FLAGS, "pipe_barrier")
SIGNAL, AWAIT = "ffts_cross_core_sync", "wait_flag_dev"
"""Set and wait of a flag between cores."""
SCALAR = "scalar_access"
POST, POLL, END_POLL = "post_counter", "poll_counters", "end_poll"
"""A counter is in its line, a load looks at counters, and the scalar unit has seen them."""


def opcode_of(row: Sequence[int]) -> int:
    """The opcode of an encoded instruction."""
    return row[0] & OPCODE_MASK


def matched(rows: Iterable[Sequence[int]]) -> list[tuple[int, int]]:
    """Each set_flag of a core's program with the wait_flag that it answers: their numbers."""
    sides: dict[int, dict[int, list[int]]] = {
        INSTRUCTIONS[name].opcode: defaultdict(list) for name in FLAGS
    }
    for i, row in enumerate(rows):
        if opcode_of(row) in sides:
            # The word holds both pipes and the event.
            sides[opcode_of(row)][row[1]].append(i)
    sets, waits = sides.values()
    return [pair for flag in sets for pair in zip(sets[flag], waits[flag], strict=True)]


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
        core: number of the program.
        event: of a flag: source pipe, destination pipe, id.
    """

    record: Instruction
    values: dict[str, int]
    pipe: Pipe
    registers: Registers
    accesses: tuple[Sequence[Access], Sequence[Access]]
    reads: tuple[Footprint, ...] = ()
    writes: tuple[Footprint, ...] = ()
    core: int = 0

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def event(self) -> Event:
        return self.values["src_pipe"], self.values["dst_pipe"], self.values["event"]

    @property
    def adds(self) -> bool:
        """Whether it adds to what is in global memory, which is the last that it reads."""
        reads, writes = self.accesses
        return bool(self.registers.atomic and writes and writes[0] in reads)


class Decoder:
    """Turns words into steps, in program order; keeps the registers that the scalar unit sets."""

    def __init__(self, core: int = 0) -> None:
        self._registers, self._core = Registers(), core

    def step(self, words: Sequence[int]) -> Step:
        registers = self._registers
        step = step_of(words, replace(registers, va=registers.va.copy()), self._core)
        if step.pipe == Pipe.S and not any(step.accesses):
            step.record.compute(step.values, registers, [])
        return step


def step_of(words: Sequence[int], registers: Registers, core: int = 0) -> Step:
    """The step that an encoded instruction is if it is issued with these registers."""
    record = BY_OPCODE[opcode_of(words)]
    values = record.decode(words[1:])
    reads, writes = accesses = record.accesses(values, registers)
    read, written = (
        tuple(f for f in map(footprint, part) if f is not None) for part in (reads, writes)
    )
    return Step(record, values, record.pipe_of(values), registers, accesses, read, written, core)


def decode(records: Records, core: int = 0) -> list[Step]:
    """The steps of a stream."""
    decoder = Decoder(core)
    return [decoder.step(words) for words in records.tolist()]


class Conflicts:
    """Which earlier steps touch the same bytes as a step, one of the two writing.

    Attributes:
        after_write: for each step the earlier ones that write what it reads or writes, a bit each.
        after_read: for each step the earlier ones that read what it writes.

    Args:
        counters: addresses of the lines of counters, in which cores need no order among each other.
        known: those of other steps, whose footprints are looked up instead of compared again.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        counters: Collection[int] = (),
        known: Conflicts | None = None,
    ) -> None:
        self._counters = frozenset(counters)
        self._numbers: dict[tuple[Any, ...], int] = {} if known is None else known._numbers
        self._prints: list[tuple[int, Footprint, int, int]] = [] if known is None else known._prints
        self._meeting: list[set[int]] = [] if known is None else known._meeting
        self._readers: dict[int, int] = defaultdict(int)
        self._writers: dict[int, int] = defaultdict(int)
        self.after_write: list[int] = []
        self.after_read: list[int] = []
        for step in steps:
            self._add(step)

    def _add(self, step: Step) -> None:
        reads = [self._number(f, step) for f in step.reads]
        writes = [self._number(f, step) for f in step.writes]
        near = {n for f in (*reads, *writes) for n in self._meeting[f]}
        written = {n for f in writes for n in self._meeting[f]}
        bit = 1 << len(self.after_write)
        self.after_write.append(reduce(or_, (self._writers[n] for n in near), 0))
        self.after_read.append(reduce(or_, (self._readers[n] for n in written), 0))
        for numbers, masks in ((reads, self._readers), (writes, self._writers)):
            for n in numbers:
                masks[n] |= bit

    def _counts(self, wanted: Footprint) -> bool:
        """Whether all its bytes are lines of counters."""
        return (
            wanted.space == Space.GM
            and bool(self._counters)
            and all(
                line in self._counters
                for start, end in zip(wanted.starts.tolist(), wanted.ends.tolist(), strict=True)
                for line in range(start - start % LINE_BYTES, end, LINE_BYTES)
            )
        )

    def _number(self, wanted: Footprint, step: Step) -> int:
        # Each core has memories of its own, and all have the same GM.
        owner = 0 if wanted.space == Space.GM else step.core
        # Additions to GM, which read it too, need no order among each other.
        stores = bool(step.writes) and step.writes[0].space == Space.GM
        adds = step.registers.atomic if stores and wanted.space == Space.GM else 0
        # Nor do cores in lines of counters.
        counts = 1 + step.core if self._counts(wanted) else 0
        key = (owner, wanted.space, wanted.starts.tobytes(), wanted.ends.tobytes(), adds, counts)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._prints)
            meeting = {
                n
                for n, (other_owner, other, other_adds, other_counts) in enumerate(self._prints)
                if other_owner == owner
                and not (adds and other_adds == adds)
                and not (counts and other_counts and counts != other_counts)
                and wanted.meets(other)
            }
            for n in meeting:
                self._meeting[n].add(found)
            self._prints.append((owner, wanted, adds, counts))
            self._meeting.append(meeting if adds else meeting | {found})
        return found
