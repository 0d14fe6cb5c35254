"""One row of values that all rows of a tile are combined with: gamma and beta of a layer norm.

direct     the row lies in UB once and is read with a stride of 0: min(rows, units)
           instructions for each use, and whatever the banks make of it
moved      GM -> L1 once, L1 -> UB for each row of a tile, on PIPE_MTE1, which vector kernels
           leave idle; a use is one instruction
doubled    GM -> UB once, then copied by the vector unit: 1, 2, 4, .. rows; the same use
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from davinci.isa.core import DTYPES
from davinci.machine import Machine, prices
from davinci.schedule.vector.row_places import block_lanes
from davinci.schedule.vector.steps import RESULT, BufferStep, BufferSteps, View, copy_of, cost_of


class TableKind(Enum):
    DIRECT = "direct"
    MOVED = "moved"
    DOUBLED = "doubled"


@dataclass(frozen=True)
class RowTable:
    """A way to have a row beside the rows of a tile.

    Attributes:
        ub_bytes: of UB that it takes.
        vector_cycles: of the vector unit, to make it and for all uses.
        moving_cycles: of PIPE_MTE1.
    """

    kind: TableKind
    ub_bytes: int
    vector_cycles: int
    moving_cycles: int


def tables(rows: int, lanes: int, dtype: str, machine: Machine, uses: int) -> list[RowTable]:
    """The ways for tiles [rows, lanes], combined with the row `uses` times in all."""
    row_bytes = lanes * DTYPES[dtype].itemsize
    blocks, block = lanes // block_lanes(dtype), block_lanes(dtype)
    shape = (rows, blocks, block)
    whole, row = View("x", shape, (lanes, block, 1)), View("row", shape, (0, block, 1))
    _, direct = cost_of(BufferStep("vadd", (whole, row, whole)), dtype, machine)
    _, equal = cost_of(BufferStep("vadd", (whole, whole, whole)), dtype, machine)
    made = doubling(rows, lanes, dtype).estimate(machine).cycles
    found = [
        RowTable(TableKind.DIRECT, row_bytes, uses * direct, 0),
        RowTable(TableKind.DOUBLED, rows * row_bytes, made + uses * equal, 0),
    ]
    if prices.has_l1_to_ub(machine):
        moving = rows * math.ceil(prices.l1_to_ub(machine, row_bytes))
        found.append(RowTable(TableKind.MOVED, rows * row_bytes, uses * equal, moving))
    return found


def best_table(
    rows: int, lanes: int, dtype: str, machine: Machine, *, uses: int, room: int, hidden: int
) -> RowTable:
    """The way that takes least time.

    Args:
        uses: how often a core combines a tile with the row.
        room: bytes of UB that it may take; a single row is always allowed.
        hidden: cycles from the start of the kernel until the row is used first, in which it is
            moved at no cost.
    """

    def cycles(table: RowTable) -> int:
        return table.vector_cycles + max(0, table.moving_cycles - hidden)

    found = tables(rows, lanes, dtype, machine, uses)
    return min((t for t in found if t.kind is TableKind.DIRECT or t.ub_bytes <= room), key=cycles)


def doubling(rows: int, lanes: int, dtype: str) -> BufferSteps:
    """The first row of `RESULT`, [rows, lanes], to all others."""
    steps, done = [], 1
    while done < rows:
        count = min(done, rows - done) * lanes
        source, more = View(RESULT, (count,), (1,)), View(RESULT, (count,), (1,), done * lanes)
        steps.append(copy_of(source, more, dtype))
        done += count // lanes
    return BufferSteps(dtype, tuple(steps), {})
