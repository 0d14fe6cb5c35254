"""What a meeting of the cores of a launch takes, by which phases of a launch are weighed.

A launch of several phases has a meeting of all its cores between them. On a coupled machine
(`cce.sync_cores`) each core stores its counter, and loads those of all others until they have come.
Cores that have flags for each other meet by them, on a split machine those of both kinds in three
steps: vector cores tell their cube core, cube cores all others, and they their vector cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from davinci.isa.counters import LINE_BYTES
from davinci.machine import CrossCore, Machine, prices
from davinci.units import ceil_div

FLAGS_OF_STORE, FLAGS_OF_LOOK = 3, 2
"""Flags between pipes that a core waits for until its counter is in memory, and in each look at the
counters of others."""

STEPS_OF_BOTH_KINDS = 3
"""Steps of a meeting of cube and vector cores."""

LOOKS, LOOKS_OF_WAITING = 1.2, 1.5
"""Looks at the counters, on average over cores, of which some look before the last counter is
there; and where some have nothing to do before, for which it comes in the middle of a look."""


def meeting_cycles(machine: Machine, cores: int, loaded: int = 0, waiting: bool = False) -> float:
    """Estimated cycles of a meeting of so many cores that come at the same time.

    Args:
        loaded: bytes that each look loads behind the counters (`cce.sync_and_copy`).
        waiting: whether some of the cores come early, and wait for the others.
    """
    if machine.cross_core is not None:
        return _meeting_by_flags(machine, machine.cross_core)
    flag = machine.sync.flag_cycles
    access = prices.scalar_accesses(machine, 1, "UB")
    store = access + FLAGS_OF_STORE * flag + prices.writing(machine).result(machine.gm.line_bytes)
    lines = max(cores * LINE_BYTES, machine.gm.line_bytes)
    seen = _seeing(machine, cores, lines_looked_at(machine, cores))
    if loaded:
        seen = max(seen, machine.sync.barrier_cycles + prices.reading(machine).result(loaded))
    looks = LOOKS_OF_WAITING if waiting else LOOKS
    return store + looks * (prices.reading(machine).result(lines) + seen)


def _meeting_by_flags(machine: Machine, flags: CrossCore) -> float:
    """Cycles of a meeting by flags, in one step or, of both kinds of cores, three: of each a set
    and a wait are issued, and the flag comes."""
    steps = STEPS_OF_BOTH_KINDS if machine.split else 1
    return machine.sync.barrier_cycles + steps * _flag_cycles(machine, flags)


def flag_cycles(machine: Machine) -> float:
    """Cycles from a flag for another core until that has waited for it."""
    assert machine.cross_core is not None, f"cores of {machine.name} have no flags for each other"
    return _flag_cycles(machine, machine.cross_core)


def _flag_cycles(machine: Machine, flags: CrossCore) -> float:
    return 2 * machine.scalar.issue_cycles + flags.flag_cycles


def lines_looked_at(machine: Machine, cores: int) -> int:
    """How many of so many counters the scalar unit looks at, one after the other, when the vector
    unit has made the others and them one another's minima, in halves: as many as take least, all of
    them if no half pays."""
    ways = [cores]
    while ways[-1] > 1:
        ways.append(ceil_div(ways[-1], 2))
    return min(ways, key=lambda looks: _seeing(machine, cores, looks))


def _seeing(machine: Machine, cores: int, looks: int) -> float:
    """Cycles from when counters are in UB until the least of them is known, if the scalar unit
    looks at so many of them: a comparison for each behind the first."""
    minimum = prices.vector(machine, "vmin", "s32", 1) + machine.sync.barrier_cycles
    minima, left = 0, cores
    while left > looks:
        minima, left = minima + 1, ceil_div(left, 2)
    flags = machine.sync.flag_cycles * (FLAGS_OF_LOOK if minima else 1)
    compared = (looks - 1) * machine.scalar.issue_cycles
    return flags + minima * minimum + prices.scalar_accesses(machine, looks, "UB") + compared


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

    def apart(self, cores: int) -> float:
        """Cycles more that a kernel takes that must not be a phase: its launch, and another one of
        the phases behind it."""
        return 2 * self.machine.queued_cycles(cores) if self.phases > 1 else 0.0


def joining_pays(machine: Machine, cores: Sequence[int], apart: float) -> bool:
    """Whether kernels take less time as phases of one launch, on so many of its cores each, than
    with launches of their own, which take `apart` cycles together."""
    if len(cores) < 2 or not can_meet(machine):
        return False
    most = max(cores)
    joined = machine.queued_cycles(most) + (len(cores) - 1) * meeting_cycles(machine, most)
    return joined < apart
