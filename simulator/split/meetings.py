"""Meetings of the cores of a launch, between its phases.

A meeting issues the same each time but for the number that counters have to reach. So its programs
run when there is something new to find out; another time of which the L2 serves all transfers as it
did before is as long, and leaves nothing but larger counters. By flags all are as the first one.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace

import numpy as np

from davinci.machine import Machine
from davinci.simulator.core.coupled import KIND
from davinci.simulator.core.launch import FreeCores, JoinedKernels
from davinci.simulator.core.memory import GlobalMemory
from davinci.simulator.split.launch import SplitLaunch
from davinci.simulator.split.talking import TalkingLaunch
from davinci.simulator.timing.l2 import L2, Served, Touched
from davinci.simulator.timing.profile import LaunchProfile


@dataclass
class KnownMeeting:
    """What is known of a meeting.

    Attributes:
        touched: lines of global memory of its blocks.
        counters: addresses of the counters that they store.
        profiles: what was found, by how the L2 served it.
    """

    touched: list[list[Touched]]
    counters: list[int]
    profiles: list[tuple[Served, LaunchProfile]] = field(default_factory=list)


class Meetings:
    """The meetings of launches.

    Args:
        memory: in which the counters of a coupled machine are.
    """

    def __init__(self, machine: Machine, memory: GlobalMemory) -> None:
        self._machine, self._memory = machine, memory
        self._known: dict[Hashable, KnownMeeting] = {}
        self._by_flags: dict[Hashable, LaunchProfile] = {}

    def by_flags(
        self, launch: JoinedKernels, cores: FreeCores, l2: L2, checks: bool
    ) -> LaunchProfile:
        """The profile of a meeting by flags of a split machine, which touches no memory.

        Raises:
            DeviceFault: its programs did something illegal, or wait for each other.
        """
        (call,) = launch.kernels
        key = tuple(call.programs.values()), tuple(call.arguments), call.blocks, launch.launch_cores
        if key not in self._by_flags:
            split = SplitLaunch(self._machine, launch, 0, cores)
            split.run(checks)
            self._by_flags[key] = split.settle(l2)
        return replace(self._by_flags[key])

    def run(self, launch: JoinedKernels, cores: FreeCores, l2: L2, checks: bool) -> LaunchProfile:
        """The profile of a meeting.

        Raises:
            DeviceFault: its programs did something illegal, or wait for each other.
        """
        (call,) = launch.kernels
        assert launch.meeting is not None, "a phase without kernels"
        others = [x for number, x in enumerate(call.arguments) if number != launch.meeting]
        key = call.programs[KIND], tuple(others), call.blocks, launch.launch_cores
        known = self._known.get(key)
        if known is not None:
            served = l2.launch(known.touched)
            for before, profile in known.profiles:
                if before == served:
                    number = np.array([call.arguments[launch.meeting]], dtype=np.int32)
                    for counter in known.counters:
                        self._memory.write(counter, number)
                    return replace(profile)
        talking = TalkingLaunch(self._machine, launch, 0, cores)
        talking.run(checks)
        if known is None:
            known = KnownMeeting(talking.touched(), sorted(talking.counters.posted))
            self._known[key] = known
            served = l2.launch(known.touched)
        profile = talking.note(served)
        known.profiles.append((served, profile))
        return replace(profile)
