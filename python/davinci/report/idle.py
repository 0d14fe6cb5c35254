"""How many cores had work, and for how long."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from davinci.machine import Machine
from davinci.report.launching import Sharing, cycles_of


@dataclass
class Idle:
    """Cycles of all cores together, from the start of launches to their ends.

    Attributes:
        core_cycles: of all cores that the program may use.
        idle_core_cycles: of those, in which the core had no block under way.
        half_idle_cycles: in which half of the cores, or more, had none.
        spared_core_cycles: of `idle_core_cycles`, those of cores that were left out because to
            launch on them takes longer than they save.
        half_spared_cycles: of `half_idle_cycles`, those in which that is why.
    """

    core_cycles: int = 0
    idle_core_cycles: int = 0
    half_idle_cycles: int = 0
    spared_core_cycles: int = 0
    half_spared_cycles: int = 0

    def add(self, other: Idle) -> None:
        self.core_cycles += other.core_cycles
        self.idle_core_cycles += other.idle_core_cycles
        self.half_idle_cycles += other.half_idle_cycles
        self.spared_core_cycles += other.spared_core_cycles
        self.half_spared_cycles += other.half_spared_cycles

    @property
    def ratio(self) -> float:
        """Share of the core-cycles in which a core had nothing to do."""
        return self.idle_core_cycles / max(1, self.core_cycles)


def idle_of(launch: Sharing, machine: Machine, cores: int, useful: int = 0) -> list[Idle]:
    """How long the cores of each kernel of a launch had no work. Cores that have no block of any of
    them, and the time in which half of all cores have none, are counted with the kernel that takes
    longest.

    Args:
        launch: the blocks of a core run one after the other, from the start of the launch.
        machine: on a split one a core is a cube core with its vector cores, all of them counted.
        cores: that the program may use.
        useful: cores that would have work if launching on them had no price; 0 if that did not
            decide.
    """
    all_cores = cores * sum(core.count for core in machine.core_types.values())
    all_cores = max(all_cores, sum(kernel.cores for kernel in launch))
    cycles, busy = cycles_of(launch), Counter[int]()
    found = []
    for kernel in launch:
        busy.update({block.core: 0 for block in kernel.per_block})
        for block in kernel.per_block:
            busy[block.core] += block.cycles
        own = sum(block.cycles for block in kernel.per_block)
        total = cycles * kernel.cores
        found.append(Idle(total, max(0, total - own)))
    ends = sorted(busy.values(), reverse=True) + [0] * (all_cores - len(busy))
    longest = max(range(len(launch)), key=lambda number: launch[number].cycles)
    rest = cycles * (all_cores - sum(kernel.cores for kernel in launch))
    # From the end of this core's work on, half of the cores at least have none.
    middle = ends[all_cores // 2]
    half_idle = max(0, cycles - middle)
    spared = cycles * max(0, min(useful, all_cores) - len(busy))
    half_spared = half_idle if len(busy) <= all_cores // 2 < useful else 0
    before = found[longest].idle_core_cycles
    found[longest].add(Idle(rest, rest, half_idle, min(before + rest, spared), half_spared))
    return found
