"""Phases of launches, as the host reads them: calls behind a meeting belong to that before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from davinci.dialects.base import attribute
from davinci.mlir import Op
from davinci.passes.analysis.kernels import MEETING
from davinci.passes.pipeline.base import fail
from davinci.simulator import KernelCall, Launch, LaunchProfile


def add_meeting(launches: list[Launch], op: Op, call: KernelCall) -> int:
    """Adds a meeting of the cores of the launch before it, which goes on behind it.

    Args:
        launches: those before it, the last of which becomes a phase.

    Returns:
        The number of the argument that its cores count to.

    Raises:
        CompileError: no phase of a launch stands in front of it, or it has no such argument.
    """
    place: int = attribute(op, MEETING)
    if not launches or launches[-1].meets:
        fail(op, "is a meeting that no phase of a launch stands in front of")
    if not 0 <= place < len(call.arguments):
        most = len(call.arguments) - 1
        message = f"has no argument of the number {MEETING}"
        fail(op, message, found=str(place), expected=f"0 to {most}")
    first = len(launches) - 1
    while launches[first].continues:
        first -= 1
    launches.append(Launch((call,), continues=True, meeting=place))
    cores = max(launch.blocks for launch in launches[first:] if launch.meets)
    for number in range(first, len(launches)):
        launches[number] = replace(launches[number], launch_cores=cores)
    return place


def add_call(launches: list[Launch], call: KernelCall, beside: bool) -> None:
    """Adds a call of a kernel.

    Args:
        beside: whether it shares the launch, or the phase of it, of the call before.
    """
    before = launches[-1] if launches else None
    if before is not None and before.meets:
        launches.append(Launch((call,), before.launch_cores, continues=True))
    elif before is not None and beside:
        launches[-1] = replace(before, kernels=(*before.kernels, call))
    else:
        launches.append(Launch((call,)))


def check_phases(launches: Sequence[Launch], main: Op) -> None:
    """Checks that all blocks of phases meet.

    Raises:
        CompileError: a phase has more blocks than a meeting, or none stands behind one.
    """
    if launches and launches[-1].meets:
        fail(main, "has a meeting behind which no phase comes")
    for launch in launches:
        if launch.in_phases and launch.blocks > launch.launch_cores:
            expected = f"at most {launch.launch_cores}, the blocks of its meetings"
            found = f"{launch.blocks} blocks of {launch.name}"
            fail(main, "has a phase of a launch on more cores", found=found, expected=expected)


def without_meetings(
    launches: Sequence[Launch], profiles: Sequence[Sequence[LaunchProfile]]
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
