"""Launches on a coupled machine, whose cores do not meet: each block runs to its end, in any order.

What a block writes does not depend on other blocks, and how long it takes does not depend on data:
a block may be run for its data only, or for its time only.

Several kernels may share a launch. Then each core first finds the kernel that its block belongs to,
by comparing the block's number with the first one of each kernel, and that takes time; so in each
phase of a launch that has several.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from davinci.isa import INSTRUCTIONS
from davinci.isa.core import RECORD_WORDS, Records, Space, header
from davinci.machine import Machine
from davinci.simulator.core.core import Core
from davinci.simulator.core.launch import FreeCores, JoinedKernels
from davinci.simulator.timing.collect import Collector, Done
from davinci.simulator.timing.gm_model import rates_of
from davinci.simulator.timing.l2 import L2
from davinci.simulator.timing.profile import LaunchProfile

KIND = "AICORE"
"""The kind of all cores of a coupled machine."""

COMPARED = 3
"""Scalar operations for each kernel before that of a block: compare, branch, and subtract its
number of blocks."""


class CoupledLaunch:
    """One launch.

    Args:
        machine: without cube and vector cores of their own.
        launch: what to run.
        kept: of each kernel, blocks whose rows are kept, the first ones.
    """

    def __init__(self, machine: Machine, launch: JoinedKernels, kept: Sequence[int]) -> None:
        self.launch, self._kept = launch, kept
        self._at_once = min(launch.blocks, machine.cores)
        self._rates = rates_of(machine, self._at_once)
        profiles = [
            LaunchProfile(
                kernel.name,
                kernel.blocks,
                min(kernel.blocks, self._at_once),
                begins_launch=number == 0,
                launch_cores=launch.launch_cores,
                continues=launch.continues,
            )
            for number, kernel in enumerate(launch.kernels)
        ]
        locations = [kernel.locations for kernel in launch.kernels]
        self._collector = Collector(profiles, machine, locations)

    def run(self, block: int, pool: FreeCores) -> Core:
        """Runs a block for the profile, on one of these cores. They may do without data.

        Returns:
            The core, free again; it knows what the block did until it begins another.

        Raises:
            DeviceFault: the program did something illegal.
        """
        number, own = self.launch.of_block(block)
        core = self._issued(block, pool, own < self._kept[number])
        self._collector.add(Done.of(core), block % self._at_once, block, kernel=number, own=own)
        return core

    def compute(self, block: int, pool: FreeCores) -> Core:
        """As `run`, for data alone: the profile is made elsewhere."""
        core = self._issued(block, pool, keep_rows=False)
        core.finish()
        return core

    def _issued(self, block: int, pool: FreeCores, keep_rows: bool) -> Core:
        number, own = self.launch.of_block(block)
        kernel, core = self.launch.kernels[number], pool.take(KIND)
        core.begin(
            kernel.name,
            own,
            self._rates,
            kernel.locations,
            keep_rows,
            foreign=kernel.foreign,
        )
        if len(self.launch.kernels) > 1 or self.launch.in_phases:
            core.consume(finding(number))
        kernel.programs[KIND](kernel.arguments, own, kernel.blocks, core)
        pool.give(KIND, core)
        return core

    def settle(self, l2: L2) -> list[LaunchProfile]:
        """The profile of each kernel, when each block has run, with the L2 as it serves them."""
        self._collector.sort()
        self._collector.settle(l2, self._at_once)
        return self._collector.profiles


def finding(number: int) -> Records:
    """What a core issues before it is in the kernel of that number of its launch."""
    summary = INSTRUCTIONS["scalar_access"]
    words = summary.encode(dict.fromkeys(summary.field_names, 0) | {"space": Space.GM})
    record = np.zeros((1, RECORD_WORDS), dtype=np.uint64)
    record[0, : 1 + len(words)] = [header(summary.opcode, COMPARED * (number + 1)), *words]
    return record
