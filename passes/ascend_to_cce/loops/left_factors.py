"""What the cores of a kernel that share the lanes of loops tell each other, and how they meet.

    kernel arguments behind its own:
      counters   i32 [cores, 8]                      a line for each core, see `cce.sync_cores`
      parts      f16 [2, k / 16, rows, 16]           of each left factor, one step after the other
    in each step, before the products of a left factor:
      UB -> parts[step mod 2, own columns]           each core the lanes that it computes
      sync_cores
      parts[step mod 2] -> L1                        all of them

Two arrays take turns: a core that is a step ahead writes the other one, and cannot be two steps
ahead, as it meets all others in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from davinci.dialects.cce import build as cce
from davinci.mlir import arith, ir
from davinci.passes.ascend_to_cce.exchange import LANES, add_arguments
from davinci.passes.builder import IndexLike, alloc, as_value, remainder, subview
from davinci.schedule.loops.group import LoopGroup
from davinci.schedule.loops.schedule import LoopSchedule
from davinci.units import FRACTAL_SIDE as SIDE

TURNS = 2


@dataclass(frozen=True)
class Exchange:
    """The arrays in global memory by which cores exchange left factors.

    Attributes:
        counters: of all cores of the kernel.
        parts: of each loop, by the number of the left factor.
    """

    counters: Any
    parts: list[dict[int, Any]]


def exchange_of(
    kernel: ir.Operation, loops: Sequence[tuple[LoopGroup, LoopSchedule]]
) -> Exchange | None:
    """The arrays of a kernel whose loops share lanes, which become arguments of it; None if they
    share rows."""
    if not all(schedule.shares_lanes for _, schedule in loops):
        return None
    cores = sum(schedule.units for _, schedule in loops)
    i32, f16 = ir.IntegerType.get_signless(32), ir.F16Type.get()
    shapes: list[tuple[list[int], ir.Type]] = [([cores, LANES], i32)]
    places: list[dict[int, int]] = []
    for group, schedule in loops:
        own: dict[int, int] = {}
        for product in group.products:
            if product.a not in own:
                own[product.a] = len(shapes)
                shapes.append(([TURNS, product.k // SIDE, schedule.rows, SIDE], f16))
        places.append(own)
    kinds = [ir.MemRefType.get(shape, element) for shape, element in shapes]
    made = add_arguments(kernel, kinds)
    return Exchange(made[0], [{a: made[n] for a, n in own.items()} for own in places])


class Meeting:
    """The meetings of a core with the others, in each step as often as there are left factors.

    Args:
        exchange: the arrays.
        parts: those of the loop's left factors.
    """

    def __init__(self, exchange: Exchange, parts: dict[int, Any]) -> None:
        self.lines, self.parts = exchange.counters, parts
        cores = ir.MemRefType(self.lines.type).shape[0]
        self._scratch = alloc([cores + 1, LANES], ir.IntegerType.get_signless(32), "UB")
        self._begun = cce.read_counter(self.lines, self._scratch)
        self._order = {a: number for number, a in enumerate(parts)}

    def part(self, a: int, time: IndexLike, first: IndexLike, count: int) -> Any:
        """Blocks of 16 columns of a left factor in a step, [count, rows, 16]."""
        array = self.parts[a]
        _, _, rows, side = ir.MemRefType(array.type).shape
        start = [remainder(time, TURNS), first, 0, 0]
        return subview(array, start, [1, count, rows, side], drop=[0])

    def meet(self, a: int, time: IndexLike) -> None:
        """Waits until all cores have stored their parts of a left factor in a step."""
        i32 = ir.IntegerType.get_signless(32)
        step = arith.IndexCastOp(i32, as_value(time)).result

        def number(value: int) -> Any:
            return arith.ConstantOp(i32, ir.IntegerAttr.get(i32, value)).result

        met = arith.MulIOp(step, number(len(self.parts))).result
        met = arith.AddIOp(met, number(self._order[a] + 1)).result
        cce.sync_cores(self.lines, arith.AddIOp(self._begun, met).result, self._scratch)
