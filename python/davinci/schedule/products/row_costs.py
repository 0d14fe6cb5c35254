"""Bytes and cycles of what is done to whole rows of a product's result (`row_work`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from davinci.isa.core import DTYPES
from davinci.machine import prices
from davinci.schedule.products.row_pieces import cycles_of_piece, piece_sizes, plan_of_rows
from davinci.schedule.products.row_work import RowWork
from davinci.schedule.vector.schedule import VectorPlan
from davinci.schedule.vector.space import NoSpace
from davinci.schedule.vector.step_costs import issuing_cycles, moving_cycles
from davinci.schedule.vector.tile_layout import SLOTS, TileLayout, tile_of
from davinci.schedule.vector.tiled_schedule import VectorSchedule


@dataclass(frozen=True)
class RowBusy:
    """Cycles of pipes for some rows: of loads, of the vector unit, and of stores."""

    mte2: float
    v: float
    mte3: float


def plan_of_work(work: RowWork, rows: int, room: int) -> VectorPlan:
    """How the rows of a part are computed, in pieces that take at most so many bytes of UB.

    Raises:
        NoSpace: not even a row has room.
    """
    rows = min(rows, work.rows)
    # A piece that is all of C would be the same for all pieces: loaded before C is there.
    least = 1 if rows * work.width < work.count else 2
    slots = tuple(range(SLOTS, 0, -1))
    return plan_of_rows(work.known, work.machine, (rows, work.width), room, least, slots)


def held_bytes(work: RowWork, rows: int, room: int) -> int:
    """Bytes of UB of a part's pieces; more than `room` where not even a row has room."""
    try:
        plan = plan_of_work(work, rows, room)
    except NoSpace:
        return room + 1
    assert isinstance(plan.schedule, VectorSchedule), "pieces of rows are tiles"
    return plan.layout(plan.schedule.tile).footprint(plan.schedule.slots, 1)


@lru_cache(maxsize=1024)
def busy_of_rows(work: RowWork, height: int, rows: int, room: int) -> RowBusy:
    """Cycles of pipes for a part of so many rows.

    Args:
        height: rows of the parts that buffers are made for.
        room: bytes of UB for pieces of these.

    Raises:
        NoSpace: not even a row has room.
    """
    plan = plan_of_work(work, height, room)
    piece = plan.schedule.tile.sizes[-2]
    whole, rest = divmod(rows, piece)
    counts = [(piece, whole), (rest, 1)]
    mte2 = v = mte3 = 0.0
    for size, count in counts:
        if size and count:
            each = _busy_of_piece(work, plan, height, size)
            mte2 += each.mte2 * count
            v += each.v * count
            mte3 += each.mte3 * count
    staged, machine = work.staged(height, plan.program.row_block), work.machine
    ends = staged.ended()
    if ends is not None:
        found = ends.estimate(machine)
        v += found.cycles + found.links * machine.sync.barrier_cycles
    return RowBusy(mte2, v, mte3)


def _busy_of_piece(work: RowWork, plan: VectorPlan, height: int, rows: int) -> RowBusy:
    """Cycles of pipes for a piece of so many rows of a part."""
    graph, program, machine = plan.graph, plan.program, work.machine
    tile, _ = tile_of(plan.space, program, piece_sizes(plan.space, rows, work.width))
    layout = plan.layout(tile, plan.layout(plan.schedule.tile))
    taken = work.staged(height, program.row_block).taken(0, rows, tile.pitch).estimate(machine)
    v: float = taken.cycles + taken.links * machine.sync.barrier_cycles
    v += cycles_of_piece(program, layout)
    mte3 = _moving(graph.outputs, layout, False)
    if work.kept:
        mte3 += prices.writing(machine).busy(rows * work.width * DTYPES[work.dtype].itemsize)
    return RowBusy(_moving(graph.inputs[1:], layout, True), v, mte3)


def _moving(values: list[int], layout: TileLayout, load: bool) -> float:
    """Cycles of a pipe for values of a piece that the L2 has, or is written to."""
    moved = moving_cycles(values, layout, 1, load, known=values)
    return max(moved, issuing_cycles(values, layout, load))
