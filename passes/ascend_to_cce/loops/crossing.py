"""Where the cube core of a block and the vector cores beside it hand each other what a step of a
loop makes, on a split machine: arrays in global memory, and flags.

    vector cores                                    cube core
      left factor -> lefts[step mod 2]
      set_core_flag LEFT                              wait_core_flag LEFT
                                                      set, wait MET of all cube cores, if lanes
                                                      are shared
                                                      lefts[step mod 2] -> L1 or L0A, products
                                                      sums -> results[step mod 2]
      wait_core_flag MADE                             set_core_flag MADE
      results[step mod 2] -> UB
      set_core_flag TAKEN, behind the last one        wait_core_flag TAKEN, two steps later

Two places are enough for left factors without a flag of their own: a vector core that stores one
has waited for the results of the step before it, for which all cube cores that load left factors
have met, with those of two steps before it loaded. Results may be loaded later than they are waited
for, so vector cores tell when they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from davinci.dialects.cce import build as cce
from davinci.machine import Machine
from davinci.mlir import ir
from davinci.passes.builder import IndexLike, remainder, reshaped, subview
from davinci.schedule.loops.group import LoopGroup
from davinci.schedule.loops.schedule import LoopSchedule, products_of, terms_of
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div, round_up

LEFT, MET, MADE, TAKEN = 1, 2, 3, 4
"""Flags: of a left factor, from the vector cores; of all cube cores, that theirs are there; of a
result, from the cube core; that those of a step were taken, from its vector cores."""

AHEAD = 2
"""Steps whose left factors and results have places of their own."""


@dataclass(frozen=True)
class LoopCrossing:
    """The arrays of a loop as one program sees them.

    Attributes:
        lefts: of each left factor, by its number, f16 [groups][places][k / 16][rows][16]: one group
            where cores share lanes, else one for each unit.
        results: of each product, by the number of its result, f32
            [units][places][rows][results that come together][lanes in whole blocks of 16].
    """

    lefts: dict[int, ir.Value]
    results: dict[int, ir.Value]

    def made(self, c: int, unit: IndexLike, time: IndexLike) -> ir.Value:
        """What the cube core makes of a product in a step, [rows][columns]."""
        units, places, rows, parts, lanes = ir.MemRefType(self.results[c].type).shape
        array = reshaped(self.results[c], [units, places, rows, parts * lanes])
        start = [unit, remainder(time, AHEAD), 0, 0]
        return subview(array, start, [1, 1, rows, parts * lanes], drop=[0, 1])

    def taken(
        self, c: int, unit: IndexLike, time: IndexLike, first: Sequence[IndexLike], size: list[int]
    ) -> ir.Value:
        """What a vector core takes of it, [rows][results that come together][lanes].

        Args:
            first, size: row, result and lane.
        """
        start = [unit, remainder(time, AHEAD), *first]
        return subview(self.results[c], start, [1, 1, *size], drop=[0, 1])

    def left(
        self, a: int, unit: IndexLike, time: IndexLike, first: Sequence[IndexLike], size: list[int]
    ) -> ir.Value:
        """Blocks of 16 columns of a left factor in a step, [blocks][rows][16].

        Args:
            first, size: block and row.
        """
        array = self.lefts[a]
        group = 0 if ir.MemRefType(array.type).shape[0] == 1 else unit
        start = [group, remainder(time, AHEAD), *first, 0]
        return subview(array, start, [1, 1, *size, SIDE], drop=[0, 1])


def left_types(group: LoopGroup, schedule: LoopSchedule) -> list[ir.MemRefType]:
    """The types of the arrays of left factors of a loop, which hold zeros at first: the cube takes
    a vector in whole fractals, of which the last may have more elements."""
    groups = 1 if schedule.shares_lanes else schedule.units
    found = []
    for a, k in {term.a: term.k for term in terms_of(group.products)}.items():
        blocks = round_up(ceil_div(k, SIDE), SIDE if schedule.is_vector(a) else 1)
        shape = [groups, AHEAD, blocks, schedule.rows, SIDE]
        found.append(ir.MemRefType.get(shape, ir.F16Type.get()))
    return found


def result_types(group: LoopGroup, schedule: LoopSchedule, machine: Machine) -> list[ir.MemRefType]:
    """The types of the arrays of results of a loop, one for each product of a core."""
    lanes = round_up(schedule.lanes, SIDE)
    found = []
    for product in products_of(group, schedule, machine):
        shape = [schedule.units, AHEAD, schedule.rows, ceil_div(product.n, lanes), lanes]
        found.append(ir.MemRefType.get(shape, ir.F32Type.get()))
    return found


def crossing_of(
    group: LoopGroup,
    schedule: LoopSchedule,
    machine: Machine,
    lefts: Sequence[ir.Value],
    results: Sequence[ir.Value],
) -> LoopCrossing:
    """The crossing of a loop, given its arrays."""
    numbers = dict.fromkeys(term.a for term in terms_of(group.products))
    made = [product.c for product in products_of(group, schedule, machine)]
    factors, sums = (zip(*each, strict=True) for each in ((numbers, lefts), (made, results)))
    return LoopCrossing(dict(factors), dict(sums))


def meet() -> None:
    """Waits for all cube cores of the launch."""
    cce.set_core_flag(pipe="FIX", flag=MET, of_all=True)
    cce.wait_core_flag(flag=MET)
