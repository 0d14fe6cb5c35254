"""Chooses how many planes and rows of windows a tile has, by estimated cycles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from davinci.isa.core import DTYPES
from davinci.isa.vector_plan import Issue, cost_of, plan_vector
from davinci.machine import Machine, prices
from davinci.machine.vector_banks import BankLayout, OperandBlocks, repeats_cycles
from davinci.operators.vector_program import DTYPE_OF
from davinci.schedule.choices import WindowsChoice
from davinci.schedule.moves.portions import AlikePieces, longest_share
from davinci.schedule.moves.transfers import TransferCosts
from davinci.schedule.pools.combining import Combination, columns_of, fills_of, lines_of
from davinci.schedule.pools.pool import (
    Band,
    Pool,
    PoolSchedule,
    bands,
    came_pixels,
    phases,
    tile_bytes,
    tile_fractals,
)
from davinci.schedule.vector.space import NoSpace
from davinci.schedule.vector.step_costs import limits_of
from davinci.units import BLOCK_BYTES, REPEAT_BYTES, ceil_div
from davinci.units import FRACTAL_SIDE as SIDE

SLOTS = 2
"""Most buffers of what moves: one tile comes while another leaves."""


def choose(pool: Pool, machine: Machine, cores: int) -> PoolSchedule:
    """The schedule of fewest estimated cycles.

    Raises:
        NoSpace: not even a row of windows of a plane fits UB.
    """
    found = min(candidates(pool, machine, cores), key=lambda made: made.cycles, default=None)
    if found is None:
        raise NoSpace("a row of windows that does not fit UB")
    return found


def ranked(pool: Pool, machine: Machine, cores: int) -> list[PoolSchedule]:
    """All schedules that fit UB, the one that is taken where nobody chooses first."""
    return sorted(candidates(pool, machine, cores), key=lambda made: made.cycles)


def chosen(pool: Pool, machine: Machine, cores: int, choice: WindowsChoice) -> PoolSchedule:
    """The schedule of a choice.

    Raises:
        NoSpace: it does not fit UB, or cuts what cannot be cut so.
    """
    planes, rows, slots = choice.planes, choice.rows, choice.slots
    made = None
    if planes in planes_of(pool) and rows <= pool.geometry.windows[0] and slots <= SLOTS:
        made = _schedule(pool, planes, rows, machine, cores, slots)
    if made is None:
        raise NoSpace(f"tiles of {planes} planes and {rows} rows, {slots} slots, which do not fit")
    return made


def planes_of(pool: Pool) -> list[int]:
    """How many planes a tile may have: those of an image in equal parts."""
    shared, together = max(1, pool.whole_blocks), pool.end.columns_together
    return [n for n in range(together, shared + 1, together) if shared % n == 0]


def candidates(pool: Pool, machine: Machine, cores: int) -> Iterator[PoolSchedule]:
    """The schedules whose buffers fit UB."""
    total = pool.geometry.windows[0]
    heights = sorted({ceil_div(total, parts) for parts in range(1, total + 1)})
    for planes in planes_of(pool):
        for rows in heights:
            made = _schedule(pool, planes, rows, machine, cores)
            if made is None:
                break
            yield made


def _schedule(
    pool: Pool, planes: int, rows: int, machine: Machine, cores: int, slots: int = 0
) -> PoolSchedule | None:
    """The schedule of tiles of one size, None if they do not fit UB.

    Args:
        slots: buffers of what moves; 0 for as many as cores with several tiles have use for.
    """
    cut = bands(pool.geometry, rows)
    tall = max(cut, key=lambda band: tile_bytes(pool, planes, band, 1, turns=True))
    groups = (pool.whole_blocks // planes, int(pool.blocks > pool.whole_blocks))
    kinds = [pool.images * count * band.count for band in cut for count in groups]
    units = sum(kinds)
    slots = slots or (SLOTS if units > cores else 1)
    room = machine.buffers.UB.bytes
    turns = tile_bytes(pool, planes, tall, slots, turns=True) <= room
    if not turns and tile_bytes(pool, planes, tall, slots, turns=False) > room:
        return None
    taken = min(units, cores)
    tile = PoolTiles.of(pool, planes, tall, turns, machine, taken)
    shares = [replace(tile, units=count) for count in kinds]
    cycles = longest_share(shares, taken, prices.reading(machine).start_cycles)
    return PoolSchedule(planes, rows, taken, slots, turns, int(cycles))


@dataclass(frozen=True)
class PoolTiles(AlikePieces):
    """Tiles of one band, of whole planes or of one that channels fill in part: loads, steps and
    stores of neighbours overlap."""

    units: int
    cycles: float
    further: float

    @staticmethod
    def of(
        pool: Pool, planes: int, band: Band, turns: bool, machine: Machine, cores: int
    ) -> PoolTiles:
        """One tile, estimated while so many cores are at work.

        Args:
            planes: blocks of channels that it has.
            turns: whether sums lie in two buffers by turns.
        """
        load = _loads(pool, planes, band, machine, cores) + prices.reading(machine).start_cycles
        store = _stores(pool, planes, band, machine, cores) + prices.writing(machine).start_cycles
        work = _steps(pool, planes, band, turns, machine)
        return PoolTiles(1, load + work + store, max(load, work, store))


def _loads(pool: Pool, planes: int, band: Band, machine: Machine, cores: int) -> float:
    """Cycles of the transfers of a tile from GM: one takes the same row of all planes, or the rows
    of one of them, whichever are fewer."""
    costs, item = TransferCosts(machine, cores), DTYPES[DTYPE_OF[pool.element]].itemsize
    inside = band.reached - band.above - band.below
    found = costs.read(planes, inside * pool.geometry.image[1] * SIDE * item)
    windows = band.rows * pool.geometry.windows[1]
    whole = [extra.value for extra in pool.end.extras if not extra.row]
    found += sum(costs.read(planes, windows * SIDE * DTYPES[v.dtype].itemsize) for v in whole)
    copies = sum(min(planes, phase.rows) for phase in phases(pool, band).values())
    copies += len(whole) * min(planes, band.rows)
    return found + copies * prices.reading(machine).issue_cycles


def _stores(pool: Pool, planes: int, band: Band, machine: Machine, cores: int) -> float:
    """Cycles of the transfers of a tile to GM."""
    costs, outputs = TransferCosts(machine, cores), pool.end.program.outputs
    windows = band.rows * pool.geometry.windows[1]
    found = sum(costs.write(planes, windows * SIDE * DTYPES[v.dtype].itemsize) for v in outputs)
    return found + min(planes, band.rows) * len(outputs) * prices.writing(machine).issue_cycles


def _steps(pool: Pool, planes: int, band: Band, turns: bool, machine: Machine) -> float:
    """Cycles of the vector unit for a tile, with the waits for the step before."""
    item, wide = DTYPES[DTYPE_OF[pool.element]].itemsize, DTYPES[pool.accumulator].itemsize
    wait = machine.sync.barrier_cycles

    plane, line, work = came_pixels(pool, band) * SIDE, pool.pitch * SIDE, float(wait)
    for fill in fills_of(pool, band):
        strides = [(plane, line, 1)]
        work += _planned("vector_dup", (planes, fill.rows, fill.size), strides, (item,), machine)
    if wide != item:
        for phase in phases(pool, band).values():
            sizes = (planes, (phase.rows * pool.pitch + pool.left) * SIDE)
            work += _planned("vconv", sizes, [(plane, 1)] * 2, (item, wide), machine)
        work += wait
    if pool.geometry.kernel[0] > 1:
        work += _combined(lines_of(pool, band, planes), pool, turns, machine)
    work += _combined(columns_of(pool, band, planes), pool, turns, machine)
    repeats = planes * tile_fractals(pool, band) * SIDE * SIDE * 4 / REPEAT_BYTES
    each = prices.vector(machine, "vadd", "f32", repeats) + wait
    rounded = pool.end.sums.dtype != pool.accumulator
    return work + (len(pool.end.program.steps) + rounded) * each


def _combined(how: Combination, pool: Pool, turns: bool, machine: Machine) -> float:
    """Cycles in which terms are combined: sums that have buffers by turns meet the next term and
    what is written in the banks as little as they can, others what is written in their place."""
    item, strides = DTYPES[pool.accumulator].itemsize, (how.source, how.source, how.result)
    fixed, each = machine.vector.price("vmax", pool.accumulator)
    layout, half = BankLayout.of(machine.vector), REPEAT_BYTES // BLOCK_BYTES
    limits = limits_of(len(strides), machine.vector, fixed, each)
    nests = plan_vector(how.sizes, strides, (item,) * len(strides), limits)
    first, *terms = (start * item // BLOCK_BYTES for start in how.starts)
    begin, end = layout.row_blocks, 2 * layout.row_blocks
    turn = begin + how.turn_start(pool) * item // BLOCK_BYTES
    sums = [turn, turn + half] if turns else [end, end + half]

    def taking(issue: Issue, so_far: int, term: int, source: int) -> int:
        """Cycles of an instruction on what begins at these blocks."""

        def operand(block: int, number: int) -> OperandBlocks:
            return OperandBlocks(block, half, issue.blk_stride[number], issue.rep_stride[number])

        read = operand(so_far, source), operand(term, 1)
        written = (operand(end if turns else max(so_far, end), 2),)
        depth = fixed - machine.vector.head_cycles
        return fixed + repeats_cycles(read, written, issue.repeat, each, depth, layout)

    found = 0.0
    for number, term in enumerate(terms or [first]):
        places, source = (sums, 2) if number else ([first], 0)
        found += min(
            sum(nest.count * taking(nest.issue, place, term, source) for nest in nests)
            for place in places
        )
    return found + max(1, len(terms)) * machine.sync.barrier_cycles


def _planned(
    name: str,
    sizes: Sequence[int],
    strides: Sequence[Sequence[int]],
    items: Sequence[int],
    machine: Machine,
) -> float:
    """Cycles of an operation on operands in UB, in as few instructions as it can be."""
    limits = limits_of(len(items), machine.vector, *machine.vector.price(name, ""))
    return cost_of(plan_vector(sizes, strides, items, limits), items, limits)
