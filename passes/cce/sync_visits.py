"""What loops and branches did to the state of traces that differ only in syncs that they leave out.

Whether a sync is needed is found by a trace without it. Up to the first sync that is left out, and
from where its absence no longer matters, such a trace repeats what others did before: a loop or
branch that is entered in the same state, with the same syncs left out inside, is left in the same
state. Numbers of operations and waits do not depend on what is left out (`sync_trace`), so states
of different traces can be compared.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from davinci.passes.cce.sync_clock import Clock
from davinci.passes.cce.sync_plan import PipeFlag, Sync
from davinci.passes.cce.sync_program import SyncNode


class PipeKnowledge(NamedTuple):
    """The clocks of pipes, and what was sent with each flag that is set."""

    clocks: list[Clock]
    sent: dict[PipeFlag, Clock]

    def copy(self) -> PipeKnowledge:
        """One whose clocks may change."""
        return PipeKnowledge([[*clock] for clock in self.clocks], {**self.sent})


class VisitOutcome(NamedTuple):
    """What the pipes know, and what has run, after a trace has gone through a loop or branch.

    Attributes:
        knowledge: of the pipes.
        numbers, issued: of each pipe, see `Trace`.
        executed: the numbers of its operations.
        waited: of each flag that was waited for, the number of the latest wait.
    """

    knowledge: PipeKnowledge
    numbers: Clock
    issued: Clock
    executed: list[int]
    waited: dict[PipeFlag, int]


class NodeVisit(NamedTuple):
    """A loop or branch, the number of operations executed before it, and the syncs left out in
    it."""

    node: SyncNode
    executed: int
    without: frozenset[Sync]


class NodeVisits:
    """Outcomes of the visits of traces over one program with one plan."""

    def __init__(self) -> None:
        self._known: dict[NodeVisit, list[tuple[PipeKnowledge, VisitOutcome]]] = {}

    def find(self, visit: NodeVisit, entry: PipeKnowledge) -> VisitOutcome | None:
        """What a visit that began with the same knowledge left behind, if there was one."""
        known = self._known.get(visit, ())
        return next((outcome for before, outcome in known if before == entry), None)

    def add(self, visit: NodeVisit, entry: PipeKnowledge, outcome: VisitOutcome) -> None:
        self._known.setdefault(visit, []).append((entry, outcome))


def left_out_in(without: Collection[Sync]) -> Mapping[SyncNode, frozenset[Sync]]:
    """The syncs of some that lie in each loop or branch that has any."""
    found: dict[SyncNode, set[Sync]] = {}
    for sync in without:
        node: SyncNode | None = sync.block.owner
        while node is not None:
            found.setdefault(node, set()).add(sync)
            node = node.block.owner
    return {node: frozenset(syncs) for node, syncs in found.items()}
