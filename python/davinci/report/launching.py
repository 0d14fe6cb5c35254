"""The time that launches take besides the cycles of kernels (docs/hardware.md b3).

Launched by the host one by one, each kernel waits for the host. As one graph queued on the device
only the first one does; the others follow when the device switches from one task to the next. The
more cores a kernel takes, the longer until it runs on all of them, and longer where it takes cube
and vector cores. Where the host brings weights while kernels run, a launch also waits for its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from davinci.machine import Machine
from davinci.machine.host import LaunchSection
from davinci.report.seats import kinds_of
from davinci.simulator.timing.profile import LaunchProfile

QUEUED, HOST = LAUNCHING = ("queued", "host")
"""How kernels are launched; the first is what is taken unless the caller says otherwise."""


Sharing = Sequence[LaunchProfile]
"""The kernels that share a launch, mostly one."""


def launches_of(profiles: Iterable[LaunchProfile]) -> list[Sharing]:
    """The launches of a run, or their phases: kernels that begin at the same time are together."""
    found: list[list[LaunchProfile]] = []
    for profile in profiles:
        if profile.begins_launch or not found:
            found.append([])
        found[-1].append(profile)
    return list(found)


def cycles_of(launch: Sharing) -> int:
    """From the start of a launch until the last of its kernels is done."""
    return max(kernel.cycles for kernel in launch)


def gaps_us(machine: Machine, profiles: Sequence[LaunchProfile], launching: str) -> list[float]:
    """Microseconds in front of each launch of a run, in order: until the task before it has made
    way for it, and until what the host brings for it is there.

    Args:
        machine: on which they ran.
        profiles: of one run or several; the first of each waits for the host.
        launching: one of `LAUNCHING`.
    """
    gaps, waits = gaps_and_waits_us(machine, profiles, launching)
    return [gap + wait for gap, wait in zip(gaps, waits, strict=True)]


def gaps_and_waits_us(
    machine: Machine, profiles: Sequence[LaunchProfile], launching: str
) -> tuple[list[float], list[float]]:
    """The two parts of `gaps_us` apart: what launching takes, and how long each launch then still
    waits for what the host brings."""
    launches = launches_of(profiles)
    gaps = [
        gap_us(machine, launch, launching == HOST or number == 0 or launch[0].begins_run)
        for number, launch in enumerate(launches)
    ]
    times = [cycles_of(launch) / machine.clock_mhz for launch in launches]
    return gaps, link_waits_us(machine, launches, times, gaps)


def link_waits_us(
    machine: Machine, launches: Sequence[Sharing], times: Sequence[float], gaps: Sequence[float]
) -> list[float]:
    """Microseconds that each launch waits for what the host brings for it, besides its gap.

    Transfers use the link one after the other, in the order in which they were asked for.

    Args:
        times: microseconds that the kernels of each launch take.
        gaps: microseconds in front of each for other reasons.
    """
    link, waits = machine.host_link, [0.0] * len(launches)
    free, ends = 0.0, [0.0]
    for number, launch in enumerate(launches):
        if launch[0].begins_run:
            free, ends = 0.0, [0.0]
        for fetch in (fetch for kernel in launch for fetch in kernel.fetches):
            assert link is not None, "a machine without a link to the host gets nothing from it"
            free = max(free, ends[fetch.behind]) + link.us(fetch.nbytes)
            waits[number] = max(0.0, free - ends[-1] - gaps[number])
        ends.append(ends[-1] + gaps[number] + waits[number] + times[number])
    return waits


def range_of(
    machine: Machine, profiles: Sequence[LaunchProfile], launching: str
) -> list[dict[str, float]]:
    """What all launches of a run would take together for each time that a queued launch on all
    cores may have (`launch.all_cores_us_range` of the machine file), the least first.

    Args:
        machine, profiles, launching: as of `gaps_us`.
    """
    found = []
    for queued_us in machine.launch.all_cores_us_range:
        assumed = with_all_cores_us(machine.launch, queued_us)
        changed = machine.model_copy(update={"launch": assumed})
        gaps, waits = gaps_and_waits_us(changed, profiles, launching)
        found.append({"all_cores_us": queued_us, "launch_overhead_us": sum(gaps)})
        if waited := sum(waits):
            found[-1]["link_wait_us"] = waited
    return found


def with_all_cores_us(unit: LaunchSection, queued_us: float) -> LaunchSection:
    """Launch times if a queued launch on all cores takes `queued_us`; those that do not grow with
    the cores are kept as far as they fit."""
    switch_us = min(unit.switch_us, queued_us)
    head_us = min(unit.head_us, queued_us - switch_us)
    rest_us = queued_us - switch_us - head_us
    return unit.model_copy(
        update={"switch_us": switch_us, "head_us": head_us, "head_of_all_cores_us": rest_us}
    )


def gap_us(machine: Machine, launch: Sharing, by_host: bool) -> float:
    """Microseconds in front of a launch, which waits for the host or for the task before it; in
    front of another phase of a launch those in which its cores meet."""
    meeting = launch[0].meeting
    if launch[0].continues:
        return meeting.cycles / machine.clock_mhz if meeting is not None else 0.0
    unit = machine.launch
    kinds = kinds_of(machine, (block.core for kernel in launch for block in kernel.per_block))
    kinds |= launch[0].launch_kinds
    there = machine.cores * sum(machine.core_types[kind].count for kind in kinds)
    mixed = unit.mixed_us if len(kinds) > 1 else 0.0
    taken = max(sum(kernel.cores for kernel in launch), launch[0].launch_cores)
    cores = min(taken, max(there, 1))
    return unit.us(cores / max(there, 1), by_host) + mixed
