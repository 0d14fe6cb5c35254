"""Rows of a table by index: the scalar unit reads the indices, copies move the rows.

    for each tile of indices of this block:
      for each index: load it, clamp it to the table, copy the row GM -> UB
      copy the rows out

Rows shorter than a block are moved by the scalar unit too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from davinci.machine import Machine
from davinci.schedule.graph import Graph, Scalar
from davinci.schedule.moves.portions import LEAST_BYTES, Portions, cut
from davinci.schedule.moves.transfers import MOVABLE, Costs, blocks_of_run
from davinci.schedule.vector.space import NoSpace
from davinci.units import ceil_div


@dataclass(frozen=True)
class GatherSchedule:
    """How rows are gathered.

    Attributes:
        entries: rows of the table.
        length: elements of a row.
        count: indices.
        pieces: start and size of what of a row is copied; none if the scalar unit moves it.
        portions: of the indices.
        cores: blocks of the launch.
        cycles: estimated.
    """

    entries: int
    length: int
    count: int
    pieces: tuple[tuple[int, int], ...]
    portions: Portions
    cores: int
    cycles: int

    @property
    def scalar(self) -> bool:
        """Whether the scalar unit moves the rows."""
        return not self.pieces

    def __str__(self) -> str:
        how = "by the scalar unit" if self.scalar else f"{self.portions.largest} a tile"
        return f"rows of {self.length}, {how}; {self.cores} cores"


@dataclass(frozen=True)
class GatherPlan:
    """A group that gathers rows, and how."""

    graph: Graph
    schedule: GatherSchedule
    machine: Machine


def is_gather(graph: Graph) -> bool:
    return any(node.name == "gather" for node in graph.nodes)


def gather_plan(graph: Graph, machine: Machine, cores: int) -> GatherPlan:
    """The schedule of a gather.

    Raises:
        NoSpace: it is not alone, or its table is no array in GM.
    """
    node = graph.nodes[0]
    operands = [v for v in node.operands if not isinstance(v, Scalar)]
    if len(graph.nodes) > 1 or operands != list(node.operands):
        raise NoSpace("a gather is a kernel of its own")
    table, indices = (graph.arrays[value] for value in operands)
    entries, *row = table.shape
    length, (count,), size = math.prod(row), indices.shape, table.bytes_each
    block = machine.vector.block_bytes // size
    room = machine.buffers.UB.bytes // size
    costs = Costs(machine)
    pieces: tuple[tuple[int, int], ...] = ()
    if length >= block and length + block <= room and table.element in MOVABLE:
        pieces = tuple(blocks_of_run(length, block))
    if not pieces:
        portions = Portions(count, 1, count, 0)
        each = costs.scalars(length) + machine.scalar.gm_access_cycles
        cycles = each * ceil_div(count, cores)
    else:
        width = sum(wide for _, wide in pieces)
        portions = cut(count, 1, 1, room // width, ceil_div(LEAST_BYTES // size, width), cores)
        rows = portions.largest
        fetched = max(machine.mte2.issue_cycles * len(pieces), machine.scalar.gm_access_cycles)
        moved = costs.read(rows, width * size) + costs.write(rows, width * size)
        each = costs.starts + moved + rows * fetched
        cycles = each * ceil_div(portions.units, cores)
    units = max(1, portions.units)
    schedule = GatherSchedule(
        entries, length, count, pieces, portions, min(units, cores), int(cycles)
    )
    return GatherPlan(graph, schedule, machine)
