"""Finds the flags and barriers that a kernel needs, and gives the flags their event ids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from davinci.isa.core import Pipe
from davinci.passes.cce.sync_program import (
    Block,
    Node,
    Program,
    ancestor,
    common_block,
)
from davinci.passes.cce.sync_trace import Missing, State, Sync, Trace

Place = Callable[[Block], Node]


@dataclass
class Solution:
    """Syncs that order a kernel, flags with event ids.

    Attributes:
        merged: how often two flags had to become one, because event ids ran out.
        degraded: how often a flag had to become a barrier of all pipes.
    """

    syncs: list[Sync]
    merged: int = 0
    degraded: int = 0


def solve(program: Program, event_ids: int) -> Solution:
    """Finds the syncs of a kernel.

    Flags for a later iteration are first set before, and last waited for after, the outermost loop,
    so that one iteration of an outer loop need not end before the next begins. Such a flag keeps
    its event id all the time; where ids run out, it is the innermost loop instead.
    """
    solutions: list[Solution] = []
    for place in (_outermost, _innermost):
        solutions.append(_solve(program, event_ids, place))
        if not solutions[-1].merged and not solutions[-1].degraded:
            return solutions[-1]
    return min(solutions, key=lambda solution: (solution.degraded, solution.merged))


def _solve(program: Program, event_ids: int, place: Place) -> Solution:
    """The syncs of a kernel; `place` says around what a flag for a later iteration is set.

    Where the ids of a pair of pipes run out, two flags are merged into one if they lie in the same
    block; if no two do, one becomes a barrier.
    """
    solution = Solution([])
    while True:
        syncs = _without_redundant(program, _complete(program, solution.syncs, place))
        solution.syncs = syncs
        failed = _allocate(program, syncs, event_ids)
        if failed is None:
            return solution
        syncs.remove(failed)
        partner = _partner(failed, syncs)
        if partner is None:
            syncs.append(Sync(Pipe.ALL, Pipe.ALL, failed.block, failed.after, failed.before))
            solution.degraded += 1
        else:
            syncs.remove(partner)
            syncs.append(_merged(failed, partner))
            solution.merged += 1


def _complete(program: Program, syncs: list[Sync], place: Place) -> list[Sync]:
    """Adds syncs until nothing is missing."""
    syncs = list(syncs)
    while True:
        missing: list[Missing] = []
        Trace(program, syncs, missing.append)
        if not missing:
            return syncs
        keys = {sync.key for sync in syncs}
        before = len(keys)
        for sync in (_sync_for(one, place) for one in missing):
            if sync.key not in keys:
                keys.add(sync.key)
                syncs.append(sync)
        assert len(keys) > before, "a sync that is in place does not order what it is for"


def _sync_for(missing: Missing, place: Place) -> Sync:
    """The sync that orders `missing.earlier` before `missing.later`, placed where both meet."""
    src, dst, carrier = missing.src, missing.dst, missing.carrier
    block = carrier.body if carrier else common_block(missing.earlier, missing.later)
    after, before = ancestor(missing.earlier, block), ancestor(missing.later, block)
    around = place(block) if src != dst and after.index > before.index else None
    return Sync(src, dst, block, after, before, around)


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


class _Found(Exception):
    """Ends a trace at the first thing missing."""


def _stop(missing: Missing) -> None:
    raise _Found


def _without_redundant(program: Program, syncs: list[Sync]) -> list[Sync]:
    """Leaves out every sync that the others imply."""
    kept = list(syncs)
    for sync in reversed(syncs):
        rest = [other for other in kept if other is not sync]
        try:
            Trace(program, rest, _stop)
        except _Found:
            continue
        kept = rest
    return kept


def _allocate(program: Program, syncs: list[Sync], event_ids: int) -> Sync | None:
    """Gives every flag an event id; returns the first flag for which there was none left.

    Two flags of the same pipes may share an id if at every set of one, the other is not set, and
    its latest wait is known to the pipe that sets.
    """
    clashes: set[tuple[Sync, Sync]] = set()

    def watch(sync: Sync, state: State, known: int) -> None:
        for other in flags[sync.src, sync.dst]:
            if other is not sync and (other in state.sent or state.waited.get(other, 0) & ~known):
                clashes.update([(sync, other), (other, sync)])

    flags: dict[tuple[Pipe, Pipe], list[Sync]] = {}
    for sync in syncs:
        if not sync.is_barrier:
            flags.setdefault((sync.src, sync.dst), []).append(sync)
    Trace(program, syncs, _stop, watch)
    for group in flags.values():
        for number, sync in enumerate(group):
            taken = {other.event for other in group[:number] if (sync, other) in clashes}
            free = [event for event in range(event_ids) if event not in taken]
            if not free:
                return sync
            sync.event = free[0]
    return None


def _partner(sync: Sync, syncs: list[Sync]) -> Sync | None:
    """The nearest flag of the same kind that can be merged with `sync`."""

    def distance(other: Sync) -> int:
        return abs(other.after.index - sync.after.index) + abs(
            other.before.index - sync.before.index
        )

    def fits(other: Sync) -> bool:
        same = (other.src, other.dst, other.block) == (sync.src, sync.dst, sync.block)
        if not same or (other.around is None) != (sync.around is None):
            return False
        apart = [s for s in (sync, other) if s.after is s.before]
        return not apart and (sync.around is not None or _in_order(_merged(sync, other)))

    return min(filter(fits, syncs), key=distance, default=None)


def _merged(first: Sync, second: Sync) -> Sync:
    """One flag that does the work of two: set after the later, waited for before the earlier."""
    after = max(first.after, second.after, key=lambda node: node.index)
    before = min(first.before, second.before, key=lambda node: node.index)
    return Sync(first.src, first.dst, first.block, after, before, first.around)


def _in_order(sync: Sync) -> bool:
    return sync.after.index < sync.before.index
