"""How the first keys of rows are found, whichever way is estimated to take least.

    rows      a network sorts whole rows
    parts     rows are cut in parts, whose first keys lie behind each other and are rows themselves
    groups    the best key of each group of neighbours; the first of these, and of their groups
              all keys, which are rows themselves
    extremes  the first key of each row, the first of those that are left, and so on

In each group that has one of the first k keys of a row, the best key comes no later than that; so
with neighbours of which the first comes first where keys are equal, all of them are in the first k
groups. Groups are read once, and only their best keys and so many of them are sorted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from davinci.machine import Machine, prices
from davinci.operators.sorting import MOST_NUMBER, SIGNED
from davinci.operators.tensors import Tensor
from davinci.schedule.moves.blocks import gather_cycles
from davinci.schedule.sorts.keys import Keys
from davinci.schedule.sorts.places import LANES
from davinci.schedule.sorts.schedule import WORD_BYTES, rows_cycles
from davinci.units import ceil_div

ROWS, PARTS, GROUPS, EXTREMES = "rows", "parts", "groups", "extremes"

LEAST_PART, MOST_PART = 1 << 10, 1 << 12
"""Keys of a part, besides twice as many as are wanted of it."""

MOST_GROUP = 1 << 9

RANK_STEPS = 12
"""Instructions for each key that make its bits an integer in the order of keys."""


EXTREME_STEPS, EXTREME_CHOICES = 112, 6
"""Instructions that find the first key of some rows and leave it out, besides those for each
repeat: its elements are compared one repeat at a time, and chosen."""

MOST_EXTREMES = 16
"""Keys of a row that are looked for one after the other at most, each by code of its own."""


@dataclass(frozen=True)
class FirstKeys:
    """First keys of rows that are looked for.

    Attributes:
        rows, columns: of the matrix of keys.
        kept: keys of a row that are wanted.
        placed: whether their numbers are their places; else they have others, or none.
    """

    rows: int
    columns: int
    kept: int
    placed: bool


@dataclass(frozen=True)
class SortWay:
    """One of the ways.

    Attributes:
        size: keys of a part, or of a group.
        cycles: estimated, with those of launches.
    """

    name: str
    size: int
    cycles: float


def numbers_below(columns: int) -> int:
    """What the numbers of keys are less than that are places, and of what fills up rows."""
    return columns + max(MOST_GROUP, ceil_div(columns, LEAST_PART))


@lru_cache(1024)
def way_of(wanted: FirstKeys, keys: Keys, machine: Machine) -> SortWay | None:
    """The way that takes least; None if there is none."""
    return min(_ways(wanted, keys, machine), key=lambda way: way.cycles, default=None)


def _ways(wanted: FirstKeys, keys: Keys, machine: Machine) -> Iterator[SortWay]:
    """The ways to find the first keys of each row, with cycles of their launches: one extreme after
    the other, sorting whole rows, and parts or groups of several sizes."""
    if wanted.kept <= MOST_EXTREMES:
        yield SortWay(EXTREMES, 1, _one_by_one(wanted, machine) + machine.launch_cycles)
    if keys.below is not None and keys.below > MOST_NUMBER:
        return
    own = replace(keys, below=wanted.columns) if wanted.placed else keys
    shape = wanted.rows, wanted.columns, wanted.kept
    whole = rows_cycles(*shape, own, machine, machine.cores, wanted.placed)
    if whole is not None:
        launches = 1 if own.below is None else 2  # the other takes keys and numbers apart
        yield SortWay(ROWS, wanted.columns, whole + launches * machine.launch_cycles)
    size = max(LEAST_PART, 1 << (2 * wanted.kept - 1).bit_length())
    while size <= MOST_PART and size < wanted.columns:
        yield from _in_parts(wanted, size, keys, machine)
        size *= 2
    size = LANES
    while wanted.placed and size <= MOST_GROUP and 2 * wanted.kept * size <= wanted.columns:
        yield from _in_groups(wanted, size, keys, machine)
        size *= 2


def _in_parts(wanted: FirstKeys, size: int, keys: Keys, machine: Machine) -> Iterator[SortWay]:
    """Cuts rows into parts of about `size` keys, sorts each, and finds the wanted among the first
    ones of all parts."""
    count = ceil_div(wanted.columns, size)
    width = ceil_div(wanted.columns, count)
    kept = min(wanted.kept, width)
    parts = rows_cycles(wanted.rows * count, width, kept, keys, machine, machine.cores)
    left = FirstKeys(wanted.rows, count * kept, wanted.kept, False)
    rest = way_of(left, keys, machine)
    if parts is not None and rest is not None:
        yield SortWay(PARTS, size, parts + rest.cycles + machine.launch_cycles)


def _in_groups(wanted: FirstKeys, size: int, keys: Keys, machine: Machine) -> Iterator[SortWay]:
    """Takes the best key of each group of `size` keys; the wanted keys are in the groups of the
    best of these."""
    count = ceil_div(wanted.columns, size)
    best = FirstKeys(wanted.rows, count, wanted.kept, True)
    chosen = way_of(best, Keys(SIGNED, keys.descending, numbers_below(count)), machine)
    left = FirstKeys(wanted.rows, wanted.kept * size, wanted.kept, False)
    rest = way_of(left, keys, machine)
    if chosen is None or rest is None:
        return
    table = Tensor((wanted.rows * count, size), "f32")
    taken = gather_cycles(table, wanted.rows * wanted.kept, machine, machine.cores)
    cycles = _best_keys(wanted, machine) + taken + 2 * machine.launch_cycles
    yield SortWay(GROUPS, size, cycles + chosen.cycles + rest.cycles)


def _one_by_one(wanted: FirstKeys, machine: Machine) -> float:
    """Cycles in which cores look so many times at all keys of their rows."""
    cores = min(wanted.rows, machine.cores)
    count = ceil_div(wanted.rows, cores) * wanted.columns
    read = prices.moving(machine, cores, True, count * WORD_BYTES)
    repeats = count * WORD_BYTES / machine.vector.repeat_bytes
    instructions = EXTREME_STEPS + EXTREME_CHOICES * repeats
    each = prices.vector(machine, "vmax", "s32", instructions, instructions)
    return read + wanted.kept * each + prices.ends(machine)


def _best_keys(wanted: FirstKeys, machine: Machine) -> float:
    """Cycles in which each key is read, ranked and compared with others of its group."""
    count = wanted.rows * wanted.columns / machine.cores
    read = prices.moving(machine, machine.cores, True, count * WORD_BYTES)
    repeats = RANK_STEPS * count * WORD_BYTES / machine.vector.repeat_bytes
    return max(read, prices.vector(machine, "vmax", "s32", repeats)) + prices.ends(machine)
