"""The schedule of a group that sorts the rows of a matrix, see `schedule.sorts.network`.

A core sorts tiles one after the other, each 8 to 64 rows or one: whichever takes less. Rows that
are no whole tiles for all cores may be sorted in smaller ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from davinci.isa import INSTRUCTIONS
from davinci.isa.core import DTYPES
from davinci.isa.vector_plan import InstructionLimits, cost_of, plan_vector
from davinci.machine import Machine, prices
from davinci.schedule.graph import Graph, Node, Scalar
from davinci.schedule.sorts.keys import PLACE, Keys, KeySteps
from davinci.schedule.sorts.network import LEAST, OUTER, NetworkStep, SortTile
from davinci.schedule.sorts.places import LANES, LOW, SKEWED, bits_of
from davinci.schedule.sorts.spacing import waiting
from davinci.schedule.vector.space import NoSpace
from davinci.units import MAX_REPEAT, ceil_div

SORT, PAIRS = "sort", "sort_pairs"

WORD_BYTES = 4


@dataclass(frozen=True)
class TileShare:
    """Rows of a matrix that are sorted in tiles of one size, and how many."""

    tile: SortTile
    rows: int

    @property
    def tiles(self) -> int:
        """How many tiles they are, of which the last one may have fewer rows."""
        return ceil_div(self.rows, self.tile.rows)


@dataclass(frozen=True)
class SortSchedule:
    """How the rows of a matrix of keys are sorted.

    Attributes:
        keys: what they are.
        rows, columns: of the matrix.
        kept: keys of a row that are wanted.
        groups: rows of the numbers; 0 without numbers.
        shares: of the rows, in what cores sort them at a time: the largest tiles first.
        cores: blocks of the launch.
        cycles: estimated.
    """

    keys: Keys
    rows: int
    columns: int
    kept: int
    groups: int
    shares: tuple[TileShare, ...]
    cores: int
    cycles: int

    @property
    def tile(self) -> SortTile:
        """The largest tile."""
        return self.shares[0].tile

    @property
    def units(self) -> int:
        """The number of tiles, which cores share."""
        return sum(share.tiles for share in self.shares)

    def __str__(self) -> str:
        sizes = " or ".join(str(share.tile.rows) for share in self.shares)
        rows = f"{sizes} rows" if self.tile.rows > 1 else "a row in eighths"
        return f"{rows} of {self.tile.width} a tile, {self.tile.planes} planes; {self.cores} cores"


@dataclass(frozen=True)
class SortPlan:
    """A group that sorts, and how."""

    graph: Graph
    schedule: SortSchedule
    machine: Machine


def sorts(graph: Graph) -> bool:
    """Whether a group sorts."""
    return any(node.name in (SORT, PAIRS) for node in graph.nodes)


def keys_of(node: Node) -> Keys:
    given = node.attributes
    below = int(given["below"]) if node.name == PAIRS else None
    return Keys(str(given["order"]), bool(given["descending"]), below)


def sort_plan(graph: Graph, machine: Machine, cores: int) -> SortPlan:
    """The schedule of a group that sorts.

    Raises:
        NoSpace: it holds something else too, an operand is no array in GM, or rows are too long.
    """
    node = graph.nodes[0]
    if len(graph.nodes) > 1 or any(isinstance(v, Scalar) for v in node.operands) or graph.windows:
        raise NoSpace(f"{node.name} is a kernel of its own, of arrays in GM")
    matrix, *numbers = (graph.arrays[value] for value in node.values)
    kept, keys = graph.arrays[node.result].shape[-1], keys_of(node)
    groups = numbers[0].shape[0] if numbers else 0
    rows, columns = matrix.shape
    found = shares_of(rows, columns, kept, keys, machine, cores, groups == 1)
    if found is None:
        raise NoSpace(f"rows of {columns} keys of {keys.planes} planes do not fit UB")
    shares, cycles = found
    used = min(sum(share.tiles for share in shares), cores)
    schedule = SortSchedule(keys, rows, columns, kept, groups, shares, used, cycles)
    return SortPlan(graph, schedule, machine)


def shares_of(
    rows: int, columns: int, kept: int, keys: Keys, machine: Machine, cores: int, shared: bool
) -> tuple[tuple[TileShare, ...], int] | None:
    """The tiles in which rows are sorted on so many cores in least time, with the estimated cycles;
    None if a row does not fit UB.

    Args:
        shared: whether the keys of all rows have the same numbers.
    """
    tiles = tiles_of(columns, keys, machine, kept, rows, shared)
    cycles_of = {tile: tile_cycles(tile, keys, columns, kept, machine) for tile in tiles}
    found = []
    for tile in tiles:
        turn = tile.rows * cores
        whole, left = rows // turn * turn, rows % turn
        smaller = [other for other in tiles if 1 < other.rows < tile.rows and whole and left]
        for shares in (
            (TileShare(tile, rows),),
            *((TileShare(tile, whole), TileShare(other, left)) for other in smaller),
        ):
            turns = (ceil_div(share.tiles, cores) * cycles_of[share.tile] for share in shares)
            found.append((shares, sum(turns)))
    return min(found, key=lambda pair: pair[1], default=None)


def rows_cycles(
    rows: int,
    columns: int,
    kept: int,
    keys: Keys,
    machine: Machine,
    cores: int,
    shared: bool = False,
) -> int | None:
    """Estimated cycles in which the first keys of rows are sorted; None if a row does not fit
    UB."""
    found = shares_of(rows, columns, kept, keys, machine, cores, shared)
    return None if found is None else found[1]


def tiles_of(
    columns: int,
    keys: Keys,
    machine: Machine,
    kept: int = 0,
    rows: int = 1,
    shared: bool = False,
) -> list[SortTile]:
    """The tiles that fit UB: of one row, and of 8 to 64 of so many rows, of which so many keys are
    wanted, 0: all. In small ones, where an instruction has few repeats, all bits of an address may
    move: fewer instructions, which meet in banks more often.

    Args:
        shared: whether the keys of all rows have the same numbers.
    """
    constants = tuple(keys.constants())
    width = 1 << bits_of(columns)
    eights = min(LOW, bits_of(ceil_div(rows, OUTER)))
    tiles = (
        SortTile(
            max(LEAST * ceil_div(most, OUTER), width * most),
            most,
            keys.planes,
            constants,
            kept,
            bits_of(max(LANES, ceil_div(columns, OUTER if most == 1 else 1))),
            shared=shared and most > 1,
        )
        for most in (1, *(OUTER << bits for bits in range(eights + 1)))
    )
    return [
        replace(tile, low=low)
        for tile in tiles
        if tile.bytes <= machine.buffers.UB.bytes
        for low in ((0, LOW) if tile.blocks < SKEWED else (LOW,))
    ]


def tile_cycles(tile: SortTile, keys: Keys, columns: int, kept: int, machine: Machine) -> int:
    """Estimated cycles of a tile."""
    work = work_cycles(tile, keys.alike, kept, machine)
    arrays = 1 if keys.below is None else 1 + PLACE
    loaded = 1 if tile.shared else arrays
    read, write = prices.reading(machine), prices.writing(machine)
    moved = read.busy(loaded * tile.rows * columns * WORD_BYTES, loaded * tile.rows)
    moved += write.busy(arrays * tile.rows * kept * WORD_BYTES, arrays * tile.rows)
    return int(work + moved + prices.ends(machine))


@lru_cache(1024)
def work_cycles(tile: SortTile, keys: Keys, kept: int, machine: Machine) -> int:
    """Estimated cycles of all that is done to a tile in UB."""
    made = KeySteps(keys, tile, kept)
    steps = [*made.coming(), *made.sorting()]
    return vector_cycles(steps, machine) + waiting(steps) * prices.until_visible(machine)


def vector_cycles(steps: Iterable[NetworkStep], machine: Machine) -> int:
    return sum(step_cycles(step, machine) for step in steps)


@lru_cache(4096)
def step_cycles(step: NetworkStep, machine: Machine) -> int:
    """Cycles of the instructions of a step."""
    unit, result = machine.vector, step.operands[-1]
    if step.name == "vnchwconv":
        fixed, each = unit.price("scatter_vnchwconv", "b16")
        repeats = result.shape[-2]
        return ceil_div(repeats, MAX_REPEAT) * fixed + repeats * each
    name, kind = step.name, step.kinds[-1]
    if name == "vconv":
        suffix = {"none": "r" if kind == "s32" else "", "floor": "f"}[step.round or "none"]
        name, kind = f"vconv_{step.kinds[0]}2{kind}", ""
        record = INSTRUCTIONS[name + suffix]
    else:
        record = INSTRUCTIONS[f"{name}.{kind}"]
    fixed, each = unit.price(name, kind)
    limits = InstructionLimits.of(record, fixed, unit.bank_groups, each)
    views = (result, *step.operands[:-1])
    sizes = (DTYPES["f32"].itemsize,) * len(views)
    nests = plan_vector(result.shape, [view.strides for view in views], sizes, limits)
    return cost_of(nests, sizes, limits)
