"""Which of several plans of launches is taken, how others compare with it, and what @main says of
the arena in it."""

from __future__ import annotations

from collections.abc import Sequence

from davinci.mlir import Op
from davinci.passes import builder
from davinci.passes.ascend.host_function import Storage
from davinci.passes.ascend.memory_limit import Attempt, place
from davinci.passes.ascend.staging import Staged, StageSearch
from davinci.passes.pipeline.plans import BALANCED, SEQUENTIAL
from davinci.planning import Plan

PlanPoint = tuple[str, int, int, int]
"""Name of a plan, launches, bytes of the arena, and estimated cycles more than those of the plan
that is taken."""


def chosen(
    plans: list[Staged], name: str, storages: list[Storage], line_bytes: int
) -> tuple[Staged, Plan]:
    """The best of several orders of launches, and the offsets of storages in it.

    Args:
        plans: orders of the launches, with their cycles.
        name: of the option `plan`: `balanced` takes the fewest cycles x bytes of the arena, any
            other one the fewest bytes, and of equal ones the fewest cycles.
        storages: what lies in the arena.
        line_bytes: what offsets are multiples of.
    """
    placed = [place(staged, storages, line_bytes) for staged in plans]

    def weighed(number: int) -> tuple[float, float]:
        cycles, height = plans[number].cycles, placed[number].height
        return (cycles * height if name == BALANCED else height), cycles

    best = min(range(len(plans)), key=weighed)
    plans[best].note_lifetimes()
    return plans[best], placed[best]


def arena_bytes(storages: Sequence[Storage], placed: Plan) -> int:
    """Bytes of the memory that storages take at planned offsets."""
    ends = (o + storage.size for o, storage in zip(placed.offsets, storages, strict=True))
    return max(ends, default=0)


def compared(staging: StageSearch, name: str, taken: Attempt, line_bytes: int) -> list[PlanPoint]:
    """Plans from one launch after the other to layers that share launches, and last the one that is
    taken; none where that is one launch after the other in any case.

    Args:
        name: of the plan that is taken.
        taken: its stages and its arena. Lifetimes of storages are not those in it afterwards.
    """
    if name == SEQUENTIAL:
        return []
    found = [
        (other, staged, arena_bytes(taken.arena, place(staged, taken.arena, line_bytes)))
        for other, staged in staging.layered()
        if other != name
    ]
    if not found:
        return []
    found.append((name, taken.staged, arena_bytes(taken.arena, taken.placed)))
    return [
        (each, len(staged.stages), size, round(staged.cycles - taken.staged.cycles))
        for each, staged, size in found
    ]


def mark_arena(main: Op, staged: Staged, arena: Sequence[Storage], placed: Plan) -> None:
    """Gives @main `ascend.arena`, `ascend.arena_buffers` and, where the host brings weights,
    `ascend.arena_weights`; see `ascend-bufferize`."""
    buffers = zip(arena, placed.problem.buffers, strict=True)
    pieces = [
        (number, storage, piece)
        for number, (storage, buffer) in enumerate(buffers)
        for piece in buffer.parts
    ]
    places = [
        n
        for _, storage, piece in pieces
        for n in (
            storage.offset + piece.begin,
            piece.end - piece.begin,
            *staged.calls_of(storage, piece),
        )
    ]
    main.attributes["ascend.arena"] = builder.as_attribute(places)
    shared = [[number, *staged.later_writers(s, piece)] for number, s, piece in pieces]
    main.attributes["ascend.arena_buffers"] = builder.as_attribute(shared)
    if weights := [number for number, storage in enumerate(arena) if storage.streamed]:
        main.attributes["ascend.arena_weights"] = builder.as_attribute(weights)
