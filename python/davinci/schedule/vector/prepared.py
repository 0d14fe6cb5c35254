"""The programs of a group that schedules of any number of cores are weighed for.

What a group does for a tile depends neither on the sizes of the tile nor on how many cores share
its tiles, which change from one candidate to the next: the programs of the last groups are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from davinci.machine import Machine
from davinci.operators.vector_program import TileStep, Value
from davinci.schedule.graph import Graph, KeyedGraph
from davinci.schedule.vector.bit_views import view_bits
from davinci.schedule.vector.interleaving import interleaved
from davinci.schedule.vector.multiply_adds import fuse_multiply_adds
from davinci.schedule.vector.program_tiles import ProgramTiles
from davinci.schedule.vector.row_parts import beside_each_other
from davinci.schedule.vector.row_siblings import Beside
from davinci.schedule.vector.space import IterationSpace, NoSpace, space_of
from davinci.schedule.vector.tile_program import TileProgram, program_of
from davinci.schedule.vector.turned_space import turned_space

OF_MASKS = {"vconv_f162s8", "vconv_f162s8c", "vconv_s82f16"}
"""Instructions of masks that not every machine has which kernels are compiled for."""

GROUPS_KEPT = 64
"""Groups whose programs are kept: more than the parts of one that are weighed in turn."""


@dataclass(frozen=True)
class PreparedProgram:
    """A program in the order and with the steps that it is scheduled with.

    Attributes:
        alike: a step of each kind and how many there are, which take equally long in every tile.
        tiles: the tiles that it is weighed in.
    """

    space: IterationSpace
    program: TileProgram
    alike: list[tuple[TileStep, int]]
    tiles: ProgramTiles


def prepared(graph: Graph, machine: Machine) -> tuple[PreparedProgram, ...]:
    """The program of a group; where that chooses, also the program that does so by masks of bits,
    if the machine has the conversions to bytes that these take; each in an order in which fewer
    steps wait for the one before, if there is one; and the same with short rows as lanes, if the
    group has any (`turned_space`). They must not be changed.

    Raises:
        NoSpace: the vector unit cannot compute the group.
    """
    return _prepared(graph.keyed(), machine)


def first_prepared(graph: Graph, machine: Machine) -> PreparedProgram:
    """The first of the programs of a group, for those who only ask about how much a group does.

    Raises:
        NoSpace: as of `prepared`.
    """
    return _first(graph.keyed(), machine)


@lru_cache(maxsize=GROUPS_KEPT)
def _first(known: KeyedGraph, machine: Machine) -> PreparedProgram:
    """A group's program in the order of its nodes.

    Raises:
        NoSpace: it has none, or no elements.
    """
    graph = known.graph
    space = space_of(graph)
    if any(axis.size == 0 for axis in space.axes):
        raise NoSpace("a group of nothing")
    return _in_order(graph, space, program_of(graph, space), machine)


@lru_cache(maxsize=GROUPS_KEPT)
def _prepared(known: KeyedGraph, machine: Machine) -> tuple[PreparedProgram, ...]:
    """The programs of a group that are weighed: as written, with masks as numbers, interleaved, and
    on lanes that are turned."""
    graph, first = known.graph, _first(known, machine)
    found = [first, *_with_masks(graph, first, machine)]
    orders = ((each.space, interleaved(each.program)) for each in found)
    more = [_in_order(graph, space, order, machine) for space, order in orders if order is not None]
    turned = _turned(known, machine)
    if turned is not None:
        more += [turned, *_with_masks(graph, turned, machine)]
    return (*found, *more)


def _with_masks(
    graph: Graph, found: PreparedProgram, machine: Machine
) -> Iterator[PreparedProgram]:
    """The program that chooses by masks of bits, of one that chooses otherwise."""
    choices = any(step.name == "vcmpsel" for step in found.program.steps)
    if choices and machine.intrinsics.keys() >= OF_MASKS:
        program = program_of(graph, found.space, masks=True)
        yield _in_order(graph, found.space, program, machine)


def turned_prepared(graph: Graph, machine: Machine) -> PreparedProgram | None:
    """The first program of a group with short rows as lanes; None if it has none.

    Raises:
        NoSpace: as of `prepared`.
    """
    return _turned(graph.keyed(), machine)


@lru_cache(maxsize=GROUPS_KEPT)
def _turned(known: KeyedGraph, machine: Machine) -> PreparedProgram | None:
    """The program on the turned iteration space, None where there is none."""
    graph, space = known.graph, turned_space(_first(known, machine).space)
    if space is None:
        return None
    try:
        return _in_order(graph, space, program_of(graph, space), machine)
    except NoSpace:
        return None


def _in_order(
    graph: Graph, space: IterationSpace, program: TileProgram, machine: Machine
) -> PreparedProgram:
    """A program with steps on parts of rows together, views of bits and fused multiply-adds."""
    beside = beside_each_other(graph, space, program)  # reorders steps
    view_bits(program)
    fuse_multiply_adds(program, machine, frozenset().union(*beside))
    alike = _alike(program, beside)
    tiles = ProgramTiles(graph, space, program, beside, alike, machine)
    return PreparedProgram(space, program, alike, tiles)


def _alike(program: TileProgram, beside: list[Beside]) -> list[tuple[TileStep, int]]:
    """Steps by what their time follows from: the operation, and types, axes and places of its
    operands. One that reads or makes what may lie beside something else, or once for each row of a
    tile, is of a kind of its own."""
    tables = {value for value in program.inputs if program.forms[value] == (program.lane,)}
    apart = tables.union(*beside)

    def kind(value: Value) -> tuple[int, int | None]:
        return program.kinds[value], value.number if value in apart else None

    found: dict[object, TileStep] = {}
    counts = Counter[object]()
    for step in program.steps:
        values = (*map(kind, step.sources), kind(step.result))
        one = step.result.number if step.result in program.together else None
        key = (step.name, values, tuple(sorted(step.attributes.items())), one)
        found.setdefault(key, step)
        counts[key] += 1
    return [(step, counts[key]) for key, step in found.items()]
