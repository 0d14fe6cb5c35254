"""Finds the flags, relays and barriers that a kernel needs, and gives flags their event ids.

A trace asks for a sync where something is missing, of what is missing the latest first: what is
missing after that is implied by no other. In a straight line that is the least there can be. Of
syncs around loops and branches, each that others imply is left out again: one trace tells which are
needed for sure (`sync_teachers`), and the few others are tried.
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci.passes.cce.sync_clock import PIPES
from davinci.passes.cce.sync_completion import Completion, Place, Resources
from davinci.passes.cce.sync_events import allocate, give_up
from davinci.passes.cce.sync_observer import ObservedTrace
from davinci.passes.cce.sync_plan import Scarcity, Sync, SyncPlan
from davinci.passes.cce.sync_program import Leaf, SyncBlock, SyncNode
from davinci.passes.cce.sync_queues import Queue
from davinci.passes.cce.sync_record import Record
from davinci.passes.cce.sync_teachers import Teachers
from davinci.passes.cce.sync_trace import Incomplete, Trace
from davinci.passes.cce.sync_visits import NodeVisits

FEW = 8
"""Doubtful syncs that are rather tried than looked at again."""


@dataclass
class Solution:
    """Syncs that order a kernel, flags with event ids.

    Attributes:
        given_up: how often a flag or relay found no event id.
        degraded: how often such a flag became a barrier of all pipes.
    """

    plan: SyncPlan
    given_up: int = 0
    degraded: int = 0

    @property
    def merged(self) -> int:
        """How many syncs are as they are because event ids are scarce."""
        return sum(sync.scarcity != Scarcity.NONE for sync in self.plan.syncs)


def solve(record: Record, resources: Resources) -> Solution:
    """Finds the syncs of a kernel.

    Flags for a later iteration are first set before, and last waited for after, the outermost loop,
    so that one iteration of an outer loop need not end before the next begins. Such a flag keeps
    its event id all the time; where ids run out, it is the innermost loop instead. Where flags of
    statements before keep the ids, a pipe is told in front of a statement that they are clear; if
    that does not help, it is left out.
    """
    first = _solve(record, resources, _outermost, True)
    found = [first]
    inside = (s for s in first.plan.syncs if s.around and s.around is not _innermost(s.block))
    if first.given_up and any(inside):
        found.append(_solve(record, resources, _innermost, True))
    if all(solution.degraded for solution in found):
        found.append(_solve(record, resources, _outermost, False))
    return min(found, key=lambda solution: (solution.degraded, solution.given_up))


def _solve(record: Record, resources: Resources, place: Place, answered: bool) -> Solution:
    """The syncs of a kernel.

    Args:
        place: says around what a flag for a later iteration is set.
        answered: whether pipes are told that flags before a statement are clear.
    """
    solution = Solution(SyncPlan())
    idle = frozenset(resources.relays.values())
    asked: set[object] = set()
    replaced: set[object] = set()
    while True:
        plan = solution.plan = _needed(record, solution.plan, resources, place)
        failed = allocate(record, plan, resources.event_ids)
        if not failed:
            return solution
        answers = {answer.key: answer for each in failed if (answer := each.answer)}
        fresh = {key: each for key, each in answers.items() if answered and key not in asked}
        for each in failed:
            if each.sync not in plan.syncs:
                continue
            if each.sync.scarcity == Scarcity.ANSWER:
                plan.remove(each.sync)
            elif each.answer is None or each.answer.key not in fresh:
                again = each.sync.key in replaced
                solution.given_up += 1
                solution.degraded += give_up(each.sync, plan, idle, again)
                # What is missing again, though it was, becomes a barrier: so this comes to an end.
                replaced.add(each.sync.key)
        for answer in fresh.values():
            plan.add(answer)
        asked |= fresh.keys()


def _needed(record: Record, plan: SyncPlan, resources: Resources, place: Place) -> SyncPlan:
    """Adds syncs until nothing is missing, and leaves out what others imply."""
    doubtful = _complete(record, plan, resources, place)
    # An answer, or a sync around a loop, may have been added after others that it implies. What
    # there is for want of event ids may imply each other; without all of it they are missed again.
    stale = [
        sync
        for sync in doubtful
        if isinstance(sync.before, Leaf)
        and sync.scarcity != Scarcity.MERGED
        and sync.dst != Queue.ALL
    ]
    if stale:
        for sync in stale:
            plan.remove(sync)
        doubtful = _complete(record, plan, resources, place)
    gone = frozenset[Sync]()
    if doubtful:
        visits = NodeVisits()
        Trace(record, plan, visits=visits)
        gone = _implied(record, plan, doubtful[::-1], gone, visits)
    return SyncPlan(sync for sync in plan.syncs if sync not in gone)


def _implied(
    record: Record,
    plan: SyncPlan,
    doubtful: list[Sync],
    gone: frozenset[Sync],
    visits: NodeVisits,
) -> frozenset[Sync]:
    """What may be left out of a plan, one after the other of the doubtful syncs: all of them if
    that will do, else those of one half, then of the other.

    Args:
        gone: what is left out already, and part of the result.
        visits: of traces with this plan.
    """
    if not doubtful:
        return gone
    try:
        Trace(record, plan, without=gone.union(doubtful), visits=visits)
    except Incomplete:
        if len(doubtful) == 1:
            return gone
        half = len(doubtful) // 2
        fewer = _implied(record, plan, doubtful[:half], gone, visits)
        others = doubtful[half:]
        if fewer != gone and len(others) >= FEW:
            # Without those, some of the others are needed for sure.
            teachers = Teachers(len(PIPES))
            Trace(record, plan, teachers, without=fewer)
            others = [sync for sync in others if sync not in teachers.needed]
        return _implied(record, plan, others, fewer, visits)
    return gone.union(doubtful)


def _complete(record: Record, plan: SyncPlan, resources: Resources, place: Place) -> list[Sync]:
    """Adds syncs until nothing is missing; returns those that may not be needed."""
    steady = True
    while (doubtful := _doubtful(record, plan)) is None:
        completion = Completion(plan, resources, place, steady)
        ObservedTrace(record, plan, completion)
        assert completion.added or steady, "a sync in place does not order what it is for"
        steady = steady and completion.added > 0
    return doubtful


def _doubtful(record: Record, plan: SyncPlan) -> list[Sync] | None:
    """Syncs that may not be needed, as answers are; None if something is missing."""
    teachers = Teachers(len(PIPES))
    try:
        Trace(record, plan, teachers)
    except Incomplete:
        return None
    return [s for s in plan.syncs if s not in teachers.needed and s.scarcity != Scarcity.ANSWER]


def _innermost(block: SyncBlock) -> SyncNode:
    """The loop that `block` is the body of."""
    assert block.owner is not None, (
        "only the function's own block has no loop, and nothing carries over there"
    )
    return block.owner


def _outermost(block: SyncBlock) -> SyncNode:
    """The statement of the kernel's outermost block that contains `block`."""
    node = _innermost(block)
    while node.block.owner is not None:
        node = node.block.owner
    return node
