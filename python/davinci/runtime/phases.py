"""Phases of launches, as the host reads them: calls behind a meeting belong to that before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from davinci.dialects.base import attribute
from davinci.isa.cross_core import BY_FLAGS
from davinci.machine import Machine, blocks_a_core
from davinci.mlir import Op
from davinci.passes.analysis.kernels import MEETING
from davinci.passes.pipeline.base import fail
from davinci.simulator import JoinedKernels, KernelCall, LaunchProfile


def add_meeting(launches: list[JoinedKernels], op: Op, call: KernelCall) -> int:
    """Adds a meeting of the cores of the launch before it, which goes on behind it.

    Args:
        launches: those before it, the last of which becomes a phase.

    Returns:
        The number of the argument that its cores count to; `BY_FLAGS` if they count to none.

    Raises:
        CompileError: no phase of a launch stands in front of it, or it has no such argument.
    """
    place: int = attribute(op, MEETING)
    if not launches or launches[-1].meets:
        fail(op, "is a meeting that no phase of a launch stands in front of")
    if place != BY_FLAGS and not 0 <= place < len(call.arguments):
        most = len(call.arguments) - 1
        message = f"has no argument of the number {MEETING}"
        expected = f"0 to {most}, or {BY_FLAGS} where cores meet by flags"
        fail(op, message, found=str(place), expected=expected)
    before, meeting = launches[-1], JoinedKernels((call,), continues=True, meeting=place)
    cores = max(before.launch_cores, meeting.blocks)
    kinds = before.launch_kinds.union(call.programs)
    launches.append(replace(meeting, launch_cores=cores, launch_kinds=kinds))
    if (cores, kinds) != (before.launch_cores, before.launch_kinds):
        number, earlier = len(launches) - 1, True
        while earlier:
            number -= 1
            earlier = launches[number].continues
            launches[number] = replace(launches[number], launch_cores=cores, launch_kinds=kinds)
    return place


def add_call(launches: list[JoinedKernels], call: KernelCall, beside: bool) -> None:
    """Adds a call of a kernel.

    Args:
        beside: whether it shares the launch, or the phase of it, of the call before.
    """
    before = launches[-1] if launches else None
    if before is not None and before.meets:
        launches.append(replace(before, kernels=(call,), continues=True, meeting=None))
    elif before is not None and beside:
        launches[-1] = replace(before, kernels=(*before.kernels, call))
    else:
        launches.append(JoinedKernels((call,)))


def check_phases(launches: Sequence[JoinedKernels], main: Op, machine: Machine) -> None:
    """Checks that all blocks of phases meet.

    Raises:
        CompileError: a phase has more blocks than a meeting, or cores of a kind that does not meet,
            or no phase stands behind a meeting.
    """
    if launches and launches[-1].meets:
        fail(main, "has a meeting behind which no phase comes")
    for launch in launches:
        if not launch.in_phases:
            continue
        kinds = frozenset().union(*(kernel.programs for kernel in launch.kernels))
        if not kinds <= launch.launch_kinds or (launch.meets and kinds != launch.launch_kinds):
            expected = " and ".join(sorted(launch.launch_kinds))
            found = f"{' and '.join(sorted(kinds))} of {launch.name}"
            message = "has a phase of a launch on other kinds of cores"
            fail(main, message, found=found, expected=f"{expected}, the kinds of its meetings")
        room = launch.launch_cores * blocks_a_core(machine, kinds, launch.launch_kinds)
        if launch.blocks > room:
            expected = f"at most {room}, the blocks of its meetings"
            found = f"{launch.blocks} blocks of {launch.name}"
            fail(main, "has a phase of a launch on more cores", found=found, expected=expected)


def without_meetings(
    launches: Sequence[JoinedKernels], profiles: Sequence[Sequence[LaunchProfile]]
) -> list[LaunchProfile]:
    """The profiles of kernels; that of a meeting is part of the one behind it."""
    found: list[LaunchProfile] = []
    meeting: LaunchProfile | None = None
    for launch, of_launch in zip(launches, profiles, strict=True):
        if launch.meets:
            (meeting,) = of_launch
            continue
        of_launch[0].meeting, meeting = meeting, None
        found += of_launch
    return found
