"""Gathers what the blocks of a launch did into its profile.

The time lines of the blocks are made while they run, as if all their bytes passed the memory. How
the L2 serves the launch is known when all have run; then they are made again: once for blocks that
issue the same, but all together where cores wait for flags of each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from davinci.isa.core import Pipe, Space
from davinci.machine import Machine
from davinci.simulator.core.core import Core
from davinci.simulator.core.forms import Form, Port
from davinci.simulator.core.half_range import Lost
from davinci.simulator.split.cross_core import Seat
from davinci.simulator.split.times import Replay, replay_together
from davinci.simulator.timing.gm_model import competing, rates_of
from davinci.simulator.timing.l2 import L2, Touched, Traffic, Transfer, lines_touched
from davinci.simulator.timing.profile import BlockProfile, LaunchProfile
from davinci.simulator.timing.timeline import Issued, Timeline

LogKey = tuple[float, ...]
"""Cores at work, and what was issued: a cost and the scalar operations before it."""


@dataclass(frozen=True)
class Done:
    """What a program did, wherever it ran.

    Attributes:
        cycles, timeline: as if the L2 held nothing.
        touched: lines of global memory.
        key: equal for programs that issue the same.
        counts: instructions by form.
        scalar_accesses: loads and stores of the scalar unit.
        lost: values that left the range of f16.
    """

    cycles: int
    timeline: Timeline
    touched: Touched
    key: LogKey
    counts: Mapping[Form, int]
    scalar_accesses: int
    lost: Lost

    @classmethod
    def of(cls, core: Core, line_bytes: int) -> Done:
        """Ends the program that `core` ran.

        Raises:
            DeviceFault: deadlock, or flags left set.
        """
        cycles, timeline = core.finish(), core.timeline
        lines = lines_touched(_transfers(timeline), line_bytes)
        key = (timeline.rates.cores, *[id(item.cost) << 16 | ops for _, ops, item in timeline.log])
        return cls(cycles, timeline, lines, key, core.counts, core.scalar_accesses, core.lost)


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
        self._logs: dict[LogKey, list[tuple[int, int, Issued]]] = {}

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
        rows = timeline.rows is not None
        self._runs.append(
            FinishedBlock(place, block, begin, done, done.cycles, timeline, profile, rows, seat)
        )
        if not rows:
            timeline.log = self._logs.setdefault(done.key, timeline.log)
        _count(self.profile, profile, done)

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
            block.cycles, block.unit_cycles = run.cycles, timeline.unit_cycles
            block.pipes = {name: timeline.busy[pipe] for name, pipe in self._pipes.items()}
            profile.per_block.append(block)
            for name, pipe in self._pipes.items():
                profile.pipes[name] += timeline.busy[pipe]
                profile.flag_cycles[name] += timeline.flag_cycles[pipe]
                profile.barrier_cycles[name] += timeline.barrier_cycles[pipe]
            for step in (timeline.rows or ()) if run.rows else ():
                number = step.item.location
                text = self._locations[number] if number < len(self._locations) else ""
                profile.rows.append(step.row(run.place, run.block, run.begin, text))

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
                timeline = Timeline(self._machine, run.rows, rates)
                cycles = timeline.replay(run.timeline.log)
                found = done[number, run.done.key] = (cycles, timeline)
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
                run.timeline = Timeline(self._machine, run.rows, rates)
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


def gm_ports(timeline: Timeline) -> Iterator[tuple[Issued, Port, bool, bool]]:
    """Accesses of a program's instructions to global memory: the instruction, the region, whether
    its bytes pass the memory, and whether they are written."""
    for _, _, item in timeline.log:
        if item.form is None or item.form.summary or not item.form.moves_gm:
            continue
        moves = bool(item.cost.gm_read or item.cost.gm_write)
        for ports, written in ((item.form.reads, False), (item.form.writes, True)):
            for port in ports:
                if port.space == Space.GM and not port.region.empty:
                    yield item, port, moves, written


def _transfers(timeline: Timeline) -> Iterator[Transfer]:
    """What a program's transfers touched in global memory."""
    for item, port, moves, written in gm_ports(timeline):
        if moves:
            yield port.region, item.words[port.word] + port.offset, written, item.direct


def _count(profile: LaunchProfile, block: BlockProfile, done: Done) -> None:
    copied = block.copied_bytes
    for form, count in done.counts.items():
        mnemonic = form.record.mnemonic
        profile.instructions[mnemonic] = profile.instructions.get(mnemonic, 0) + count
        profile.macs += count * form.macs
        profile.vector_repeats += count * form.repeats
        profile.gm_read_bytes += count * form.gm_read_bytes
        profile.gm_write_bytes += count * form.gm_write_bytes
        if form.copies:
            copied[form.copies] = copied.get(form.copies, 0) + count * form.copied_bytes
    profile.scalar_accesses += done.scalar_accesses
    profile.lost += done.lost
