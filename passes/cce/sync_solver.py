"""Finds the flags, relays and barriers that a kernel needs, and gives flags their event ids.

A trace asks for a sync where something is missing, of what is missing the latest first: what is
missing after that is implied by no other. In a straight line that is the least there can be. Of
syncs around loops and branches, each that others imply is left out again: one trace tells which are
needed for sure (`sync_teachers`), and the few others are tried.
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci.isa.core import Pipe
from davinci.passes.cce.sync_completion import Completion, Place, Resources
from davinci.passes.cce.sync_events import allocate, give_up
from davinci.passes.cce.sync_memory import Memory
from davinci.passes.cce.sync_plan import Flag, Plan, Scarcity, Sync
from davinci.passes.cce.sync_program import Block, Leaf, Node, Program
from davinci.passes.cce.sync_record import Instance
from davinci.passes.cce.sync_teachers import Teachers
from davinci.passes.cce.sync_trace import PIPES, Trace


@dataclass
class Solution:
    """Syncs that order a kernel, flags with event ids.

    Attributes:
        given_up: how often a flag or relay found no event id.
        degraded: how often such a flag became a barrier of all pipes.
    """

    plan: Plan
    given_up: int = 0
    degraded: int = 0

    @property
    def merged(self) -> int:
        """How many syncs are as they are because event ids are scarce."""
        return sum(sync.scarcity != Scarcity.NONE for sync in self.plan.syncs)


def solve(program: Program, memory: Memory, resources: Resources) -> Solution:
    """Finds the syncs of a kernel.

    Flags for a later iteration are first set before, and last waited for after, the outermost loop,
    so that one iteration of an outer loop need not end before the next begins. Such a flag keeps
    its event id all the time; where ids run out, it is the innermost loop instead. Where flags of
    statements before keep the ids, a pipe is told in front of a statement that they are clear; if
    that does not help, it is left out.
    """
    first = _solve(program, memory, resources, _outermost, True)
    found = [first]
    inside = (s for s in first.plan.syncs if s.around and s.around is not _innermost(s.block))
    if first.given_up and any(inside):
        found.append(_solve(program, memory, resources, _innermost, True))
    if all(solution.degraded for solution in found):
        found.append(_solve(program, memory, resources, _outermost, False))
    return min(found, key=lambda solution: (solution.degraded, solution.given_up))


def _solve(
    program: Program, memory: Memory, resources: Resources, place: Place, answered: bool
) -> Solution:
    """The syncs of a kernel.

    Args:
        place: says around what a flag for a later iteration is set.
        answered: whether pipes are told that flags before a statement are clear.
    """
    solution = Solution(Plan())
    idle = frozenset(resources.relays.values())
    asked: set[object] = set()
    while True:
        plan = solution.plan = _needed(program, memory, solution.plan, resources, place)
        failed = allocate(program, memory, plan, resources.event_ids)
        if not failed:
            return solution
        answers = {answer.key: answer for each in failed if (answer := each.answer)}
        fresh = {key: each for key, each in answers.items() if answered and key not in asked}
        for each in failed:
            if each.sync.key in asked:
                plan.remove(each.sync)
            elif each.sync in plan.syncs and not (each.answer and each.answer.key in fresh):
                solution.given_up += 1
                solution.degraded += give_up(each.sync, plan, idle)
        for answer in fresh.values():
            plan.add(answer)
        asked |= fresh.keys()


def _needed(
    program: Program, memory: Memory, plan: Plan, resources: Resources, place: Place
) -> Plan:
    """Adds syncs until nothing is missing, and leaves out what others imply."""
    _complete(program, memory, plan, resources, place)
    doubtful = _doubtful(program, memory, plan)
    # An answer, or a sync around a loop, may have been added after others that it implies. What
    # there is for want of event ids may imply each other; without all of it they are missed again.
    stale = [
        sync
        for sync in doubtful
        if isinstance(sync.before, Leaf)
        and sync.scarcity != Scarcity.MERGED
        and sync.dst != Pipe.ALL
    ]
    if stale:
        for sync in stale:
            plan.remove(sync)
        _complete(program, memory, plan, resources, place)
        doubtful = _doubtful(program, memory, plan)
    return _without(program, memory, plan, doubtful[::-1])


def _without(program: Program, memory: Memory, plan: Plan, doubtful: list[Sync]) -> Plan:
    """The plan without those of some syncs that others imply: all of them if that will do, else
    what is left of one half, then of the other."""
    if not doubtful:
        return plan
    gone = set(doubtful)
    rest = Plan(sync for sync in plan.syncs if sync not in gone)
    try:
        Trace(program, memory, rest, _Strict())
    except _Missing:
        if len(doubtful) == 1:
            return plan
        half = len(doubtful) // 2
        plan = _without(program, memory, plan, doubtful[:half])
        return _without(program, memory, plan, doubtful[half:])
    return rest


def _doubtful(program: Program, memory: Memory, plan: Plan) -> list[Sync]:
    """Syncs that may not be needed. An answer is, for its event id."""
    teachers = Teachers(len(PIPES))
    Trace(program, memory, plan, _Strict(), teachers)
    return [s for s in plan.syncs if s not in teachers.needed and s.scarcity != Scarcity.ANSWER]


def _complete(
    program: Program, memory: Memory, plan: Plan, resources: Resources, place: Place
) -> None:
    """Adds syncs until nothing is missing."""
    steady = True
    while True:
        completion = Completion(plan, resources, place, steady)
        Trace(program, memory, plan, completion)
        if not completion.asked:
            return
        assert completion.added or steady, "a sync in place does not order what it is for"
        steady = steady and completion.added > 0


class _Missing(Exception):
    """Ends a trace at the first thing missing."""


class _Strict:
    """Observes a trace until something is missing."""

    def missing(self, trace: Trace, earlier: Instance, later: Leaf) -> None:
        raise _Missing

    def unclear(self, trace: Trace, earlier: Instance, pipe: Pipe, node: Node) -> None:
        raise _Missing

    def sets(self, flag: Flag, others: set[Flag]) -> None:
        pass


def _innermost(block: Block) -> Node:
    """The loop that `block` is the body of."""
    assert block.owner is not None
    return block.owner


def _outermost(block: Block) -> Node:
    """The statement of the kernel's outermost block that contains `block`."""
    node = _innermost(block)
    while node.block.owner is not None:
        node = node.block.owner
    return node
