"""Finds the flags and barriers that a kernel needs, and gives the flags their event ids."""

from __future__ import annotations

from davinci.isa.core import Pipe
from davinci.passes.cce.sync_program import (
    Block,
    Node,
    Program,
    ancestor,
    common_block,
)
from davinci.passes.cce.sync_trace import Missing, State, Sync, Trace


def solve(program: Program, event_ids: int) -> tuple[list[Sync], int]:
    """Returns the syncs, flags with event ids, and how many flags became a barrier of all pipes.

    Where the ids of a pair of pipes run out, two flags are merged into one if they lie in the same
    block; if no two do, one becomes a barrier.
    """
    syncs: list[Sync] = []
    degraded = 0
    while True:
        syncs = _without_redundant(program, _complete(program, syncs))
        failed = _allocate(program, syncs, event_ids)
        if failed is None:
            return syncs, degraded
        syncs.remove(failed)
        partner = _partner(failed, syncs)
        if partner is None:
            syncs.append(Sync(Pipe.ALL, Pipe.ALL, failed.block, failed.after, failed.before))
            degraded += 1
        else:
            syncs.remove(partner)
            syncs.append(_merged(failed, partner))


def _complete(program: Program, syncs: list[Sync]) -> list[Sync]:
    """Adds syncs until nothing is missing."""
    syncs = list(syncs)
    while True:
        missing: list[Missing] = []
        Trace(program, syncs, missing.append)
        if not missing:
            return syncs
        keys = {sync.key for sync in syncs}
        before = len(keys)
        for sync in map(_sync_for, missing):
            if sync.key not in keys:
                keys.add(sync.key)
                syncs.append(sync)
        assert len(keys) > before, "a sync that is in place does not order what it is for"


def _sync_for(missing: Missing) -> Sync:
    """The sync that orders `missing.earlier` before `missing.later`, placed where both meet."""
    src, dst, carrier = missing.src, missing.dst, missing.carrier
    block = carrier.body if carrier else common_block(missing.earlier, missing.later)
    after, before = ancestor(missing.earlier, block), ancestor(missing.later, block)
    around = None
    if src != dst and after.index > before.index:
        around = _outermost(block)
    return Sync(src, dst, block, after, before, around)


def _outermost(block: Block) -> Node:
    """The statement of the kernel's outermost block that contains `block`."""
    assert block.owner is not None
    node: Node = block.owner
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
