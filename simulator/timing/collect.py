"""Gathers what the blocks of a launch did into the profiles of its kernels.

The time lines of the blocks are made while they run, as if all their bytes passed the memory. How
the L2 serves the launch is known when all have run; then they are made again: once for blocks that
issue the same, but all together where cores wait for flags of each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np

from davinci.isa.core import Pipe, Records
from davinci.machine import Machine
from davinci.native import Ints
from davinci.simulator.core.core import Core
from davinci.simulator.core.half_range import Lost
from davinci.simulator.split.counters import Talk
from davinci.simulator.split.cross_core import Seat
from davinci.simulator.timing.l2 import L2, UNCACHED, Served, Touched
from davinci.simulator.timing.layout import Word
from davinci.simulator.timing.profile import BlockProfile, LaunchProfile
from davinci.simulator.timing.retime import IssuedStream, LogKey, Recording
from davinci.simulator.timing.timeline import Timeline

UNITS = (Pipe.M, Pipe.V)


@dataclass(frozen=True)
class Done:
    """Instructions and times of a program, whichever core it ran on.

    Attributes:
        cycles, timeline: as if the L2 held nothing.
        touched: lines of global memory.
        key: equal for programs that issue the same.
        lost: values that left the range of f16.
        talk: what it did with counters of other blocks.
    """

    cycles: int
    timeline: Timeline
    touched: Touched
    key: LogKey
    lost: Lost
    talk: Talk

    @classmethod
    def of(cls, core: Core) -> Done:
        """Ends the program that `core` ran.

        Raises:
            DeviceFault: deadlock, or flags left set.
        """
        cycles, timeline = core.finish(), core.timeline
        digest = blake2b(timeline.log.data, digest_size=16).digest()
        key = timeline.rates.cores, digest
        talk = {} if core.counters is None else core.counters.talk
        return cls(cycles, timeline, timeline.touched(), key, core.lost, talk)


@dataclass
class Counted:
    """What was counted of programs that issue the same; see `LaunchProfile` and `BlockProfile`."""

    instructions: dict[str, int] = field(default_factory=dict)
    macs: int = 0
    vector_repeats: int = 0
    gm_read_bytes: int = 0
    gm_write_bytes: int = 0
    scalar_accesses: int = 0
    copied: dict[str, int] = field(default_factory=dict)
    unit_cycles: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, timeline: Timeline) -> Counted:
        """Counts what a time line was given."""
        found, tables = cls(), timeline.tables
        counts = np.bincount(timeline.steps(), minlength=1)
        for step in np.flatnonzero(counts).tolist():
            count, form = int(counts[step]), tables.forms_of_steps[step]
            mnemonic = form.record.mnemonic
            add_to(found.instructions, mnemonic, count)
            found.macs += count * form.macs
            found.vector_repeats += count * form.repeats
            found.gm_read_bytes += count * form.gm_read_bytes
            found.gm_write_bytes += count * form.gm_write_bytes
            found.scalar_accesses += count * tables.scalar_accesses[step]
            if form.copies:
                add_to(found.copied, form.copies, count * form.copied_bytes)
            if form.pipe in UNITS and not form.sync:
                add_to(found.unit_cycles, mnemonic, count * tables.costs[step].occupancy)
        return found


def add_to(counts: dict[str, int], name: str, count: int) -> None:
    """Adds to a count by name."""
    counts[name] = counts.get(name, 0) + count


@dataclass(frozen=True)
class FinishedBlock:
    """A program that has run: on which core of the machine, what it issued and touched, its
    profile, and its records if rows are wanted."""

    place: int
    stream: IssuedStream
    touched: Touched
    profile: BlockProfile
    records: Sequence[Records] | None


class Collector:
    """Fills profiles, program by program.

    Args:
        profiles: of the kernels of the launch.
        machine: says which pipes there are.
        locations: source locations by id, of each kernel.
    """

    def __init__(
        self,
        profiles: list[LaunchProfile],
        machine: Machine,
        locations: Sequence[Sequence[str]],
    ) -> None:
        self.profiles, self._locations, self._machine = profiles, locations, machine
        names = [pipe for core in machine.core_types.values() for pipe in core.pipes]
        self._pipes = {f"PIPE_{name}": int(Pipe[name]) for name in names}
        for profile in profiles:
            for counts in (profile.pipes, profile.flag_cycles, profile.barrier_cycles):
                counts.update(dict.fromkeys(self._pipes, 0))
        self._runs: list[FinishedBlock] = []
        self._known: dict[LogKey, tuple[Ints, Counted]] = {}

    def add(
        self,
        done: Done,
        place: int,
        block: int,
        seat: Seat | None = None,
        *,
        kernel: int = 0,
        own: int | None = None,
    ) -> None:
        """Takes over what a program did.

        Args:
            done: by the program.
            place: number of the core on the machine.
            block: that it ran.
            seat: of the program on a split machine.
            kernel: number of the kernel in the launch.
            own: number of the block in its kernel, if that is another one.
        """
        number = block if own is None else own
        timeline, profile = done.timeline, BlockProfile(place, number, done.cycles, {})
        if done.key not in self._known:
            self._known[done.key] = timeline.log.copy(), Counted.of(timeline)
        log, counted = self._known[done.key]
        size, crossed = done.touched.total_bytes, timeline.crossed
        stream = IssuedStream(
            kernel, block, seat, timeline.tables, log, done.key, size, crossed, done.talk
        )
        records = timeline.records if timeline.keep_rows else None
        self._runs.append(FinishedBlock(place, stream, done.touched, profile, records))
        self._count(self.profiles[kernel], profile, counted)
        self.profiles[kernel].lost += done.lost

    def _count(self, profile: LaunchProfile, block: BlockProfile, counted: Counted) -> None:
        for mnemonic, count in counted.instructions.items():
            add_to(profile.instructions, mnemonic, count)
        profile.macs += counted.macs
        profile.vector_repeats += counted.vector_repeats
        profile.gm_read_bytes += counted.gm_read_bytes
        profile.gm_write_bytes += counted.gm_write_bytes
        profile.scalar_accesses += counted.scalar_accesses
        block.copied_bytes.update(counted.copied)
        block.unit_cycles.update(counted.unit_cycles)

    def sort(self) -> None:
        """Puts programs that were taken over in another order into that of their blocks."""
        self._runs.sort(key=lambda run: run.stream.block)

    def settle(self, l2: L2, at_once: int) -> None:
        """Notes the times, with the L2 as it serves the launch.

        Args:
            l2: of the device.
            at_once: blocks that run at the same time.
        """
        touched, cuts = list(self.rounds(at_once).values()), []
        streams = [run.stream for run in self._runs]
        if self._machine.cross_core is not None and any(stream.crossed for stream in streams):
            # Who reads what others write depends on times, and these on what the L2 has of it.
            first = Recording(streams, UNCACHED, dict.fromkeys(self.rounds(at_once), ()), at_once)
            served = l2.foretell(touched, [pace.cut for pace in first.paces(self._machine)])
            second = self._recording(served, at_once)
            cuts = [pace.cut for pace in second.paces(self._machine)]
        self.note(l2.launch(touched, cuts), at_once)

    def rounds(self, at_once: int) -> dict[int, list[Touched]]:
        """Lines of global memory that blocks touch, those that run together by their round."""
        rounds: dict[int, list[Touched]] = {}
        for run in self._runs:
            rounds.setdefault(run.stream.block // at_once, []).append(run.touched)
        return rounds

    def note(self, served: Served, at_once: int) -> None:
        """Notes the times, with the launch served like that."""
        recording = self._recording(served, at_once)
        for profile in self.profiles:
            profile.traffic, profile.recording = served.traffic, recording
        drawn = {i for i, run in enumerate(self._runs) if run.records is not None}
        machine = self._machine
        times = recording.times(lambda stream: (machine, stream.tables), drawn)
        alike: dict[tuple[int, int], tuple[Timeline, list[int]]] = {}
        for run, timed in zip(self._runs, times, strict=True):
            timeline, block, kernel = timed.timeline, run.profile, run.stream.kernel
            profile = self.profiles[kernel]
            profile.cycles = max(profile.cycles, timed.begin + timed.cycles)
            block.cycles = timed.cycles
            profile.per_block.append(block)
            _, count = alike.setdefault((kernel, id(timeline)), (timeline, []))
            count.append(len(profile.per_block) - 1)
            if run.records is not None:
                timeline.records.extend(run.records)
                locations = self._locations[kernel]
                rows = timeline.rows(run.place, block.block, timed.begin, locations)
                profile.rows.extend(rows)
        for (kernel, _), (timeline, blocks) in alike.items():
            self._count_pipes(self.profiles[kernel], timeline, blocks)

    def _recording(self, served: Served, at_once: int) -> Recording:
        """What was issued, with the launch served like that."""
        numbers = list(self.rounds(at_once))
        requests = dict(zip(numbers, map(iter, served.readers), strict=False))
        ends = {
            number: iter(map(tuple, each[1:].T.tolist()))
            for number, each in zip(numbers, served.ends, strict=False)
        }
        streams = [run.stream for run in self._runs]
        for stream in streams:
            number = stream.block // at_once
            if requests:
                stream.requests = next(requests[number])
            if ends:
                stream.ends = next(ends[number])
        parts = dict(zip(numbers, served.rounds, strict=True))
        return Recording(streams, served.traffic, parts, at_once)

    def _count_pipes(
        self, profile: LaunchProfile, timeline: Timeline, blocks: Sequence[int]
    ) -> None:
        """Notes how long pipes were busy, or held, in blocks with the same time line."""
        busy, flags, barriers = [
            {name: cycles[pipe] for name, pipe in self._pipes.items()}
            for cycles in map(timeline.each_pipe, (Word.BUSY, Word.FLAG_HELD, Word.BARRIER_HELD))
        ]
        for block in blocks:
            profile.per_block[block].pipes = busy.copy()
        for counts, each in (
            (profile.pipes, busy),
            (profile.flag_cycles, flags),
            (profile.barrier_cycles, barriers),
        ):
            for name, cycles in each.items():
                counts[name] += cycles * len(blocks)
