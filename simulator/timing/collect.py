"""Gathers what the blocks of a launch did into its profile.

The time lines of the blocks are made while they run, as if all their bytes passed the memory. How
the L2 serves the launch is known when all have run; then they are made again: once for blocks that
issue the same, but all together where cores wait for flags of each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np

from davinci.isa.core import Pipe
from davinci.machine import Machine
from davinci.native import Ints
from davinci.simulator.core.core import Core
from davinci.simulator.core.half_range import Lost
from davinci.simulator.split.cross_core import Seat
from davinci.simulator.split.times import Replay, replay_together
from davinci.simulator.timing.gm_model import competing, rates_of
from davinci.simulator.timing.l2 import L2, Touched, Traffic
from davinci.simulator.timing.layout import Stop, Word
from davinci.simulator.timing.profile import BlockProfile, LaunchProfile
from davinci.simulator.timing.timeline import Timeline

UNITS = (Pipe.M, Pipe.V)

LogKey = tuple[float, bytes]
"""Cores at work, and a digest of what was issued."""


@dataclass(frozen=True)
class Done:
    """What a program did, wherever it ran.

    Attributes:
        cycles, timeline: as if the L2 held nothing.
        touched: lines of global memory.
        key: equal for programs that issue the same.
        lost: values that left the range of f16.
    """

    cycles: int
    timeline: Timeline
    touched: Touched
    key: LogKey
    lost: Lost

    @classmethod
    def of(cls, core: Core) -> Done:
        """Ends the program that `core` ran.

        Raises:
            DeviceFault: deadlock, or flags left set.
        """
        cycles, timeline = core.finish(), core.timeline
        digest = blake2b(timeline.log.tobytes(), digest_size=16).digest()
        return cls(cycles, timeline, timeline.touched(), (timeline.rates.cores, digest), core.lost)


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


@dataclass
class FinishedBlock:
    """A program that has run: where, what it did, and its time line with the L2.

    `rows` says whether those of its time line are wanted: it may be the one of an equal program.
    """

    place: int
    block: int
    begin: int
    done: Done
    cycles: int
    timeline: Timeline
    profile: BlockProfile
    rows: bool
    seat: Seat | None


class Collector:
    """Fills a profile, program by program.

    Args:
        profile: of the launch.
        machine: says which pipes there are.
        locations: source locations by id.
    """

    def __init__(self, profile: LaunchProfile, machine: Machine, locations: Sequence[str]) -> None:
        self.profile, self._locations, self._machine = profile, locations, machine
        names = [pipe for core in machine.core_types.values() for pipe in core.pipes]
        self._pipes = {f"PIPE_{name}": int(Pipe[name]) for name in names}
        for counts in (profile.pipes, profile.flag_cycles, profile.barrier_cycles):
            counts.update(dict.fromkeys(self._pipes, 0))
        self._runs: list[FinishedBlock] = []
        self._known: dict[LogKey, tuple[Ints, Counted]] = {}

    def add(
        self, done: Done, place: int, block: int, begin: int = 0, seat: Seat | None = None
    ) -> None:
        """Takes over what a program did.

        Args:
            done: by the program.
            place: number of the core on the machine.
            block: that it ran.
            begin: cycle of the launch at which it began.
            seat: of the program on a split machine.
        """
        timeline, profile = done.timeline, BlockProfile(place, block, done.cycles, {})
        rows = timeline.keep_rows
        self._runs.append(
            FinishedBlock(place, block, begin, done, done.cycles, timeline, profile, rows, seat)
        )
        if done.key not in self._known:
            self._known[done.key] = timeline.log.copy(), Counted.of(timeline)
        log, counted = self._known[done.key]
        timeline.share_log(log)
        self._count(profile, counted)
        self.profile.lost += done.lost

    def _count(self, block: BlockProfile, counted: Counted) -> None:
        profile = self.profile
        for mnemonic, count in counted.instructions.items():
            add_to(profile.instructions, mnemonic, count)
        profile.macs += counted.macs
        profile.vector_repeats += counted.vector_repeats
        profile.gm_read_bytes += counted.gm_read_bytes
        profile.gm_write_bytes += counted.gm_write_bytes
        profile.scalar_accesses += counted.scalar_accesses
        block.copied_bytes.update(counted.copied)
        block.unit_cycles.update(counted.unit_cycles)

    def settle(self, l2: L2, at_once: int) -> None:
        """Notes the times, with the L2 as it serves the launch.

        Args:
            l2: of the device.
            at_once: blocks that run at the same time.
        """
        rounds: dict[int, list[Touched]] = {}
        for run in self._runs:
            rounds.setdefault(run.block // at_once, []).append(run.done.touched)
        served = l2.launch(list(rounds.values()))
        self.profile.traffic = served.traffic
        parts = dict(zip(rounds, served.rounds, strict=True))
        if any(run.timeline.crossed for run in self._runs):
            self._retime_together(parts, served.traffic, at_once)
        else:
            self._retime(parts, served.traffic, at_once)
            self._begin_blocks(at_once)
        profile = self.profile
        profile.cycles = max(run.begin + run.cycles for run in self._runs)
        for run in self._runs:
            timeline, block = run.timeline, run.profile
            block.cycles = run.cycles
            busy, flags, barriers = map(
                timeline.each_pipe, (Word.BUSY, Word.FLAG_HELD, Word.BARRIER_HELD)
            )
            block.pipes = {name: busy[pipe] for name, pipe in self._pipes.items()}
            profile.per_block.append(block)
            for name, pipe in self._pipes.items():
                profile.pipes[name] += busy[pipe]
                profile.flag_cycles[name] += flags[pipe]
                profile.barrier_cycles[name] += barriers[pipe]
            if run.rows:
                rows = timeline.rows(run.place, run.block, run.begin, self._locations)
                profile.rows.extend(rows)

    def _retime(
        self, rounds: Mapping[int, Sequence[Traffic]], traffic: Traffic, at_once: int
    ) -> None:
        """Makes the time lines again; blocks of a round that issue the same have the same one."""
        sizes: dict[int, list[int]] = {number: [] for number in rounds}
        for run in self._runs:
            sizes[run.block // at_once].append(run.done.touched.total_bytes)
        done: dict[tuple[int, LogKey], tuple[int, Timeline]] = {}
        for run in self._runs:
            size, number = run.done.touched.total_bytes, run.block // at_once
            if not size:
                continue
            found = done.get((number, run.done.key))
            if found is None or run.rows:
                cores = competing(size, sizes[number])
                rates = rates_of(self._machine, cores, traffic, rounds[number], size)
                timeline = run.timeline.again(run.rows, rates)
                stop = timeline.replay(run.timeline.log)
                assert stop == Stop.END, "cores that know nothing of others"
                found = done[number, run.done.key] = (timeline.finish(), timeline)
            run.cycles, run.timeline = found

    def _retime_together(
        self, rounds: Mapping[int, Sequence[Traffic]], traffic: Traffic, at_once: int
    ) -> None:
        """Makes the time lines of each round again, with the flags between its cores."""
        limits = self._machine.cross_core
        assert limits is not None, "split machines have flags between cores"
        clocks = [0] * at_once
        for number in sorted(rounds):
            runs = [run for run in self._runs if run.block // at_once == number]
            sizes = [run.done.touched.total_bytes for run in runs]
            replays = []
            for run, size in zip(runs, sizes, strict=True):
                assert run.seat is not None, "on a split machine"
                rates = run.timeline.rates
                if size:
                    cores = competing(size, sizes)
                    rates = rates_of(self._machine, cores, traffic, rounds[number], size)
                log, run.begin = run.timeline.log, clocks[run.block % at_once]
                run.timeline = run.timeline.again(run.rows, rates)
                replays.append(Replay(run.seat, run.begin, log, run.timeline))
            for run, cycles in zip(runs, replay_together(replays, limits), strict=True):
                run.cycles, slot = cycles, run.block % at_once
                clocks[slot] = max(clocks[slot], run.begin + cycles)

    def _begin_blocks(self, at_once: int) -> None:
        """A block begins when the one before it on its core has ended."""
        by_block: dict[int, list[FinishedBlock]] = {}
        for run in self._runs:
            by_block.setdefault(run.block, []).append(run)
        clocks = [0] * at_once
        for block in sorted(by_block):
            slot = block % at_once
            for run in by_block[block]:
                run.begin = clocks[slot]
            clocks[slot] += max(run.cycles for run in by_block[block])
