"""Launches on a split machine: cube and vector cores run programs of their own at the same time.

A block of a launch with a program for the cube cores takes a cube core, and its vector cores if
there is a program for them too; a block of a launch of vector cores alone takes one of those. The
blocks that the machine has room for run at the same time, the next ones after them.

A phase of a launch has the cores of the launch, of which some may have no block: their flags are
not set, so a phase that waits for all cores of a kind has blocks for all of them.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from davinci.errors import DeviceFault
from davinci.machine import Machine
from davinci.simulator.checks.block_races import BlockRaces
from davinci.simulator.checks.core_deadlock import MOST_NAMED, deadlock
from davinci.simulator.checks.core_races import CoreRaces
from davinci.simulator.core.core import Core
from davinci.simulator.core.coupled import finding
from davinci.simulator.core.launch import FreeCores, JoinedKernels
from davinci.simulator.core.twins import Twins
from davinci.simulator.split.coroutines import Coroutine, take_turns
from davinci.simulator.split.cross_core import CrossCoreFlags, Link, Seat, Turns
from davinci.simulator.timing.collect import Collector, Done
from davinci.simulator.timing.gm_model import Rates, rates_of
from davinci.simulator.timing.l2 import L2
from davinci.simulator.timing.profile import LaunchProfile


class SplitLaunch:
    """One launch.

    Args:
        machine: with cube and vector cores.
        whole: of one kernel, with programs for "AIC", "AIV" or both.
        kept: blocks whose rows are kept, the first ones.
        pool: the machine's cores.
    """

    def __init__(self, machine: Machine, whole: JoinedKernels, kept: int, pool: FreeCores) -> None:
        (launch,) = whole.kernels
        self._machine, self._whole, self._launch = machine, whole, launch
        self._kept, self._pool = kept, pool
        self._name, self._blocks, self._programs = launch.name, launch.blocks, launch.programs
        self._vectors = machine.core_types["AIV"].count
        both = len(self._programs) > 1
        self._at_once = machine.cores * (1 if "AIC" in self._programs else self._vectors)
        self._crossed = False
        self._clocks = [0] * min(self._blocks, self._at_once)
        """When each core, or each cube core with its vector cores, is free for its next block."""
        self._races: CoreRaces | None = None
        self._block_races: BlockRaces | None = None
        self._turns: Turns = {}
        self._seats = 0
        cores = min(self._blocks, self._at_once) * (1 + self._vectors if both else 1)
        of_launch = sum(machine.core_types[kind].count for kind in whole.launch_kinds)
        profile = LaunchProfile(
            self._name,
            self._blocks,
            cores,
            launch_cores=whole.launch_cores * (of_launch if len(whole.launch_kinds) > 1 else 1),
            launch_kinds=whole.launch_kinds,
            continues=whole.continues,
        )
        self._collector = Collector([profile], machine, [launch.locations])

    def run(self, checks: bool) -> None:
        """Runs all blocks.

        Args:
            checks: look for races between cores.

        Raises:
            DeviceFault: a program did something illegal, or the cores wait for each other.
        """
        # A program that crosses with no other one has nothing to be compared with inside its block.
        meet = self._launch.crosses or len(self._programs) > 1
        if checks and meet:
            self._races = CoreRaces(self._name, vain=self._launch.foreign)
        # What a program leaves is known at its end where no other one runs before that.
        alike = self._launch.foreign and len(self._programs) == 1
        if checks and self._blocks > 1:
            self._block_races = BlockRaces(self._name, alike=alike)
        twins = self._looked_for(checks)
        for first in range(0, self._blocks, self._at_once):
            group = range(first, min(first + self._at_once, self._blocks))
            if twins is None or twins.over or group.start < self._kept:
                self._round(group, len(group))
            else:
                self._round_of_twins(group, twins)
        if self._races is not None:
            self._races.check_blocks()
        if self._block_races is not None:
            if not self._crossed:
                self._block_races.check()
            elif self._races is not None:
                self._races.check_all()

    def _looked_for(self, checks: bool) -> Twins | None:
        """What finds twins among the programs, if these neither meet nor depend on data."""
        launch = self._launch
        if len(self._programs) > 1 or launch.crosses or launch.alone or self._whole.in_phases:
            return None
        (kind,) = self._programs
        core = self._pool.take(kind)
        self._pool.give(kind, core)
        return Twins(launch, core, checks)

    def _round_of_twins(self, group: range, twins: Twins) -> None:
        """Runs a round of programs that do not meet, those that are no twins one by one."""
        for block, run in twins.run(group):
            if run is None:
                self._round(range(block, block + 1), len(group), twins)
                continue
            (seat,) = self.seats(block)
            self._collector.add(run.done, seat.place, block, seat)
            self._clocks[block % self._at_once] += run.done.cycles
            if self._block_races is not None:
                self._block_races.add(block, run)

    def settle(self, l2: L2) -> LaunchProfile:
        """The profile, when all blocks have run, with the L2 as it serves them."""
        self._collector.settle(l2, self._at_once)
        return self._collector.profiles[0]

    def seats(self, block: int) -> list[Seat]:
        """Where the programs of a block run."""
        return self._seats_of(block, self._programs)

    def _idle(self, at_work: Sequence[Seat]) -> list[Seat]:
        """Cores of the launch that have no block in this phase."""
        places = {seat.place for seat in at_work}
        blocks = range(self._whole.launch_cores)
        there = [seat for b in blocks for seat in self._seats_of(b, self._whole.launch_kinds)]
        return [seat for seat in there if seat.place not in places]

    def _seats_of(self, block: int, kinds: Container[str]) -> list[Seat]:
        """Where the programs of a block for these kinds of cores run."""
        slot = block % self._at_once
        width = 1 + self._vectors
        if "AIC" not in kinds:
            group, which = divmod(slot, self._vectors)
            return [self._seat("AIV", block, 0, group, group * width + 1 + which)]
        seats = [self._seat("AIC", block, 0, slot, slot * width)]
        if "AIV" in kinds:
            for i in range(self._vectors):
                seats.append(self._seat("AIV", block, i, slot, slot * width + 1 + i))
        return seats

    def _seat(self, core: str, block: int, sub_block: int, group: int, place: int) -> Seat:
        self._seats += 1
        return Seat(self._seats - 1, core, block, sub_block, group, place)

    def _round(self, group: range, count: int, twins: Twins | None = None) -> None:
        """Runs the blocks of `group` at the same time; moves their cores' clocks on.

        Args:
            count: of the blocks that run at the same time, with those that run elsewhere.
            twins: what learns of them, and has issued their streams.
        """
        seats = [seat for block in group for seat in self.seats(block)]
        limits = self._machine.cross_core
        assert limits is not None, "split machines have flags between cores"
        flags = CrossCoreFlags([*seats, *self._idle(seats)], limits, self._turns)
        at_work = {kind: sum(seat.core == kind for seat in seats) for kind in self._programs}
        rates = {
            kind: rates_of(self._machine, cores * count // len(group))
            for kind, cores in at_work.items()
        }
        ends = dict.fromkeys(group, 0)
        together = self._machine.direct_paths and len(self._programs) > 1
        groups = {block: self._pool.take_group() for block in group if together}
        links: list[Link] = []
        programs: list[Coroutine] = []

        def start(seat: Seat) -> None:
            begin = self._clocks[seat.block % self._at_once]

            def body(_: Coroutine) -> None:
                near = groups.get(seat.block)
                if near is None:
                    core = self._pool.take(seat.core)
                else:
                    core = near.cores[1 + seat.sub_block if seat.core == "AIV" else 0]
                done = self._execute(seat, core, rates[seat.core], link, twins)
                ends[seat.block] = max(ends[seat.block], begin + done.cycles)
                if near is None:
                    self._pool.give(seat.core, core)

            program = Coroutine(body, self._launch.crosses)
            link = Link(flags, seat, begin, program.give_way)
            links.append(link)
            programs.append(program)

        for seat in seats:
            start(seat)

        def stuck() -> DeviceFault:
            waiting = [link for p, link in zip(programs, links, strict=True) if not p.done]
            return deadlock(self._name, waiting, flags)

        take_turns(programs, links, stuck)
        self._require_clear(flags)
        for used in groups.values():
            self._pool.give_group(used)
        self._crossed |= flags.crossed
        for block, end in ends.items():
            self._clocks[block % self._at_once] = end

    def _execute(
        self, seat: Seat, core: Core, rates: Rates, link: Link, twins: Twins | None
    ) -> Done:
        """Runs a program on a core, and notes what it did for the profile and the checks.

        Args:
            rates: of the core's share of global memory.
            link: to the flags of the other cores.
            twins: as of `_round`.
        """
        launch = self._launch
        core.begin(
            self._name,
            seat.block,
            rates,
            launch.locations,
            seat.block < self._kept,
            link,
            foreign=launch.foreign,
            alone=not launch.crosses,
        )
        if self._whole.in_phases:
            core.consume(finding(0))
        program = self._programs[seat.core] if twins is None else twins.program(seat.block)
        program(launch.arguments, seat.block, self._blocks, core)
        done = Done.of(core)
        self._collector.add(done, seat.place, seat.block, seat)
        if self._races is not None:
            self._races.add(seat, core)
        if self._block_races is not None:
            self._block_races.add(seat.block, core)
        if twins is not None:
            twins.learn(seat.block, core, done)
        return done

    def _require_clear(self, flags: CrossCoreFlags) -> None:
        """Fails if a flag between cores is set at the end of a round.

        Raises:
            DeviceFault: there is one.
        """
        if left := flags.left():
            raise DeviceFault(
                "flags between cores left set at the end of the launch",
                where=f"kernel {self._name}",
                found=", ".join(left[:MOST_NAMED]),
                hint="every count needs a wait_flag_dev: the next kernel would find the flag set",
            )
