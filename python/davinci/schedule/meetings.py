"""What a meeting of the cores of a launch takes, by which phases of a launch are weighed.

A launch of several phases has a meeting of all its cores between them (`cce.sync_cores`): each core
stores its counter, and loads those of all others until they have come.
"""

from __future__ import annotations

import math

from davinci.isa.counters import LINE_BYTES
from davinci.machine import Machine, prices

FLAGS_OF_STORE, FLAGS_OF_LOOK = 3, 2
"""Flags between pipes that a core waits for until its counter is in memory, and in each look at the
counters of others."""

LOOKS = 1.2
"""Looks at the counters, on average over cores, of which some look before the last counter is
there."""


def meeting_cycles(machine: Machine, cores: int) -> float:
    """Estimated cycles of a meeting of so many cores that come at the same time."""
    flag = machine.sync.flag_cycles
    access = prices.scalar_accesses(machine, 1, "UB")
    store = access + FLAGS_OF_STORE * flag + prices.writing(machine).result(machine.gm.line_bytes)
    minimum = prices.vector(machine, "vmin", "s32", 1) + machine.sync.barrier_cycles
    lines = max(cores * LINE_BYTES, machine.gm.line_bytes)
    look = prices.reading(machine).result(lines) + FLAGS_OF_LOOK * flag + access
    look += math.ceil(math.log2(max(cores, 1))) * minimum
    return store + LOOKS * look


class LaunchPrice:
    """What the launch of a kernel takes besides the kernel, by its number of cores.

    Kernels that are phases of one launch bear its price together, and that of a meeting each.

    Args:
        phases: that the launch of the kernel has, by estimate.
    """

    def __init__(self, machine: Machine, phases: int = 1) -> None:
        self._machine, self._phases = machine, max(1, phases)

    def cycles(self, cores: int) -> float:
        """Cycles of launching a kernel on so many cores, or its share of a launch in phases."""
        launch = self._machine.queued_cycles(cores)
        if self._phases == 1:
            return launch
        meetings = (self._phases - 1) * meeting_cycles(self._machine, cores)
        return (launch + meetings) / self._phases


def joining_pays(machine: Machine, blocks: list[int]) -> bool:
    """Whether kernels on so many cores each take less time as phases of one launch than with a
    launch each."""
    if len(blocks) < 2:
        return False
    most = max(blocks)
    joined = machine.queued_cycles(most) + (len(blocks) - 1) * meeting_cycles(machine, most)
    return joined < sum(map(machine.queued_cycles, blocks))
