"""How many cores had work, and for how long."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from davinci.machine import Machine
from davinci.simulator.timing.profile import LaunchProfile


@dataclass
class Idle:
    """Cycles of all cores together, from the start of launches to their ends.

    Attributes:
        core_cycles: of all cores that the program may use.
        idle_core_cycles: of those, in which the core had no block under way.
        half_idle_cycles: in which half of the cores, or more, had none.
    """

    core_cycles: int = 0
    idle_core_cycles: int = 0
    half_idle_cycles: int = 0

    def add(self, other: Idle) -> None:
        self.core_cycles += other.core_cycles
        self.idle_core_cycles += other.idle_core_cycles
        self.half_idle_cycles += other.half_idle_cycles

    @property
    def ratio(self) -> float:
        """Share of the core-cycles in which a core had nothing to do."""
        return self.idle_core_cycles / max(1, self.core_cycles)


def idle_of(launch: LaunchProfile, machine: Machine, cores: int) -> Idle:
    """Of one launch.

    Args:
        launch: the blocks of a core run one after the other, from the start of the launch.
        machine: on a split one a core is a cube core with its vector cores, all of them counted.
        cores: that the program may use.
    """
    all_cores = cores * sum(core.count for core in machine.core_types.values())
    all_cores = max(all_cores, launch.cores)
    busy: Counter[int] = Counter()
    for block in launch.per_block:
        busy[block.core] += block.cycles
    ends = sorted(busy.values(), reverse=True) + [0] * (all_cores - len(busy))
    # From the end of this core's work on, half of the cores at least have none.
    middle = ends[all_cores // 2]
    total = launch.cycles * all_cores
    return Idle(total, max(0, total - sum(ends)), max(0, launch.cycles - middle))
