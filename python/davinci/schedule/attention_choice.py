"""The schedule of attention: candidates that fit the memories, the one of fewest cycles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from davinci.machine import Machine
from davinci.schedule.attention import Attention, AttentionSchedule
from davinci.schedule.attention_cost import estimate, footprint
from davinci.schedule.product_choice import even_cuts
from davinci.schedule.space import NoSpace
from davinci.units import ceil_div

MOST_ROWS = 8
"""Fractals of rows of a unit: more brings nothing."""

MOST_TILES = 24
"""Tiles of keys in a straight line."""

MOST_KEYS = 16
"""Fractals of keys of a tile."""

Pair = tuple[int, int]

BUFFERS: tuple[tuple[Pair, Pair], ...] = (
    ((2, 2), (2, 2)),
    ((2, 2), (1, 2)),
    ((2, 2), (1, 1)),
    ((1, 1), (1, 1)),
)
"""Buffers of L0A and L0B, the best first."""


def choose(attention: Attention, machine: Machine, cores: int) -> AttentionSchedule:
    """The schedule of fewest estimated cycles on that many cores.

    Raises:
        NoSpace: none fits the memories.
    """
    best: tuple[float, AttentionSchedule] | None = None
    for schedule in candidates(attention, machine, cores):
        cycles = estimate(attention, schedule, machine, cores)
        if best is None or cycles < best[0]:
            best = cycles, schedule
    if best is None:
        raise NoSpace("attention that no schedule fits")
    return best[1]


def candidates(attention: Attention, machine: Machine, cores: int) -> Iterator[AttentionSchedule]:
    """Schedules that may be good and fit the memories."""
    sizes = attention.fractals
    for rows in even_cuts(sizes.rows, min(MOST_ROWS, sizes.rows)):
        units = attention.batch * ceil_div(sizes.rows, rows)
        for tile in even_cuts(sizes.keys, min(MOST_KEYS, sizes.keys)):
            tiles = ceil_div(sizes.keys, tile)
            line = min(ceil_div(units, cores), max(1, MOST_TILES // tiles))
            pieces = min(4, tiles * line)
            start = AttentionSchedule(
                rows, line, sizes.keys, tile, 2, 8, (pieces, pieces), 1, 1, 1, min(2, line)
            )
            if (held := on_the_cube(attention, start, machine)) is not None:
                yield from in_ub(attention, held, machine)
                break


def on_the_cube(
    attention: Attention, schedule: AttentionSchedule, machine: Machine
) -> AttentionSchedule | None:
    """With as many buffers in L1, L0A, L0B and L0C as there is room for; None if there is none for
    one of each."""
    tiles = ceil_div(attention.fractals.keys, schedule.tile) * schedule.units
    for l0a, l0b in BUFFERS:
        for l0c in range(min(6, tiles), 0, -1):
            for sums in {schedule.sums, 1}:
                found = replace(schedule, l0a=l0a, l0b=l0b, l0c=l0c, sums=sums)
                if footprint(attention, found, machine).excess(machine) in ("", "UB"):
                    return found
    return None


def in_ub(
    attention: Attention, schedule: AttentionSchedule, machine: Machine
) -> Iterator[AttentionSchedule]:
    """Ways to share out UB that fit it."""
    for scores in {1, min(2, schedule.units)}:
        for slices in (2, 4, 8, 16):
            for weights in (3, 2, 1):
                for feed in (8, 4, 2, 1):
                    found = replace(
                        schedule, scores=scores, slices=slices, weights=weights, feed=feed
                    )
                    if not footprint(attention, found, machine).excess(machine):
                        yield found
                        break
