"""What launching takes besides the cycles of kernels (docs/hardware.md b3).

Launched by the host one by one, each kernel waits for the host. As one graph queued on the device
only the first one does; the others follow when the device switches from one task to the next. The
more cores a kernel takes, the longer until it runs on all of them, and longer where it takes cube
and vector cores.
"""

from __future__ import annotations

from collections.abc import Sequence

from davinci.machine import Machine
from davinci.report.seats import seat
from davinci.simulator.timing.profile import LaunchProfile

QUEUED, HOST = LAUNCHING = ("queued", "host")
"""How kernels are launched; the first is what is taken unless the caller says otherwise."""


def gaps_us(machine: Machine, launches: Sequence[LaunchProfile], launching: str) -> list[float]:
    """Microseconds in front of each launch of a run, in order.

    Args:
        machine: on which they ran.
        launches: of the run.
        launching: one of `LAUNCHING`.
    """
    return [
        gap_us(machine, launch, launching == HOST or number == 0)
        for number, launch in enumerate(launches)
    ]


def gap_us(machine: Machine, launch: LaunchProfile, by_host: bool) -> float:
    """Microseconds in front of a launch, which waits for the host or for the task before it."""
    unit = machine.launch
    kinds = {seat(machine, block.core)[1] for block in launch.per_block}
    there = machine.cores * sum(machine.core_types[kind].count for kind in kinds)
    begin = unit.overhead_us if by_host else unit.switch_us + unit.head_us
    mixed = unit.mixed_us if len(kinds) > 1 else 0.0
    return begin + unit.head_of_all_cores_us * launch.cores / max(there, 1) + mixed
