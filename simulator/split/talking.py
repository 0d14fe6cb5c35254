"""Launches on a coupled machine whose blocks wait for each other by counters in global memory.

All blocks run at the same time, so there may be no more of them than the machine has cores: one
that is not resident would be waited for by those that keep the cores.
"""

from __future__ import annotations

from davinci.errors import DeviceFault
from davinci.machine import Machine
from davinci.simulator.checks.core_races import CoreRaces
from davinci.simulator.checks.counter_deadlock import counter_deadlock
from davinci.simulator.core.coupled import KIND, finding
from davinci.simulator.core.launch import FreeCores, JoinedKernels
from davinci.simulator.split.coroutines import Coroutine, take_turns
from davinci.simulator.split.counters import CounterLink, Counters
from davinci.simulator.split.cross_core import Seat
from davinci.simulator.timing.collect import Collector, Done
from davinci.simulator.timing.gm_model import rates_of
from davinci.simulator.timing.l2 import L2, Served, Touched
from davinci.simulator.timing.profile import LaunchProfile


class TalkingLaunch:
    """One launch.

    Attributes:
        counters: by which its blocks wait for each other.

    Args:
        machine: without cube and vector cores of their own.
        whole: of one kernel.
        kept: blocks whose rows are kept, the first ones.
        pool: the machine's cores.

    Raises:
        DeviceFault: it has more blocks than the machine has cores.
    """

    def __init__(self, machine: Machine, whole: JoinedKernels, kept: int, pool: FreeCores) -> None:
        launch = whole.kernels[0]
        if launch.blocks > machine.cores:
            raise DeviceFault(
                "blocks that wait for each other do not all run at the same time",
                where=f"kernel {launch.name}",
                found=f"{launch.blocks} blocks",
                expected=f"at most {machine.cores}, the cores of {machine.name}",
                hint="a block that waits keeps its core, and one without a core never comes",
            )
        self._launch, self._kept, self._pool = launch, kept, pool
        self._in_phases = whole.in_phases
        self._rates = rates_of(machine, launch.blocks)
        profile = LaunchProfile(
            launch.name,
            launch.blocks,
            launch.blocks,
            launch_cores=whole.launch_cores,
            continues=whole.continues,
        )
        self.counters = Counters()
        self._collector = Collector([profile], machine, [launch.locations])

    def run(self, checks: bool) -> None:
        """Runs all blocks.

        Args:
            checks: look for races between them.

        Raises:
            DeviceFault: a program did something illegal, or the blocks wait for each other.
        """
        launch, counters = self._launch, self.counters
        races = CoreRaces(launch.name, counters.memory) if checks else None
        links: list[CounterLink] = []
        programs: list[Coroutine] = []

        def start(block: int) -> None:
            seat = Seat(block, KIND, block, 0, block, block)

            def body(_: Coroutine) -> None:
                core = self._pool.take(KIND)
                core.begin(
                    launch.name,
                    block,
                    self._rates,
                    launch.locations,
                    block < self._kept,
                    counters=link,
                )
                if self._in_phases:
                    core.consume(finding(0))
                launch.programs[KIND](launch.arguments, block, launch.blocks, core)
                self._collector.add(Done.of(core), block, block, seat)
                if races is not None:
                    races.add(seat, core)
                self._pool.give(KIND, core)

            program = Coroutine(body)
            link = CounterLink(counters, seat, program.give_way)
            links.append(link)
            programs.append(program)

        for block in range(launch.blocks):
            start(block)

        def stuck() -> DeviceFault:
            waiting = [link for p, link in zip(programs, links, strict=True) if not p.done]
            return counter_deadlock(launch.name, waiting, counters)

        take_turns(programs, links, stuck)
        if races is not None:
            races.check_all()

    def settle(self, l2: L2) -> LaunchProfile:
        """The profile, when all blocks have run, with the L2 as it serves them."""
        return self.note(l2.launch(self.touched()))

    def touched(self) -> list[list[Touched]]:
        """Lines of global memory of all blocks."""
        return list(self._collector.rounds(self._launch.blocks).values())

    def note(self, served: Served) -> LaunchProfile:
        """The profile, with the launch served like that."""
        self._collector.sort()
        self._collector.note(served, self._launch.blocks)
        return self._collector.profiles[0]
