"""Transfers whose innermost dimension is another one in the result than in the source: transposes.

These two dimensions span a matrix, all others count matrices:

    for each matrix, portion of its rows, portion of its columns:
      copy rows x columns in; transpose 16 x 16 squares of words; copy columns x rows out

16 rows at a time, or 16 columns, whichever takes fewer instructions. Elements of 32 and 64 bits are
w = 2 and 4 words (p = 0 .. w - 1); three passes bring them to their places, rows at equal distances
in each:

    element (j, c):   in [j][w c + p]  ->  [w c + p][j]  ->  [w j + p][c]  ->  out [c][w j + p]

Bytes are widened to f16 numbers of the same value, and made bytes again. Portions are whole
squares; at ragged ends they overlap.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

from davinci.isa.strides import SharedDim
from davinci.isa.transpose import ROWS as SIDE
from davinci.machine import Machine, prices
from davinci.schedule.moves.portions import SLOTS, AlikePieces, Portions, in_blocks
from davinci.schedule.moves.transfers import Transfer, TransferCosts, together
from davinci.schedule.vector.step_costs import turn_cycles
from davinci.schedule.vector.steps import TRANSPOSITION, BufferStep, View, cost_of
from davinci.units import ceil_div, round_up

HALF_BYTES = 2
"""Bytes of an element of vnchwconv."""

SIZES = (1, 2, 4, 8)
"""Bytes of elements that are transposed so."""

SHARES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128)
"""Portions of a side that are tried."""


def quantum(itemsize: int) -> int:
    """What sides of tiles are multiples of: squares of words, and whole blocks of bytes."""
    return 2 * SIDE if itemsize == 1 else SIDE


def bytes_of(itemsize: int) -> int:
    """Bytes of UB that an element of a tile takes."""
    return 2 * itemsize + (2 * HALF_BYTES if itemsize == 1 else 0)


@dataclass(frozen=True)
class Squares(AlikePieces):
    """A transfer of matrices that are transposed.

    Attributes:
        others: the dimensions that count the matrices.
        rows, columns: contiguous in the result, and in the source.
        high, wide: their portions.
        slots: tiles that have buffers at a time, where a core does several pieces of work.
        cycles: of a tile by itself.
        further: of each that the same core does behind it.
    """

    transfer: Transfer
    others: tuple[SharedDim, ...]
    rows: SharedDim
    columns: SharedDim
    high: Portions
    wide: Portions
    slots: int = 1
    cycles: float = 0.0
    further: float = 0.0

    @property
    def units(self) -> int:
        """Pieces of work: a tile, or all that overlap."""
        return math.prod(d.size for d in self.others) * self.high.units * self.wide.units

    def time(self, units: int) -> float:
        longest = (1 + self.high.overlaps) * (1 + self.wide.overlaps)
        average = self.high.tiles * self.wide.tiles / (self.high.units * self.wide.units)
        return super().time(max(longest, math.ceil(average * units)))

    def __str__(self) -> str:
        return f"squares, {self.high.largest} x {self.wide.largest} a tile"


def squares_of(transfer: Transfer, machine: Machine, cores: int) -> Squares | None:
    """The way of fewest cycles; None if the transfer is no transposition of matrices with sides of
    a square or more."""
    dims, size = transfer.dims, transfer.itemsize
    if not dims or transfer.filled or size not in SIZES:
        return None
    *others, rows = dims
    columns = next((d for d in others if d.strides[0] == 1), None)
    if rows.strides[1] != 1 or rows.strides[0] in (0, 1) or columns is None:
        return None
    if min(rows.size, columns.size) < quantum(size):
        return None
    others.remove(columns)
    found = [
        _weighed(Squares(transfer, tuple(others), rows, columns, high, wide), machine, cores)
        for high, wide in itertools.product(_cuts(rows.size, size), _cuts(columns.size, size))
        if high.largest * wide.largest * bytes_of(size) <= machine.buffers.UB.bytes
    ]
    return min(found, key=lambda way: way.time(ceil_div(way.units, cores)), default=None)


def _cuts(total: int, itemsize: int) -> list[Portions]:
    """Ways to cut a side."""
    unit, found = quantum(itemsize), {}
    for share in SHARES:
        size = round_up(ceil_div(total, share), unit)
        if size >= total:
            found[total] = in_blocks(Portions(total, total, 0, total), unit)
        elif size not in found:
            count, rest = divmod(total, size)
            found[size] = Portions(total, size, count, round_up(rest, unit))
    return list(found.values())


def _weighed(way: Squares, machine: Machine, cores: int) -> Squares:
    """Squares with the cycles estimated that a core takes for one of them."""
    itemsize, unit = way.transfer.itemsize, machine.vector
    costs = TransferCosts(machine, min(way.units, cores))
    high, wide = way.high.largest, way.wide.largest
    if SLOTS * high * wide * bytes_of(itemsize) <= machine.buffers.UB.bytes:
        way = replace(way, slots=SLOTS)
    loaded = together([SharedDim(high, way.rows.strides)], wide, 0)
    stored = together([SharedDim(wide, way.columns.strides)], high, 1)
    read = costs.read(high * wide // loaded, loaded * itemsize, shared=True)
    write = costs.write(high * wide // stored, stored * itemsize)
    words = max(1, itemsize // HALF_BYTES)
    sides = [(high, words * wide)]
    if words > 1:
        sides += [*[(wide, high)] * words, (wide, words * high)]
    vector = 0.0
    for a, b in sides:
        times, repeats = min(a, b) // SIDE, max(a, b) // SIDE
        view = View("", (SIDE, repeats, SIDE), (1, SIDE, 1))
        step = BufferStep(TRANSPOSITION, (view, view))
        vector += times * cost_of(step, "f16", machine)[1] + machine.sync.barrier_cycles
    if itemsize == 1:
        lanes = unit.repeat_bytes // HALF_BYTES
        vector += prices.vector(machine, "vconv", "f16", 2 * high * wide / lanes, 2)
    further = turn_cycles(machine, vector, read, write, way.slots)
    return replace(way, cycles=costs.starts + read + vector + write, further=further)
