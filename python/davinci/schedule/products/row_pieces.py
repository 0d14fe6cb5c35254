"""Pieces of rows of a product's result, on which a vector unit computes what follows.

Vector cores beside a cube core take parts of C so (`behind`), and the vector unit of a core that
has both takes whole rows as they leave L0C (`row_work`).
"""

from __future__ import annotations

from functools import lru_cache

from davinci.machine import Machine
from davinci.schedule.graph import Graph, KeyedGraph
from davinci.schedule.vector.interleaving import waiting
from davinci.schedule.vector.prepared import PreparedProgram, prepared
from davinci.schedule.vector.schedule import VectorPlan
from davinci.schedule.vector.space import IterationSpace, NoSpace
from davinci.schedule.vector.step_costs import filling_cycles, inner_waits, step_cycles
from davinci.schedule.vector.tile_layout import SLOTS, TileLayout, tile_of
from davinci.schedule.vector.tile_program import TileProgram
from davinci.schedule.vector.tiled_schedule import VectorSchedule
from davinci.units import ceil_div


@lru_cache(maxsize=256)
def plan_of_rows(
    known: KeyedGraph,
    machine: Machine,
    size: tuple[int, int],
    room: int,
    least: int,
    slots: tuple[int, ...] = (SLOTS,),
) -> VectorPlan:
    """The program that takes fewest cycles for a row, on the largest pieces that have room.

    Args:
        known: operators whose first input is what the product makes.
        size: rows and columns of which there are pieces.
        room: bytes of UB.
        least: pieces at least.
        slots: how many buffers there may be of each value that is loaded or stored; the first
            number for which there is room.

    Raises:
        NoSpace: not even a row has room.
    """
    ways = [
        plan
        for ready in prepared(known.graph, machine)
        if not ready.space.inside  # C comes to UB in rows
        for plan in [_largest(known.graph, ready, machine, size, room, least, slots)]
        if plan is not None
    ]
    if not ways:
        raise NoSpace(f"rows of {size[1]} columns that have no room in UB")
    return min(ways, key=lambda plan: plan.schedule.cycles / plan.schedule.tile.sizes[-2])


def piece_sizes(space: IterationSpace, rows: int, columns: int) -> tuple[int, ...]:
    """Sizes of a piece by the axes of what is computed: of one matrix, where these are apart."""
    return (*(1 for _ in space.axes[2:]), rows, columns)


def _largest(
    graph: Graph,
    ready: PreparedProgram,
    machine: Machine,
    size: tuple[int, int],
    room: int,
    least: int,
    slots: tuple[int, ...],
) -> VectorPlan | None:
    """A program on the largest pieces for which UB has room; None if it has none. For arguments see
    `plan_of_rows`."""
    space, program, (rows, columns) = ready.space, ready.program, size
    heights = dict.fromkeys(ceil_div(rows, count) for count in range(least, max(least, rows) + 1))
    for height in heights:
        tile, ragged = tile_of(space, program, piece_sizes(space, height, columns))
        layout = TileLayout(space, program, tile, machine)
        held = [count for count in slots if layout.footprint(count, 1) <= room]
        if not held or layout.moved_by_scalars:
            continue
        schedule = VectorSchedule(
            cut=0,
            whole=False,
            tile=tile,
            runs=(),
            overlap=False,
            cores=1,
            slots=held[0],
            slots_held=1,
            tables=frozenset(),
            beside=(),
            ragged=ragged,
            cycles=int(cycles_of_piece(program, layout)),
        )
        return VectorPlan(graph, space, program, schedule, machine)
    return None


def cycles_of_piece(program: TileProgram, layout: TileLayout) -> float:
    """Cycles of the vector unit for a piece, and what its steps wait for each other."""
    steps = [step for step in program.steps if not layout.once(step.result)]
    waits = waiting(steps) + sum(inner_waits(step, layout) for step in steps)
    filled = filling_cycles((v for v in program.loads.values() if not layout.once(v)), layout)
    barriers = waits * layout.machine.sync.barrier_cycles
    return barriers + filled + sum(step_cycles(step, layout) for step in steps)
