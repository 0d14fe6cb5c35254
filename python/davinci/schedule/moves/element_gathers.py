"""Gathers of single elements: rows of the table lie in UB, with the places of what is wanted.

    table [r, v], places [r, n]        ->  result [r, n]

    for each tile:  copy its part of the table and its places GM -> UB
                    offsets = (places - the table's first) * bytes of an element
                    gather by offsets (vgather), or element by element
                    copy the tile out

A tile is several rows, or a part of one row's places with the row of the table as a whole; cores
share the tiles. What is stored of a tile is whole blocks of 32 bytes and, where it is ragged, a
last block that overlaps them. Where the machine has no instruction that gathers elements of this
size the scalar unit takes them one by one, but from UB, which is several times as fast as GM.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from davinci.machine import Machine, prices
from davinci.operators.tensors import Tensor
from davinci.schedule.graph import Graph, Scalar
from davinci.schedule.moves.portions import LEAST_BYTES, SLOTS, Portions, cut
from davinci.schedule.moves.transfers import MOVABLE, TURNS, TransferCosts, blocks_of_run
from davinci.schedule.vector.space import NoSpace
from davinci.units import BLOCK_BYTES, REPEAT_BYTES, ceil_div, round_up

ELEMENTS = "gather_elements"
"""The operator of which a kernel is one of these."""

PLACE_BYTES = 4

VECTOR_BYTES = {2: "b16", 4: "b32"}
"""Types of `vgather` by the bytes of an element."""

SCALAR_OPERATIONS = 10
"""Operations by which the scalar unit finds an element's address, takes its place out of a word and
puts it into one, and counts, besides accesses."""

NUMBERS = 3
"""Blocks of UB that hold one number each: the table's first place, zero, and an element's bytes or
the table's last place."""

WORD_BYTES = 8
"""Bytes of the widest word that the scalar unit loads and stores."""


@dataclass(frozen=True)
class ElementGather:
    """Which elements are gathered.

    Attributes:
        rows: of the table and of the result.
        row: elements of a row of the table.
        count: elements of a row of the result.
        element: their type.
    """

    rows: int
    row: int
    count: int
    element: str

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return Tensor((1,), self.element).bytes_each

    @property
    def block(self) -> int:
        """Elements that are whole blocks of 32 bytes, and whose places are."""
        return BLOCK_BYTES // min(self.itemsize, PLACE_BYTES)

    def pieces(self, count: int) -> list[tuple[int, int]]:
        """Where the pieces of a tile's `count` results begin, and their lengths: whole blocks and a
        last one that overlaps them; a tile of less than a block is one piece, whose copies are
        rounded up."""
        return blocks_of_run(count, self.block) if count >= self.block else [(0, count)]


@dataclass(frozen=True)
class ElementSchedule:
    """How elements are gathered.

    Attributes:
        tiles: portions of the rows; with `parted` those of the places of each row.
        parted: whether a tile is a part of a row.
        by_vectors: whether the vector unit gathers, else the scalar unit does.
        slots: buffers on which the tiles of a core take turns.
        cores: blocks of the launch.
        cycles: estimated.
    """

    gather: ElementGather
    tiles: Portions
    parted: bool
    by_vectors: bool
    slots: int
    cores: int
    cycles: int

    @property
    def scalar(self) -> bool:
        """Whether the scalar unit moves all elements."""
        return not self.by_vectors

    @property
    def units(self) -> int:
        """Pieces of work."""
        return self.tiles.units * (self.gather.rows if self.parted else 1)

    def held(self, size: int) -> tuple[int, int]:
        """Elements of the table and of the result of a tile of `size`."""
        gather = self.gather
        return (gather.row, size) if self.parted else (size * gather.row, size * gather.count)

    def buffers(self) -> list[int]:
        """Bytes of the buffers on which tiles of all sizes take turns: the table's, then places and
        results of each piece of a tile."""
        gather, tiles = self.gather, self.tiles
        sizes = ([tiles.size] if tiles.count else []) + ([tiles.tail] if tiles.tail else [])
        held = [self.held(size) for size in sizes]
        pieces = [[wide for _, wide in gather.pieces(count)] for _, count in held]
        counts = [(max(elements for elements, _ in held), gather.itemsize)]
        for wide in map(max, zip_longest(*pieces, fillvalue=0)):
            counts += [(wide, PLACE_BYTES), (wide, gather.itemsize)]
        block = gather.block
        return [round_up(round_up(n, block) * each, BLOCK_BYTES) for n, each in counts]

    def __str__(self) -> str:
        what = "parts" if self.parted else "rows"
        by = "vector" if self.by_vectors else "scalar"
        return f"{self.tiles.largest} {what} a tile, by the {by} unit; {self.cores} cores"


@dataclass(frozen=True)
class ElementPlan:
    """A group that gathers elements, and how."""

    graph: Graph
    schedule: ElementSchedule
    machine: Machine


def gathers_elements(graph: Graph) -> bool:
    """Whether a group gathers elements."""
    return any(node.name == ELEMENTS for node in graph.nodes)


