"""Blocks of an array that begin at indices in GM: the scalar unit reads the indices, copies move
the blocks.

A block is moved by *runs*, elements that lie together in the array: what it takes of the last
dimension that it does not take whole, with all behind it.

    array [4, 100, 64], block [4, 1, 64]        4 runs of 64 elements, 6,400 apart

gather    for each tile: for each block: read its index, copy its runs GM -> UB; copy the tile out
update    for each tile: copy it in; for each block, in order: read its index, copy UB -> GM

Cores share the blocks of a gather. Blocks of an update are written in order, since two may be the
same; cores share the runs of each, or parts of them. Nothing beside a run is read or written: one
that is not whole blocks of 32 bytes is moved in two copies that overlap. A shorter run is written
together with what lies beside it in its line of the array (the last dimensions of the array, from
the one that the block does not take whole): a block of 32 bytes is read, changed in UB by the
scalar unit, and written, by the one core that has the line. Where a line is shorter than that too,
the scalar unit moves element by element.

Runs of less than 32 bytes are gathered from an array in UB by the scalar unit, which takes a third
of the time of one in GM; of one that UB does not hold, from the rows of a tile, where its first
dimension is one of the batch:

    for each tile of blocks: copy its indices, and its rows, in; read each index, load and store the
    elements of the block; copy the tile out
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from davinci.machine import Machine, prices
from davinci.operators.tensors import Tensor
from davinci.schedule.graph import Graph, Node, Scalar
from davinci.schedule.moves.portions import LEAST_BYTES, Portions, cut
from davinci.schedule.moves.transfers import MOVABLE, TransferCosts, blocks_of_run, tile_of
from davinci.schedule.vector.space import NoSpace
from davinci.units import BLOCK_BYTES, ceil_div, round_up

ROWS, BLOCKS, UPDATE = "gather", "gather_blocks", "update_blocks"
COMBINE = "combine_blocks"

BY_RUNS, IN_LINES, BY_SCALARS, IN_UB = "runs", "lines", "the scalar unit", "elements in UB"
"""How blocks are moved: by copies, by blocks of 32 bytes that are read and changed, by single
elements in GM, or by single elements of what was copied to UB."""

IN_UB_PAYS = 0.8
"""Part of the time of single elements in GM below which they are copied to UB: neighbours in GM may
take less than is estimated."""

STEPS = 12
"""Instructions of the scalar unit, about, by which it finds the place of a block."""


@dataclass(frozen=True)
class BlockMove:
    """Which blocks of an array are read or written; see `davinci.operators.blocks`.

    Attributes:
        update: whether they are written.
        array: whose blocks they are, with a dimension of 1 in front, so that there is always one
            outside of a run.
        block: shape of one.
        count: blocks.
        axes: dimensions whose indices are the columns of the array of indices.
        starts, batch: for each dimension.
        wrap: for each column, whether negative indices count from the end.
        skip: whether blocks that do not lie inside are left out; else they are clamped.
        index_bytes: of one index.
    """

    update: bool
    array: Tensor
    block: tuple[int, ...]
    count: int
    axes: tuple[int, ...]
    starts: tuple[int, ...]
    batch: tuple[int, ...]
    wrap: tuple[bool, ...]
    skip: bool
    index_bytes: int = 4

    @cached_property
    def split(self) -> int:
        """The first dimension of a run: the last one that a block does not take whole."""
        pairs = zip(self.array.shape, self.block, strict=True)
        cut_dims = [d for d, (size, length) in enumerate(pairs) if size != length]
        return max(1, cut_dims[-1]) if cut_dims else 1

    @property
    def run(self) -> int:
        """Elements of a run."""
        return math.prod(self.block[self.split :])

    @property
    def line(self) -> int:
        """Elements of the array from one run to the next."""
        return math.prod(self.array.shape[self.split :])

    @property
    def inner(self) -> int:
        """Elements of the array between positions of the first dimension of a run."""
        return math.prod(self.array.shape[self.split + 1 :])

    @property
    def each(self) -> int:
        """Elements of a block."""
        return math.prod(self.block)

    @property
    def per_row(self) -> int:
        """Blocks in a row that lie in one row of the array, which are along its first dimension
        when that is of the batch and goes up once; else 0."""
        inner = self.batch[1] if len(self.batch) > 1 else 0
        return inner if inner * self.array.shape[1] == self.count else 0

    @property
    def outer(self) -> tuple[int, ...]:
        """Sizes of a block along the dimensions outside of its runs."""
        return self.block[: self.split]


@dataclass(frozen=True)
class BlockSchedule:
    """The schedule of a kernel that moves blocks to or from places that an index in GM names.

    Attributes:
        way: `BY_RUNS`, `IN_LINES`, `BY_SCALARS` or `IN_UB`.
        run: portions of a run, in elements.
        items: blocks that are moved together, as portions of all.
        rows: of the array that are in UB together, by `IN_UB`.
        level, chunk: the dimension outside of the runs that tiles are cut along, and how much of it
            each has; of those in front of it a tile has one index, of those behind all.
        cores: blocks of the launch.
        cycles: estimated.
    """

    move: BlockMove
    way: str
    run: Portions
    items: Portions
    level: int
    chunk: int
    cores: int
    cycles: int
    rows: int = 0

    @property
    def scalar(self) -> bool:
        """Whether the scalar unit moves all elements in GM."""
        return self.way == BY_SCALARS

    def held(self, block: int) -> int:
        """Elements of the array that are in UB together, by `IN_UB`: whole blocks of so many, and
        one more where the first row begins within one."""
        count = self.move.array.shape[1]
        row = self.move.array.count // count
        return round_up(self.rows * row, block) + (block if self.rows < count else 0)

    def __str__(self) -> str:
        each = self.run.largest
        how = {
            BY_RUNS: f"{self.items.largest} a tile",
            IN_LINES: "in blocks of their lines",
            BY_SCALARS: "by the scalar unit",
            IN_UB: f"{self.items.largest} a tile, of {self.rows} rows in UB",
        }[self.way]
        what = f"rows of {self.move.run}" if each == self.move.run else f"parts of {each}"
        return f"{what}, {how}; {self.cores} cores"


@dataclass(frozen=True)
class BlockPlan:
    """A group that moves blocks, and how."""

    graph: Graph
    schedule: BlockSchedule
    machine: Machine


def moves_blocks(graph: Graph) -> bool:
    """Whether a group reads, writes or combines blocks of an array at indices."""
    return any(node.name in (ROWS, BLOCKS, UPDATE, COMBINE) for node in graph.nodes)


def gather_cycles(table: Tensor, count: int, machine: Machine, cores: int) -> int:
    """Estimated cycles in which so many rows of a table are gathered."""
    return _schedule_of(_gathered(table, count, False), machine, cores).cycles


def blocks_cycles(move: BlockMove, machine: Machine, cores: int) -> int:
    """Estimated cycles in which blocks are moved."""
    return _schedule_of(move, machine, cores).cycles


def block_plan(graph: Graph, machine: Machine, cores: int) -> BlockPlan:
    """The schedule of a group that moves blocks.

    Raises:
        NoSpace: it holds something else too, or an operand is no array in GM.
    """
    move = move_of(node_of(graph), graph)
    return BlockPlan(graph, _schedule_of(move, machine, cores), machine)


def _schedule_of(move: BlockMove, machine: Machine, cores: int) -> BlockSchedule:
    """The schedule of a block's move or update: by runs or lines of whole blocks where it has some,
    else by the scalar unit, in GM or, where that is much faster, in UB."""
    element, size = move.array.element, move.array.bytes_each
    block = machine.vector.block_bytes // size
    room = machine.buffers.UB.bytes // size
    if element in MOVABLE and move.run >= block and 2 * block <= room:
        return _by_runs(move, block, room, machine, cores)
    if element in MOVABLE and move.update and move.line >= block:
        return _in_lines(move, block, machine, cores)
    found = _by_scalars(move, machine, cores)
    if element not in MOVABLE or move.update:
        return found
    ways = (False, True) if move.per_row else (False,)
    held = (_in_ub(move, block, by_rows, machine, cores) for by_rows in ways)
    paying = [s for s in held if s is not None and s.cycles < IN_UB_PAYS * found.cycles]
    return min(paying, key=lambda s: s.cycles, default=found)


def node_of(graph: Graph) -> Node:
    """The only node of a group that moves blocks.

    Raises:
        NoSpace: it holds something else too, or an operand is no array in GM.
    """
    node = graph.nodes[0]
    if len(graph.nodes) > 1 or any(isinstance(v, Scalar) for v in node.operands):
        raise NoSpace(f"{node.name} is a kernel of its own, of arrays in GM")
    return node


def move_of(node: Node, graph: Graph) -> BlockMove:
    """A node as the move that it is."""
    array, *_, indices = (graph.arrays[value] for value in node.values)
    update, given = len(node.values) == 3, node.attributes
    whole = Tensor((1, *array.shape), array.element)
    if node.name == ROWS:
        return _gathered(array, indices.count, bool(given.get("wrap", 0)))
    moved = graph.arrays[node.values[1] if update else node.result]
    return BlockMove(
        update=update,
        array=whole,
        block=(1, *moved.shape[1:]),
        count=moved.shape[0],
        axes=tuple(axis + 1 for axis in given["axes"]),
        starts=(0, *given["starts"]),
        batch=(0, *given["batch"]),
        wrap=tuple(map(bool, given["wrap"])),
        skip=update and bool(given.get("skip", True)),
        index_bytes=indices.bytes_each,
    )


def _gathered(table: Tensor, count: int, wrap: bool) -> BlockMove:
    """So many rows of a table."""
    whole = Tensor((1, *table.shape), table.element)
    none, block = (0,) * whole.rank, (1, 1, *table.shape[1:])
    return BlockMove(False, whole, block, count, (1,), none, none, (wrap,), False)


def _by_runs(move: BlockMove, block: int, room: int, machine: Machine, cores: int) -> BlockSchedule:
    """Blocks by copies of runs of a block of 32 bytes or more."""
    size = move.array.bytes_each
    rows, least = math.prod(move.outer), ceil_div(LEAST_BYTES, size)
    width = sum(wide for _, wide in blocks_of_run(move.run, block))
    whole = Portions(move.run, 1, 0, move.run)
    one = Portions(move.count, 1, move.count, 0)
    level, chunk = move.split - 1, 1
    several = move.count > 1 and not move.update
    if width > room or (rows == 1 and not several):
        run = cut(move.run, block, block, (room - block) // 2, least, cores)
        items, width = one, run.largest + block
    elif rows == 1:
        run = whole
        items = cut(move.count, 1, 1, room // width, ceil_div(least, width), cores)
    else:
        run, items = whole, one
        part = ceil_div(rows, cores)
        level, chunk = tile_of(move.outer, max(1, min(room // width, max(part, least // width))))
    if move.update and move.count > 1:
        tile = chunk * math.prod(move.outer[level + 1 :]) * width
        together = max(1, room // 2 // tile)
        items = cut(move.count, 1, 1, together, together, 1)
    lines = items.largest * chunk * math.prod(move.outer[level + 1 :])
    tiles = math.prod(move.outer[:level]) * ceil_div(move.outer[level], chunk) * run.units
    pieces = len(blocks_of_run(run.largest, block)) if run.largest >= block else 1
    length = run.largest * size
    indexed = prices.scalar_accesses(machine, len(move.axes), "GM")
    writing = prices.writing(machine)
    issued = (writing if move.update else prices.reading(machine)).issue_cycles
    fetched = max(issued * pieces, indexed)
    times = items.units
    units = tiles if move.update else tiles * times
    costs = TransferCosts(machine, min(units, cores))
    moved = costs.read(lines, length) + costs.write(lines, length)
    each = costs.starts + moved + items.largest * fetched
    if move.update:  # a store waits for the one before
        each += (items.largest - 1) * writing.start_cycles
    steps = ceil_div(units, cores) * (times if move.update else 1)
    return BlockSchedule(
        move, BY_RUNS, run, items, level, chunk, min(max(1, units), cores), int(each * steps)
    )


def _in_lines(move: BlockMove, block: int, machine: Machine, cores: int) -> BlockSchedule:
    """Runs of less than 32 bytes, written with what lies beside them."""
    rows = math.prod(move.outer)
    room = machine.buffers.UB.bytes // move.array.bytes_each // block
    part = ceil_div(rows, cores)
    level, chunk = tile_of(move.outer, max(1, min(room, part)))
    lines = chunk * math.prod(move.outer[level + 1 :])
    units = math.prod(move.outer[:level]) * ceil_div(move.outer[level], chunk)
    elements = sum(prices.scalar_accesses(machine, lines * move.run, s) for s in ("GM", "UB"))
    length, costs = block * move.array.bytes_each, TransferCosts(machine, min(units, cores))
    copied = costs.starts + costs.read(lines, length) + costs.write(lines, length)
    cycles = (elements + copied) * move.count * ceil_div(units, cores)
    run, items = Portions(move.run, move.run, 1, 0), Portions(move.count, 1, move.count, 0)
    return BlockSchedule(move, IN_LINES, run, items, level, chunk, min(units, cores), int(cycles))


def _in_ub(
    move: BlockMove, block: int, by_rows: bool, machine: Machine, cores: int
) -> BlockSchedule | None:
    """A gather of elements of what is copied to UB: the array, or the rows of a tile; None where UB
    has no room."""
    size, columns, count = move.array.bytes_each, len(move.axes), move.array.shape[1]
    row = move.array.count // count * size
    granule = math.lcm(block // math.gcd(block, move.each), BLOCK_BYTES // 4)
    each, fixed = move.each * size + columns * move.index_bytes, count * row
    if by_rows:
        each, fixed = each + ceil_div(row, move.per_row), 3 * row
    most = (machine.buffers.UB.bytes - 4 * BLOCK_BYTES - fixed) // each // granule * granule
    tile = min(most, ceil_div(ceil_div(move.count, cores), granule) * granule)
    if tile <= 0:
        return None
    items = Portions(move.count, tile, move.count // tile, move.count % tile)
    rows = ceil_div(tile, move.per_row) + 1 if by_rows else count
    if by_rows and rows * row + 2 * BLOCK_BYTES > count * row:
        return None
    used = min(ceil_div(move.count, tile), cores)
    turns, costs = ceil_div(ceil_div(move.count, tile), used), TransferCosts(machine, used)
    accesses = prices.scalar_accesses(machine, columns + 2 * move.each, "UB")
    loaded = costs.read(1, rows * row, shared=rows == count)
    moved = costs.starts + costs.read(1, tile * columns * move.index_bytes)
    moved += costs.write(1, tile * move.each * size) + (loaded if rows < count else 0)
    cycles = turns * (moved + tile * (accesses + STEPS)) + (loaded if rows == count else 0)
    run = Portions(move.run, move.run, 1, 0)
    return BlockSchedule(move, IN_UB, run, items, 0, 1, used, int(cycles), rows)


def _by_scalars(move: BlockMove, machine: Machine, cores: int) -> BlockSchedule:
    """All elements by the scalar unit: blocks of an update in order, by one core."""
    elements = math.prod(move.block)
    each = TransferCosts(machine, 1).scalars(elements) + prices.scalar_accesses(
        machine, len(move.axes), "GM"
    )
    used = 1 if move.update else max(1, min(move.count, cores))
    run, items = Portions(move.run, move.run, 1, 0), Portions(move.count, 1, move.count, 0)
    cycles = each * ceil_div(move.count, used)
    return BlockSchedule(move, BY_SCALARS, run, items, 0, 1, used, int(cycles))
