"""What a launch issued, and its time lines made again: with the L2 as it serves the launch, or on a
machine that is otherwise.

What programs issue does not depend on times, nor does what the L2 holds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from davinci.machine import Machine
from davinci.native import Floats, Ints
from davinci.simulator.core.tables import Tables
from davinci.simulator.split.counters import Talk
from davinci.simulator.split.cross_core import Seat, Turns
from davinci.simulator.split.times import Replay, replay_together
from davinci.simulator.timing.gm_model import Rates, competing, in_common, rates_of
from davinci.simulator.timing.l2 import LaunchTraffic
from davinci.simulator.timing.layout import Stop
from davinci.simulator.timing.pace import Pace, Paces
from davinci.simulator.timing.timeline import Timeline

LogKey = tuple[float, bytes]
"""Cores at work, and a digest of what was issued."""


@dataclass
class IssuedStream:
    """What a program issued.

    Attributes:
        kernel: its number in the launch.
        block: that it ran, numbered in the launch.
        seat: on a split machine.
        tables: to which the steps of `log` belong.
        log: see `Timeline.log`.
        key: equal for programs that issue the same; with the cores at work.
        moved_bytes: in global memory.
        crossed: it waited for other cores, or they for it.
        talk: what it did with counters of other blocks.
        requests: lines of each read of MTE2, and how often all cores read them, see `l2.Served`;
            filled in when the launch is served.
        ends: bytes that it has moved at the ends of the parts of its round; filled in likewise,
            where cube and vector cores wait for each other.
    """

    kernel: int
    block: int
    seat: Seat | None
    tables: Tables
    log: Ints
    key: LogKey
    moved_bytes: int
    crossed: bool
    talk: Talk = field(default_factory=dict)
    requests: Floats | None = None
    ends: tuple[float, ...] = ()


@dataclass
class TimedProgram:
    """The time line of a program; cycle of the launch at which it begins, and cycles it takes."""

    timeline: Timeline
    cycles: int
    begin: int = 0


Setting = Callable[[IssuedStream], tuple[Machine, Tables]]
"""The machine whose bandwidths, flags and queues count for a stream, and tables of its steps with
the costs that count."""


@dataclass(frozen=True)
class Recording:
    """What a launch issued.

    Attributes:
        streams: of its programs.
        traffic: how the L2 served it.
        rounds: the same of the parts of each round of blocks, by its number.
        at_once: blocks that run at the same time.
    """

    streams: Sequence[IssuedStream]
    traffic: LaunchTraffic
    rounds: Mapping[int, Sequence[LaunchTraffic]]
    at_once: int

    def cycles(self, setting: Setting) -> int:
        """That the launch takes, see `times`."""
        return max(timed.begin + timed.cycles for timed in self.times(setting))

    def times(self, setting: Setting, drawn: Collection[int] = ()) -> list[TimedProgram]:
        """The time line of each stream.

        Args:
            setting: what counts for streams; the same for those of one kernel.
            drawn: numbers of the streams that keep rows.
        """
        sizes: dict[int, list[int]] = {number: [] for number in self.rounds}
        for stream in self.streams:
            sizes[stream.block // self.at_once].append(stream.moved_bytes)

        served: dict[Hashable, Rates] = {}
        alike: dict[Rates, Rates] = {}

        def rates(stream: IssuedStream) -> Rates:
            """The rates of a stream, one object for all streams that have equal ones."""
            size, number = stream.moved_bytes, stream.block // self.at_once
            key = stream.kernel, number, size, stream.key[0], stream.ends
            if key not in served:
                machine, _ = setting(stream)
                parts = self.rounds[number]
                if size and parts:
                    cores = competing(size, sizes[number])
                    ends = stream.ends or [size * (i + 1) / len(parts) for i in range(len(parts))]
                    found = rates_of(machine, cores, self.traffic, parts, ends)
                else:
                    found = rates_of(machine, stream.key[0])
                served[key] = alike.setdefault(found, found)
            return served[key]

        if any(stream.crossed for stream in self.streams):
            return self._together(setting, drawn, rates)
        done: dict[tuple[int, int, LogKey, bytes], TimedProgram] = {}
        found = []
        for i, stream in enumerate(self.streams):
            # Blocks of a kernel that issue the same at the same rates have the same time line.
            reads = b"" if stream.requests is None else stream.requests.tobytes()
            rate = rates(stream)
            key = stream.kernel, id(rate), stream.key, reads
            known = done.get(key)
            if known is None or i in drawn:
                machine, tables = setting(stream)
                common = in_common(machine, stream.requests)
                timeline = Timeline(tables, i in drawn, rate, 0, common)
                stop = timeline.replay(stream.log)
                assert stop == Stop.END, "cores that know nothing of others"
                known = done[key] = TimedProgram(timeline, timeline.finish())
            found.append(TimedProgram(known.timeline, known.cycles))
        self._begin(found)
        return found

    def paces(self, machine: Machine) -> list[Paces]:
        """How far the blocks of each round have come with their bytes, by cycle."""
        times = self.times(lambda stream: (machine, stream.tables), range(len(self.streams)))
        found: dict[int, list[Pace]] = {number: [] for number in self.rounds}
        for stream, timed in zip(self.streams, times, strict=True):
            found[stream.block // self.at_once].append(Pace.of(timed.timeline, timed.begin))
        return [Paces(blocks) for blocks in found.values()]

    def _together(
        self,
        setting: Setting,
        drawn: Collection[int],
        rates: Callable[[IssuedStream], Rates],
    ) -> list[TimedProgram]:
        """As `times`, with the flags or counters between the cores of each round."""
        limits = setting(self.streams[0])[0].cross_core
        clocks = [0] * self.at_once
        turns: Turns = {}
        found: dict[int, TimedProgram] = {}
        for number in sorted(self.rounds):
            replays = {}
            for i, stream in enumerate(self.streams):
                if stream.block // self.at_once == number:
                    assert stream.seat is not None, "a program of several that run together"
                    common = in_common(setting(stream)[0], stream.requests)
                    timeline = Timeline(setting(stream)[1], i in drawn, rates(stream), 0, common)
                    begin = clocks[stream.block % self.at_once]
                    replays[i] = Replay(stream.seat, begin, stream.log, timeline, stream.talk)
            cycles = replay_together(list(replays.values()), limits, turns)
            for (i, replay), taken in zip(replays.items(), cycles, strict=True):
                found[i] = TimedProgram(replay.timeline, taken, replay.begin)
                slot = self.streams[i].block % self.at_once
                clocks[slot] = max(clocks[slot], replay.begin + taken)
        return [found[i] for i in range(len(self.streams))]

    def _begin(self, found: Sequence[TimedProgram]) -> None:
        """A block begins when the one before it on its core has ended."""
        by_block: dict[int, list[TimedProgram]] = {}
        for stream, timed in zip(self.streams, found, strict=True):
            by_block.setdefault(stream.block, []).append(timed)
        clocks = [0] * self.at_once
        for block in sorted(by_block):
            slot = block % self.at_once
            for timed in by_block[block]:
                timed.begin = clocks[slot]
            clocks[slot] += max(timed.cycles for timed in by_block[block])