def element_plan(graph: Graph, machine: Machine, cores: int) -> ElementPlan:
    """The schedule of fewest estimated cycles of a group that gathers elements.

    Raises:
        NoSpace: it holds something else too, an operand is no array in GM, or a row of the table
            does not fit UB.
    """
    node = graph.nodes[0]
    if len(graph.nodes) > 1 or any(isinstance(v, Scalar) for v in node.operands):
        raise NoSpace(f"{node.name} is a kernel of its own, of arrays in GM")
    table, places = (graph.arrays[value] for value in node.values)
    gather = ElementGather(table.shape[0], table.shape[1], places.shape[1], table.element)
    found = element_schedule(gather, machine, cores)
    if found is None:
        raise NoSpace(f"rows of {gather.row} {gather.element} that elements are gathered of")
    return ElementPlan(graph, found, machine)


def element_schedule(gather: ElementGather, machine: Machine, cores: int) -> ElementSchedule | None:
    """The schedule of fewest estimated cycles; None if a row of the table does not fit UB, or
    copies do not take its elements."""
    if gather.element not in MOVABLE:
        return None
    found = [*_schedules(gather, machine, cores)]
    return min(found, key=lambda schedule: schedule.cycles, default=None)


def words_of(count: int, itemsize: int) -> int:
    """How many of `count` elements the scalar unit takes at a time: as many as a word of places and
    one of results have; 0 if there are fewer."""
    wide = max(WORD_BYTES // PLACE_BYTES, WORD_BYTES // itemsize)
    return wide if count >= wide else 0


def has_vector_gather(itemsize: int, machine: Machine) -> bool:
    """Whether the machine has an instruction that gathers elements of so many bytes."""
    return VECTOR_BYTES.get(itemsize) in machine.intrinsics.get("vgather", ())


def _schedules(gather: ElementGather, machine: Machine, cores: int) -> Iterator[ElementSchedule]:
    """Tiles of several rows and of parts of rows, with one buffer and with several; parts for all
    cores to have one, or several, of which two that overlap are one core's."""
    block, size = gather.block, gather.itemsize
    each = size + PLACE_BYTES
    for slots in (1, SLOTS):
        room = (machine.buffers.UB.bytes - NUMBERS * BLOCK_BYTES) // slots
        room -= block * (each + size)  # a last block, and what the table is rounded up by
        quantum = min(gather.rows, ceil_div(block, gather.count))
        width = gather.row * size + gather.count * each
        least = ceil_div(LEAST_BYTES, width)
        if room // width >= quantum:
            tiles = cut(gather.rows, quantum, quantum, room // width, least, cores)
            yield _priced(gather, tiles, False, slots, machine, cores)
        left = (room - gather.row * size) // each
        if left >= block and gather.count > block:
            share = max(1, cores // gather.rows)
            by_vectors = has_vector_gather(size, machine)
            least = ceil_div(gather.row * size, each) if by_vectors else block
            for turns in TURNS:
                tiles = cut(gather.count, block, block, left, least // turns, turns * share)
                yield _priced(gather, tiles, True, slots, machine, cores)


def _priced(
    gather: ElementGather, tiles: Portions, parted: bool, slots: int, machine: Machine, cores: int
) -> ElementSchedule:
    """A schedule of an element gather with its cores and cycles: of the first tile alone, and of
    each one behind it.

    Args:
        tiles: portions of the result.
        parted: whether cores hold only a part of the table.
        slots: buffers for tiles.
    """
    by_vectors = has_vector_gather(gather.itemsize, machine)
    made = ElementSchedule(gather, tiles, parted, by_vectors, slots, 1, 0)
    used = max(1, min(made.units, cores))
    # Two tiles that overlap are one core's.
    steps = max(1 + tiles.overlaps, ceil_div(made.units, used) * tiles.tiles / tiles.units)
    costs = TransferCosts(machine, used)
    held, count = made.held(tiles.largest)
    loaded = costs.read(1, held * gather.itemsize) + costs.read(1, count * PLACE_BYTES)
    stored = costs.write(1, count * gather.itemsize)
    work = gathered_cycles(gather, count, by_vectors, machine)
    alone = costs.starts + loaded + work + stored
    # The scalar unit issues the transfers of the next tile, too, when it is done with this one.
    behind = max(loaded, work, stored, alone / slots) if by_vectors else alone
    slots = slots if steps > 1 else 1
    cycles = int(alone + (steps - 1) * behind)
    return ElementSchedule(gather, tiles, parted, by_vectors, slots, used, cycles)


def gathered_cycles(gather: ElementGather, count: int, by_vectors: bool, machine: Machine) -> float:
    """Cycles of the unit that gathers so many elements of UB into UB."""
    if not by_vectors:
        size = gather.itemsize
        accesses = count * (1 + (PLACE_BYTES + size) / WORD_BYTES)
        if not words_of(count, size):
            accesses = 3 * count
        accesses = prices.scalar_accesses(machine, accesses, "UB")
        return accesses + count * SCALAR_OPERATIONS * machine.scalar.issue_cycles
    pieces = len(gather.pieces(count))
    words = ceil_div(round_up(count, gather.block) * PLACE_BYTES, REPEAT_BYTES)
    lanes = ceil_div(count * gather.itemsize, REPEAT_BYTES)
    placed = sum(prices.vector(machine, name, "s32", words, pieces) for name in ("vsub", "vmul"))
    kind = VECTOR_BYTES[gather.itemsize]
    return placed + prices.vector(machine, "vgather", kind, lanes, 2 * pieces)
