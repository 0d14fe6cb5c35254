"""The schedule of attention: candidates that fit the memories, the one of fewest cycles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product

from davinci.machine import Machine
from davinci.schedule.attention.attention import NONE_FITS, Attention, AttentionSchedule
from davinci.schedule.attention.cost import estimate, takes_windows
from davinci.schedule.attention.footprint import holds_factors, sum_bytes, ub_bytes
from davinci.schedule.attention.split import SplitAttentionSchedule
from davinci.schedule.attention.split_cost import estimate as split_cycles
from davinci.schedule.attention.split_cost import ranked as ranked_split
from davinci.schedule.attention.split_cost import require_some
from davinci.schedule.vector.space import NoSpace
from davinci.units import ceil_div, even_cuts

MOST_ROWS = 8
"""Fractals of rows of a unit: more brings nothing."""

MOST_TILES, MOST_WRITTEN, MOST_FORMS = 24, 72, 4
"""Tiles of keys in a straight line, and in lines of all forms together; units of all forms where
keys come in blocks."""

MOST_KEYS = 16
"""Fractals of keys of a tile."""

TILES = 8
"""Sizes of tiles that are tried, the largest first."""

Pair = tuple[int, int]

FEEDS = (8, 4, 3, 2, 1)
"""Fractals along stored rows that come at once, the best first and those of fewest bytes last."""

BUFFERS: tuple[tuple[Pair, Pair], ...] = (
    ((2, 2), (2, 2)),
    ((1, 2), (2, 2)),
    ((2, 2), (1, 2)),
    ((1, 2), (1, 2)),
    ((2, 2), (1, 1)),
    ((1, 1), (1, 1)),
)
"""Buffers of L0A and L0B, the best first."""


CHOSEN_KEPT = 256
"""Kernels on numbers of cores of which the best schedules are kept: passes ask for them again."""

ALIKE = 6
"""How many of the best schedules are kept; fewer cores are weighed with tiles of these sizes."""


@dataclass(frozen=True)
class _Written:
    """Attention, known by its text: it holds attributes of steps, which have no hash."""

    text: str
    attention: Attention = field(compare=False, repr=False)


Schedule = AttentionSchedule | SplitAttentionSchedule
"""A schedule of attention for cores with a cube and a vector unit, or for blocks of a cube core and
its vector cores."""


def cycles_and_units(
    attention: Attention, schedule: Schedule, machine: Machine, cores: int
) -> tuple[float, int]:
    """Estimated cycles of a schedule on that many cores, and how many have work."""
    if isinstance(schedule, SplitAttentionSchedule):
        units = schedule.units(attention)
        return split_cycles(attention, schedule, machine, cores), min(cores, units)
    lines = sum(line.count for line in schedule.lines(attention))
    return estimate(attention, schedule, machine, cores), min(cores, lines)


def choose(attention: Attention, machine: Machine, cores: int) -> Schedule:
    """The schedule of fewest estimated cycles on that many cores.

    Raises:
        NoSpace: none fits the memories.
    """
    return _best(_Written(repr(attention), attention), machine, cores, None)[0]


def quickly(attention: Attention, machine: Machine, cores: int, most_cores: int) -> Schedule:
    """About what `choose` finds on that many cores: the best of those schedules whose tiles are as
    large as in one of the best on `most_cores`, and whose units are no smaller.

    Raises:
        NoSpace: none fits the memories.
    """
    if machine.split:
        return choose(attention, machine, cores)
    written = _Written(repr(attention), attention)
    like = _best(written, machine, most_cores, None)
    if cores == most_cores:
        return like[0]
    tiles: dict[int, int] = {}
    for schedule in like:
        assert isinstance(schedule, AttentionSchedule), "a core of a machine has both units"
        tiles[schedule.tile] = min(schedule.rows, tiles.get(schedule.tile, schedule.rows))
    return _best(written, machine, cores, frozenset(tiles.items()))[0]


@lru_cache(maxsize=CHOSEN_KEPT)
def _best(
    written: _Written, machine: Machine, cores: int, tiles: Set[Pair] | None
) -> tuple[Schedule, ...]:
    """The schedules of fewest estimated cycles, the best first.

    Raises:
        NoSpace: none fits the memories.
    """
    found = ranked(written.attention, machine, cores, tiles)
    if not found:
        raise NoSpace(NONE_FITS)
    return tuple(found[:ALIKE])


def ranked(
    attention: Attention, machine: Machine, cores: int, tiles: Set[Pair] | None = None
) -> list[AttentionSchedule] | list[SplitAttentionSchedule]:
    """All schedules that may be good, the one that is taken where nobody chooses first.

    Args:
        tiles: fractals of keys of a tile, each with the fewest rows of a unit; all others are
            left out.
    """
    if machine.split:
        return ranked_split(attention, machine, cores)
    require_no_band(attention)
    found = dict.fromkeys(candidates(attention, machine, cores, tiles))
    return sorted(found, key=lambda made: estimate(attention, made, machine, cores))


def require_candidate(
    attention: Attention, schedule: Schedule, machine: Machine, cores: int
) -> None:
    """Fails unless a schedule that was given is one of those that are weighed.

    Raises:
        NoSpace: it is not.
    """
    known: Iterable[Schedule] = candidates(attention, machine, cores)
    if machine.split:
        known = ranked_split(attention, machine, cores)
    if schedule not in known:
        raise NoSpace(f"a schedule that is none of those of this attention on {cores} cores")


def require_schedule(attention: Attention, machine: Machine, cores: int) -> None:
    """Fails unless a schedule fits the memories."""
    if machine.split:
        require_some(attention, machine)
        return
    require_no_band(attention)
    if next(candidates(attention, machine, cores), None) is None:
        raise NoSpace(NONE_FITS)


def require_no_band(attention: Attention) -> None:
    """Fails if a mask is ends of what rows keep, which cores with both units have no kernel for."""
    if attention.band is not None:
        raise NoSpace("a band of scores on cores with a cube and a vector unit")


@dataclass(frozen=True)
class AttentionWay:
    """Fields of a schedule that nothing else follows from."""

    twice: bool
    windows: bool


def ways(attention: Attention, machine: Machine) -> list[AttentionWay]:
    """Those that there are for some attention."""
    # A column beside K hides by a finite number, which empties no row.
    twice = (False, True) if attention.chain.differences and not attention.guarded else (False,)
    windows = (True, False) if takes_windows(attention, machine) else (False,)
    return [AttentionWay(*each) for each in product(twice, windows)]


def candidates(
    attention: Attention, machine: Machine, cores: int, tiles: Set[Pair] | None = None
) -> Iterator[AttentionSchedule]:
    """Schedules that may be good and fit the memories; `tiles` as of `ranked`."""
    sizes, least = attention.fractals, None if tiles is None else dict(tiles)
    for rows in even_cuts(sizes.rows, min(MOST_ROWS, sizes.rows)):
        for tile in even_cuts(sizes.keys, min(MOST_KEYS, sizes.keys))[:TILES]:
            if least is not None and rows < least.get(tile, math.inf):
                continue
            for way in ways(attention, machine):
                for buffers in BUFFERS:
                    found = list(with_tiles(attention, rows, tile, buffers, way, machine, cores))
                    yield from found
                    if found:
                        break


def with_tiles(
    attention: Attention,
    rows: int,
    tile: int,
    buffers: tuple[Pair, Pair],
    way: AttentionWay,
    machine: Machine,
    cores: int,
) -> Iterator[AttentionSchedule]:
    """Schedules of units and tiles of one size: all keys at once, or in blocks of as many tiles as
    L0C holds, a unit a line."""
    sizes = attention.fractals
    tiles = ceil_div(sizes.keys, tile)
    line = line_of(attention, rows, max(1, MOST_TILES // tiles), cores)
    units = ceil_div(line, rows)
    if ceil_div(line, units) != rows:
        return  # Smaller units do as well.
    (l0a, l0b), twice = buffers, way.twice
    whole = AttentionSchedule(rows, units, line, sizes.keys, tile, 8, (1, 1), 1, 1, 1, 1, l0a, l0b)
    whole = replace(whole, twice=twice, windows=way.windows)
    whole = few_forms(attention, whole, MOST_WRITTEN // tiles)
    units = max(len(each.parts) for each in whole.lines(attention))
    whole = replace(whole, units=units)
    if tiles * units <= 2 * MOST_TILES:
        held = min(2 * tiles, tiles * units)
        start = replace(whole, pieces=(held, min(2, units)), sums=min(2, units))
        # Scores that come twice stay until all maxima are known.
        ahead = range(min(tiles * units, tiles + 4 if twice else 6), twice * (tiles - 1), -1)
        yield from in_ub(attention, start, ahead, machine)
        if not (twice or attention.chain.extras) and attention.chain.itemsize == 2:
            matrices = max(line.matrices for line in whole.lines(attention))
            start = replace(start, pieces=(tiles * matrices, matrices), l0b=(units, l0b[1]))
            start = replace(start, together=True, sums=units)
            yield from in_ub(attention, start, [tiles], machine)
    if twice and attention.chain.extras:
        return  # Whether all keys are hidden is known of all keys only.
    for count in range(min(8, tiles - 1), 0, -1):
        # Blocks of even size; what is left over is less than a block.
        block = ceil_div(keys := sizes.keys, ceil_div(tiles, count))
        block = ceil_div(block, tile) * tile
        if block < keys:
            start = replace(whole, units=1, line=line_of(attention, rows, 1, cores))
            start = few_forms(attention, start, MOST_FORMS)
            start = replace(start, block=block, pieces=(2 * (block // tile), 1))
            yield from in_ub(attention, start, [block // tile], machine)


def line_of(attention: Attention, rows: int, most: int, cores: int) -> int:
    """Rows of a line of at most `most` units, so that all cores have as many lines."""
    each = ceil_div(attention.batch * attention.fractals.rows, cores)
    return ceil_div(each, ceil_div(each, rows * most))


def few_forms(attention: Attention, schedule: AttentionSchedule, most: int) -> AttentionSchedule:
    """A schedule whose lines of all forms together have few units."""
    written = sum(len(line.parts) for line in schedule.lines(attention))
    return schedule if written <= most else replace(schedule, mixed=False)


def in_ub(
    attention: Attention, schedule: AttentionSchedule, l0c: Iterable[int], machine: Machine
) -> Iterator[AttentionSchedule]:
    """With as many tiles of scores in L0C as fit, ways to share out UB; none if other memories are
    too small."""
    ways = [schedule.sums] if schedule.together else sorted({schedule.sums, 1}, reverse=True)
    tiles = list(l0c)
    if not tiles or not holds_factors(attention, schedule, machine):
        return
    tried = (replace(schedule, l0c=count, sums=sums) for sums in ways for count in tiles)
    l0c_bytes, room = (machine.buffer(name).bytes for name in ("L0C", "UB"))
    held = next((found for found in tried if sum_bytes(attention, found) <= l0c_bytes), None)
    if held is None:
        return
    buffers = (3, 2, 1) if schedule.itemsize(attention) > 2 else (1,)
    for scores in {1, min(2, schedule.units)}:
        for weights in buffers:
            made = replace(held, scores=scores, weights=weights, feed=FEEDS[0])
            if ub_bytes(attention, made, machine) <= room:
                yield made
                continue
            fewer = [replace(made, feed=feed) for feed in FEEDS[1:]]
            if ub_bytes(attention, fewer[-1], machine) <= room:
                yield next(each for each in fewer if ub_bytes(attention, each, machine) <= room)
