"""Gives flags their event ids, and says what becomes of one for which there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from heapq import heappop, heappush

from davinci.passes.cce.sync_plan import PipeFlag, Scarcity, Sync, SyncPlan
from davinci.passes.cce.sync_program import SyncNode, lies_in
from davinci.passes.cce.sync_queues import EventIds, Queue
from davinci.passes.cce.sync_record import Record
from davinci.passes.cce.sync_trace import FlagPair, Trace


class _Clashes:
    """Notes which flags of the same pipes must not share an event id: one is set while its pipe
    does not know that the other is clear. Flags of phases that follow each other may share.

    Attributes:
        of: for each flag, in the order in which they are first set, those that it clashes with.
    """

    def __init__(self) -> None:
        self.of: dict[PipeFlag, set[PipeFlag]] = {}

    def sets(self, flag: PipeFlag, others: set[PipeFlag]) -> None:
        self.of.setdefault(flag, set()).update(others)
        for other in others:
            self.of[other].add(flag)


@dataclass(frozen=True)
class Shortage:
    """A sync for a flag of which no event id was left.

    Attributes:
        statement: the outermost loop or branch around it in which there are enough, if the pipes
            knew in front of it that all flags before are clear; None if there is none.
    """

    sync: Sync
    statement: SyncNode | None

    @property
    def answer(self) -> Sync | None:
        """A flag that tells the pipe that sets the sync's flag, in front of the statement, that all
        before are clear."""
        node = self.statement
        if node is None or not self.sync.is_flag:
            return None
        ahead: SyncNode = node.block.nodes[node.index - 1]
        route = self.sync.route[::-1]
        return Sync(route, node.block, ahead, node, scarcity=Scarcity.ANSWER)


def allocate(record: Record, plan: SyncPlan, event_ids: EventIds) -> list[Shortage]:
    """Gives every flag an event id; returns syncs with a flag for which none was left.

    It is a colouring of the graph of clashes. Next is always a flag with the fewest ids left: where
    flags of one iteration of a loop clash with those of the next, the graph has circles, for which
    their order alone would not do.
    """
    clashes = _Clashes()
    Trace(record, plan, listener=clashes.sets)
    events = _coloured(list(clashes.of), clashes, event_ids)
    for flag, event in events.items():
        flag.event = event
    owners = {flag: sync for sync in plan.syncs for flag in sync.flags}
    short = {owners[flag]: None for flag, event in events.items() if event < 0}

    @cache
    def suffices(pairs: frozenset[FlagPair], node: SyncNode) -> bool:
        inside = [
            flag
            for flag in clashes.of
            if (flag.src, flag.dst) in pairs and lies_in(owners[flag].block, node)
        ]
        return min(_coloured(inside, clashes, event_ids).values()) >= 0

    return [Shortage(sync, _roomy(sync, suffices)) for sync in plan.syncs if sync in short]


def _coloured(
    flags: Sequence[PipeFlag], clashes: _Clashes, event_ids: EventIds
) -> dict[PipeFlag, int]:
    """An event id for each of some flags, -1 if none is left; see `allocate`."""
    order = {flag: number for number, flag in enumerate(flags)}
    left = {flag: set(range(event_ids.of(flag.src, flag.dst))) for flag in flags}
    queue = sorted((len(left[flag]), number) for flag, number in order.items())
    found: dict[PipeFlag, int] = {}
    while queue:
        flag = flags[heappop(queue)[1]]
        if flag in found:
            continue
        found[flag] = min(left[flag], default=-1)
        for other in clashes.of[flag]:
            if other in order and other not in found and found[flag] in left[other]:
                left[other].remove(found[flag])
                heappush(queue, (len(left[other]), order[other]))
    return found


def _roomy(
    sync: Sync, suffices: Callable[[frozenset[FlagPair], SyncNode], bool]
) -> SyncNode | None:
    """The outermost statement around a sync whose flags alone have event ids enough, and that
    something lies in front of.

    Args:
        suffices: whether the flags of some pairs of pipes in a statement alone have.
    """
    node, found = sync.around or sync.block.owner, None
    pairs = frozenset((flag.src, flag.dst) for flag in sync.flags)
    while node is not None and suffices(pairs, node):
        found = node if node.index else found
        node = node.block.owner
    return found


def give_up(sync: Sync, plan: SyncPlan, idle: frozenset[Queue], again: bool) -> bool:
    """Replaces a sync for which there is no event id; says whether by a barrier of all pipes.

    A relay becomes a barrier of its pipe. A flag is merged with another one of the same pipes in
    the same block, into one that is set after the later and waited for before the earlier; if there
    is none, the scalar unit waits for it, and issues what follows then. Where that does not help,
    it becomes a barrier of all pipes.

    Args:
        again: whether it is missing though it was replaced before.
    """
    plan.remove(sync)
    if not sync.is_flag and sync.route[1] in idle:
        barrier = (sync.dst,)
        plan.add(Sync(barrier, sync.block, sync.before, sync.before, scarcity=Scarcity.MERGED))
        return False
    partner = None if again else _partner(sync, plan.syncs)
    if partner is not None:
        plan.remove(partner)
        plan.add(_merged(sync, partner))
        return False
    if again or sync.after is sync.before or Queue.S in sync.route:
        plan.add(Sync((Queue.ALL,), sync.block, sync.before, sync.before))
        return True
    plan.add(replace(sync, route=(sync.route[-2], Queue.S), scarcity=Scarcity.MERGED))
    return False


def _partner(sync: Sync, syncs: list[Sync]) -> Sync | None:
    """The nearest flag of the same kind that can be merged with `sync`."""

    def distance(other: Sync) -> int:
        return abs(other.after.index - sync.after.index) + abs(
            other.before.index - sync.before.index
        )

    def fits(other: Sync) -> bool:
        if (other.route, other.block) != (sync.route, sync.block) or not sync.is_flag:
            return False
        if (other.around is None) != (sync.around is None):
            return False
        apart = [each for each in (sync, other) if each.after is each.before]
        merged = _merged(sync, other)
        in_order = merged.after.index < merged.before.index
        return not apart and (sync.around is not None or in_order)

    return min(filter(fits, syncs), key=distance, default=None)


def _merged(first: Sync, second: Sync) -> Sync:
    """One flag that does the work of two."""
    after = max(first.after, second.after, key=lambda node: node.index)
    before = min(first.before, second.before, key=lambda node: node.index)
    return Sync(first.route, first.block, after, before, first.around, Scarcity.MERGED)
