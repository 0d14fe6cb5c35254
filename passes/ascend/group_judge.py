"""What a group of operators costs as one kernel, by the estimate of its best schedule."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache

from davinci.machine import Machine
from davinci.schedule.graph import Graph
from davinci.schedule.meetings import can_meet, meeting_cycles
from davinci.schedule.side_by_side import cycles_of
from davinci.schedule.vector.space import NoSpace

KNOWN_KEPT = 20_000
"""Groups of which a judge knows what they cost."""


class Judge:
    """Says what a group costs; equal groups are weighed once."""

    def __init__(self, machine: Machine, cores: int) -> None:
        self._machine, self._cores = machine, cores
        self.launch = machine.launch_cycles
        meeting = meeting_cycles(machine, cores) if can_meet(machine) else self.launch
        self.phase = min(self.launch, round(meeting))
        """Cycles between two kernels that may be phases of one launch."""
        self._known: dict[Hashable, int | None] = {}

    def cycles(self, graph: Graph, growing: bool) -> int | None:
        """Estimated cycles with those of a launch, None if no kernel can hold the group.

        Args:
            growing: whether more operators may join it.
        """
        key = (graph.key(), growing)
        if key not in self._known:
            if len(self._known) == KNOWN_KEPT:
                self._known.clear()
            self._known[key] = self._weigh(graph, growing)
        return self._known[key]

    def _weigh(self, graph: Graph, growing: bool) -> int | None:
        try:
            cycles = cycles_of(graph, self._machine, self._cores, growing=growing)
            return cycles + self.launch
        except NoSpace:
            return None


@lru_cache(maxsize=4)
def judge_of(machine: Machine, cores: int) -> Judge:
    """The judge of a machine, which remembers what it knows from one module to the next."""
    return Judge(machine, cores)
