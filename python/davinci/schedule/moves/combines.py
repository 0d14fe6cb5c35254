"""Updates that are combined with blocks of an array at indices in GM: a scatter that adds,
multiplies, or takes the greater or lesser number.

The array is rows, the updates are *lines*, each combined with a part of one row, at a column that
is known.

    array [50, 32], updates [200, 1, 32]       50 rows of 32, 200 lines of 32
    array [2000], updates [1600, 1]            2000 rows of 1, 1600 lines of 1
    array [4, 9, 8], updates [5, 4, 1, 3]      36 rows of 8, 20 lines of 3

added     the cores share the lines; copies that add to GM, in any order
windows   the same for lines shorter than 32 bytes: the scalar unit puts each into a block of 32
          bytes that is added as a whole; beside the line are numbers that change nothing (-0.0)
owned     the cores share the rows, which are held in UB; each goes through all lines, in order, and
          combines its own, by the vector unit or, short ones, by the scalar unit
scalars   one core, element by element in GM

The cheapest way that the machine has for the element type and the combination is taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from davinci.machine import Machine, prices
from davinci.operators.reduce import REDUCTIONS
from davinci.schedule.graph import Graph
from davinci.schedule.moves.blocks import COMBINE, BlockMove, move_of, node_of
from davinci.schedule.moves.transfers import TransferCosts, blocks_of_run
from davinci.units import ceil_div

ADDED, WINDOWS, OWNED, OWNED_BY_SCALARS, SCALARS = (
    "added in memory",
    "added in memory, in blocks",
    "in rows that a core owns",
    "in rows that a core owns, by the scalar unit",
    "by the scalar unit",
)

LANES = {"f32": "f32", "i32": "s32"}
"""The type of an element in the names of instructions, if they know it."""

STEPS = 12
"""Instructions of the scalar unit, about, by which it finds the place of a line."""

LEAST_PORTION = 64
"""Elements below which a line is not cut to occupy more cores."""


@dataclass(frozen=True)
class Combine:
    """What is combined with what.

    Attributes:
        move: the blocks.
        by: how, see `davinci.operators.blocks`.
    """

    move: BlockMove
    by: str

    @cached_property
    def single(self) -> bool:
        """Whether a line takes one position of the dimension that rows are cut along."""
        return self.move.block[self.move.split] == 1

    @property
    def width(self) -> int:
        """Elements of a row of the array."""
        return self.move.inner if self.single else self.move.line

    @property
    def rows(self) -> int:
        return self.move.array.count // self.width

    @property
    def column(self) -> int:
        """Where in its row a line begins."""
        move = self.move
        return 0 if self.single else move.starts[move.split] * move.inner

    @property
    def lines(self) -> int:
        return self.move.count * math.prod(self.move.outer)

    @property
    def run(self) -> int:
        """Elements of a line."""
        return self.move.run

    @property
    def aligned(self) -> bool:
        """Whether no line crosses the border of a block of 8 elements."""
        run = self.run
        return run in (1, 2, 4) and self.width % run == 0 and self.column % run == 0


@dataclass(frozen=True)
class CombineSchedule:
    """How lines are combined with rows.

    Attributes:
        way: `ADDED`, `WINDOWS`, `OWNED`, `OWNED_BY_SCALARS` or `SCALARS`.
        tile: lines that are in UB together.
        rows: of the array that a core owns at a time.
        portion: elements of a line that a piece of work takes; the last one takes the rest too.
        cores: blocks of the launch.
        cycles: estimated.
    """

    combine: Combine
    way: str
    tile: int
    rows: int
    portion: int
    cores: int
    cycles: int

    @property
    def scalar(self) -> bool:
        """Whether the scalar unit moves all elements."""
        return self.way == SCALARS

    def __str__(self) -> str:
        held = f", {self.rows} of {self.combine.rows} rows" if "owns" in self.way else ""
        return f"lines of {self.combine.run}, {self.way}, {self.tile} a tile{held}"


@dataclass(frozen=True)
class CombinePlan:
    """A group that combines blocks, and how."""

    graph: Graph
    schedule: CombineSchedule
    machine: Machine


def combines_blocks(graph: Graph) -> bool:
    """Whether a group combines updates with blocks of an array at indices."""
    return any(node.name == COMBINE for node in graph.nodes)


def combine_plan(graph: Graph, machine: Machine, cores: int) -> CombinePlan:
    """The schedule of a group that combines blocks.

    Raises:
        NoSpace: it holds something else too, or an operand is no array in GM.
    """
    node = node_of(graph)
    combine = Combine(move_of(node, graph), str(node.attributes["by"]))
    wide = graph.arrays[node.values[2]].bytes_each * len(combine.move.axes)
    found = _Candidates(combine, wide, machine, cores)
    return CombinePlan(graph, min(found.all(), key=lambda s: s.cycles), machine)


def portions_of(run: int, size: int) -> list[tuple[int, int, int]]:
    """(first, count, size) of the portions of a line: equal ones, and one that takes the rest. None
    overlap, unlike those of `davinci.schedule.moves.portions`: what is combined twice is wrong."""
    count = max(1, run // size)
    last = run - (count - 1) * size
    if last == size:
        return [(0, count, size)]
    equal = [(0, count - 1, size)] if count > 1 else []
    return [*equal, ((count - 1) * size, 1, last)]


class _Candidates:
    """The schedules that there are.

    Args:
        wide: bytes of the indices of a block.
    """

    def __init__(self, combine: Combine, wide: int, machine: Machine, cores: int) -> None:
        self.combine, self.wide, self.machine, self.cores = combine, wide, machine, cores
        self.size = combine.move.array.bytes_each
        self.block = machine.vector.block_bytes // self.size
        self.room = machine.buffers.UB.bytes
        self.costs = TransferCosts(machine, cores)
        columns = len(combine.move.axes)
        self.placed = prices.scalar_accesses(machine, columns, "UB") + STEPS
        self.placed += STEPS if math.prod(combine.move.outer) > 1 else 0

    def all(self) -> Iterator[CombineSchedule]:
        """A schedule for each way that the machine has for the update: added by the memory, owned
        rows in UB combined by vectors or by scalars, and by scalars in GM, which always can."""
        combine = self.combine
        kind = LANES.get(combine.move.array.element, "")
        have = self.machine.intrinsics
        long = combine.run >= self.block
        if combine.by == "add" and f"set_atomic_{kind}" in have:
            if long:
                yield self._added()
            elif combine.move.array.count >= self.block:
                yield self._windows()
        if long and kind in have.get(REDUCTIONS[combine.by].step, ()):
            yield self._owned()
        if combine.width * self.size <= self.room // 4:
            yield self._owned_by_scalars()
        yield self._schedule(SCALARS, 1, 1, combine.run, 1, self._by_scalars())

    def _schedule(
        self, way: str, tile: int, rows: int, portion: int, units: int, cycles: float
    ) -> CombineSchedule:
        used = max(1, min(units, self.cores))
        return CombineSchedule(self.combine, way, tile, rows, portion, used, int(cycles))

    def _portion(self, units: int, most: int) -> int:
        """Elements of a portion, so that about so many of `units` times portions occupy all
        cores."""
        run = self.combine.run
        pieces = max(1, min(self.cores // max(1, units), run // LEAST_PORTION))
        wanted = min(ceil_div(run, pieces), most // 2)
        return run if wanted >= run else max(self.block, wanted // self.block * self.block)

    def _held(self, portion: int) -> int:
        """Bytes of a portion of a line in UB; the last one may be nearly twice as long."""
        sizes = [size for _, _, size in portions_of(self.combine.run, portion)]
        return self.size * max(
            sum(wide for _, wide in blocks_of_run(size, self.block)) for size in sizes
        )

    def _tile(self, each: int, room: int, most: int) -> int:
        """Lines of a tile of so many bytes each, beside their indices: all, or so many that each
        tile and its indices begin at whole blocks."""
        granule = self.machine.vector.block_bytes // 4
        fit = max(1, room // (each + self.wide) // granule) * granule
        wanted = min(fit, ceil_div(most, granule) * granule)
        return min(wanted, self.combine.lines)

    def _added(self) -> CombineSchedule:
        """Rows of updates come to UB, and the memory adds each to its place on the way out."""
        combine, port = self.combine, prices.writing(self.machine)
        portion = self._portion(combine.lines, self.room // 4 // self.size)
        times = combine.run // portion
        share = ceil_div(combine.lines * times, self.cores)
        tile = self._tile(self._held(portion), self.room // 2, share)
        pieces = 1 + (portion % self.block > 0)
        moved = self.costs.write(1, portion * self.size) * 2
        each = max(self.placed, port.issue_cycles * pieces, moved)
        units = ceil_div(combine.lines, tile) * times
        per_tile = self.costs.starts + self.costs.read(tile, portion * self.size) + tile * each
        cycles = ceil_div(units, self.cores) * per_tile
        return self._schedule(ADDED, tile, 1, portion, units, cycles)

    def _windows(self) -> CombineSchedule:
        """As `_added` for rows shorter than a block: the scalar unit puts each in a window of
        zeros."""
        combine, machine = self.combine, self.machine
        share = ceil_div(combine.lines, self.cores)
        each = (combine.run + self.block) * self.size
        tile = self._tile(each, self.room // 2, share)
        filled = self.placed + combine.run * prices.scalar_accesses(machine, 2, "UB")
        added = max(self.placed, prices.writing(machine).issue_cycles)
        per_tile = self.costs.starts + tile * (filled + added)
        units = ceil_div(combine.lines, tile)
        cycles = ceil_div(units, self.cores) * per_tile
        return self._schedule(WINDOWS, tile, 1, combine.run, units, cycles)

    def _owned(self) -> CombineSchedule:
        """Each core keeps rows of the result in UB, reads all updates, and combines those of its
        rows by vector instructions."""
        combine, machine = self.combine, self.machine
        portion = self._portion(combine.rows, self.room // 4 // self.size)
        held, times = self._held(portion), combine.run // portion
        rows = min(ceil_div(combine.rows * times, self.cores), self.room // 2 // held)
        rows = max(1, min(rows, combine.rows))
        tile = self._tile(held, self.room // 4, combine.lines)
        units = ceil_div(combine.rows, rows) * times
        repeats = ceil_div(portion * self.size, machine.vector.repeat_bytes)
        computed = prices.vector(machine, REDUCTIONS[combine.by].step, "", repeats)
        computed += machine.sync.barrier_cycles + STEPS
        tiles, row_bytes = ceil_div(combine.lines, tile), portion * self.size
        per_unit = (
            self.costs.starts
            + self.costs.read(rows, row_bytes)
            + self.costs.write(rows, row_bytes)
            + tiles * prices.reading(machine).start_cycles
            + self.costs.read(combine.lines, row_bytes, shared=True)
            + combine.lines * self.placed
            + combine.lines * rows / combine.rows * computed
        )
        cycles = ceil_div(units, self.cores) * per_unit
        return self._schedule(OWNED, tile, rows, portion, units, cycles)

    def _owned_by_scalars(self) -> CombineSchedule:
        """As `_owned`, whose rows are combined element by element by the scalar unit."""
        combine, machine = self.combine, self.machine
        whole = self.block // math.gcd(self.block, combine.width)
        share = ceil_div(ceil_div(combine.rows, self.cores), whole) * whole
        most = self.room // 2 // (combine.width * self.size) // whole * whole
        rows = min(max(whole, min(share, most)), combine.rows)
        tile = self._tile(combine.run * self.size, self.room // 4, combine.lines)
        units = ceil_div(combine.rows, rows)
        each = combine.run * (prices.scalar_accesses(machine, 3, "UB") + 2)
        moved = rows * combine.width * self.size
        read = combine.lines * combine.run * self.size
        per_unit = (
            self.costs.starts
            + self.costs.read(1, moved)
            + self.costs.write(1, moved)
            + self.costs.read(1, read, shared=True)
            + ceil_div(combine.lines, tile) * prices.reading(machine).start_cycles
            + combine.lines * self.placed
            + combine.lines * rows / combine.rows * each
        )
        cycles = ceil_div(units, self.cores) * per_unit
        return self._schedule(OWNED_BY_SCALARS, tile, rows, combine.run, units, cycles)

    def _by_scalars(self) -> float:
        """Cycles in which the scalar unit of one core combines all elements in GM."""
        combine = self.combine
        each = combine.run * (prices.scalar_accesses(self.machine, 3, "GM") + 2)
        indexed = prices.scalar_accesses(self.machine, len(combine.move.axes), "GM")
        return combine.lines * (each + indexed + STEPS)
