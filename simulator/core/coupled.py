"""Launches on a coupled machine, whose cores do not meet: each block runs to its end, in any order.

What a block writes does not depend on other blocks, and how long it takes does not depend on data:
a block may be run for its data only, or for its time only.
"""

from __future__ import annotations

from davinci.machine import Machine
from davinci.simulator.core.core import Core
from davinci.simulator.core.launch import Launch, Pool
from davinci.simulator.timing.collect import Collector, Done
from davinci.simulator.timing.gm_model import rates_of
from davinci.simulator.timing.l2 import L2
from davinci.simulator.timing.profile import LaunchProfile

KIND = "AICORE"
"""Of the cores."""


class CoupledLaunch:
    """One launch.

    Args:
        machine: without cube and vector cores of their own.
        launch: what to run.
        kept: blocks whose rows are kept, the first ones.
    """

    def __init__(self, machine: Machine, launch: Launch, kept: int) -> None:
        self.launch, self._kept = launch, kept
        self._at_once = min(launch.blocks, machine.cores)
        self._rates = rates_of(machine, self._at_once)
        profile = LaunchProfile(launch.name, launch.blocks, self._at_once)
        self._collector = Collector(profile, machine, launch.locations)

    def run(self, block: int, pool: Pool) -> Core:
        """Runs a block for the profile, on one of these cores. They may do without data.

        Returns:
            The core, free again; it knows what the block did until it begins another.

        Raises:
            DeviceFault: the program did something illegal.
        """
        core = self._issued(block, pool, block < self._kept)
        self._collector.add(Done.of(core), block % self._at_once, block)
        return core

    def compute(self, block: int, pool: Pool) -> Core:
        """As `run`, for data alone: the profile is made elsewhere."""
        core = self._issued(block, pool, keep_rows=False)
        core.finish()
        return core

    def _issued(self, block: int, pool: Pool, keep_rows: bool) -> Core:
        launch, core = self.launch, pool.take(KIND)
        core.begin(launch.name, block, self._rates, launch.locations, keep_rows)
        launch.programs[KIND](launch.arguments, block, launch.blocks, core)
        pool.give(KIND, core)
        return core

    def settle(self, l2: L2) -> LaunchProfile:
        """The profile, when each block has run, with the L2 as it serves them."""
        self._collector.sort()
        self._collector.settle(l2, self._at_once)
        return self._collector.profile
