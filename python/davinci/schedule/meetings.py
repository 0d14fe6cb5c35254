"""What a meeting of the cores of a launch takes, by which phases of a launch are weighed.

A launch of several phases has a meeting of all its cores between them (`cce.sync_cores`): each core
stores its counter, and loads those of all others until they have come.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

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
    lines = max(cores * LINE_BYTES, machine.gm.line_bytes)
    look = prices.reading(machine).result(lines) + min(
        _minima(machine, cores), _loads(machine, cores)
    )
    return store + LOOKS * look


def minima_pay(machine: Machine, cores: int) -> bool:
    """Whether the least of so many counters is found sooner by the vector unit, in halves, than by
    the scalar unit, which looks at one after the other."""
    return _minima(machine, cores) < _loads(machine, cores)


def _minima(machine: Machine, cores: int) -> float:
    """Cycles from when counters are in UB until the vector unit has found the least of them."""
    minimum = prices.vector(machine, "vmin", "s32", 1) + machine.sync.barrier_cycles
    halves = math.ceil(math.log2(max(cores, 1))) * minimum
    flags = FLAGS_OF_LOOK * machine.sync.flag_cycles
    return flags + halves + prices.scalar_accesses(machine, 1, "UB")


def _loads(machine: Machine, cores: int) -> float:
    """The same of the scalar unit, with a comparison for each counter behind the first."""
    compared = (cores - 1) * machine.scalar.issue_cycles
    return machine.sync.flag_cycles + prices.scalar_accesses(machine, cores, "UB") + compared


def can_meet(machine: Machine) -> bool:
    """Whether cores can meet in a launch, for which each keeps an event id."""
    return machine.sync.event_ids > 1


@dataclass(frozen=True)
class LaunchPrice:
    """What the launch of a kernel takes besides the kernel, by its number of cores.

    Kernels that are phases of one launch bear its price together, and that of a meeting each.

    Attributes:
        phases: that the launch of the kernel has, by estimate.
    """

    machine: Machine
    phases: int = 1

    def cycles(self, cores: int) -> float:
        """Cycles of launching a kernel on so many cores, or its share of a launch in phases."""
        launch = self.machine.queued_cycles(cores)
        if self.phases <= 1:
            return launch
        meetings = (self.phases - 1) * meeting_cycles(self.machine, cores)
        return (launch + meetings) / self.phases


def joining_pays(machine: Machine, blocks: list[int]) -> bool:
    """Whether kernels on so many cores each take less time as phases of one launch than with a
    launch each."""
    if len(blocks) < 2 or not can_meet(machine):
        return False
    most = max(blocks)
    joined = machine.queued_cycles(most) + (len(blocks) - 1) * meeting_cycles(machine, most)
    return joined < sum(map(machine.queued_cycles, blocks))
