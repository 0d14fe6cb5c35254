"""Gives flags their event ids, and says what becomes of one for which there is none."""

from __future__ import annotations

from heapq import heappop, heappush

from davinci.isa.core import Pipe
from davinci.passes.cce.sync_memory import Memory
from davinci.passes.cce.sync_plan import Flag, Plan, Scarcity, Sync
from davinci.passes.cce.sync_program import Leaf, Node, Program
from davinci.passes.cce.sync_record import Instance
from davinci.passes.cce.sync_trace import Trace


class _Clashes:
    """Notes which flags of the same pipes must not share an event id: one is set while its pipe
    does not know that the other is clear. Flags of phases that follow each other may share.

    Attributes:
        of: for each flag, in the order in which they are first set, those that it clashes with.
    """

    def __init__(self) -> None:
        self.of: dict[Flag, set[Flag]] = {}

    def missing(self, trace: Trace, earlier: Instance, later: Leaf) -> None:
        raise AssertionError("the plan is complete")

    def unclear(self, trace: Trace, earlier: Instance, pipe: Pipe, node: Node) -> None:
        raise AssertionError("the plan is complete")

    def sets(self, flag: Flag, others: set[Flag]) -> None:
        self.of.setdefault(flag, set()).update(others)
        for other in others:
            self.of[other].add(flag)


def allocate(program: Program, memory: Memory, plan: Plan, event_ids: int) -> list[Sync]:
    """Gives every flag an event id; returns syncs with a flag for which none was left.

    It is a colouring of the graph of clashes. Next is always a flag with the fewest ids left: where
    flags of one iteration of a loop clash with those of the next, the graph has circles, for which
    their order alone would not do.
    """
    clashes = _Clashes()
    Trace(program, memory, plan, clashes)
    flags = list(clashes.of)
    order = {flag: number for number, flag in enumerate(flags)}
    left = {flag: set(range(event_ids)) for flag in flags}
    queue = [(event_ids, number) for number in order.values()]
    done: set[Flag] = set()
    while queue:
        flag = flags[heappop(queue)[1]]
        if flag in done:
            continue
        done.add(flag)
        flag.event = min(left[flag], default=-1)
        for other in clashes.of[flag] - done:
            if flag.event in left[other]:
                left[other].remove(flag.event)
                heappush(queue, (len(left[other]), order[other]))
    return [sync for sync in plan.syncs if any(flag.event < 0 for flag in sync.flags)]


def give_up(sync: Sync, plan: Plan, idle: frozenset[Pipe]) -> bool:
    """Replaces a sync for which there is no event id; says whether by a barrier of all pipes.

    A relay becomes a barrier of its pipe. A flag is merged with another one of the same pipes in
    the same block, into one that is set after the later and waited for before the earlier; if there
    is none, it becomes a barrier of all pipes.
    """
    plan.remove(sync)
    if not sync.is_flag and sync.route[1] in idle:
        barrier = (sync.dst,)
        plan.add(Sync(barrier, sync.block, sync.before, sync.before, scarcity=Scarcity.MERGED))
        return False
    partner = _partner(sync, plan.syncs)
    if partner is None:
        plan.add(Sync((Pipe.ALL,), sync.block, sync.before, sync.before))
        return True
    plan.remove(partner)
    plan.add(_merged(sync, partner))
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
