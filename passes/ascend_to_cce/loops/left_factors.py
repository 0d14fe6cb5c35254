"""What the cores of a kernel that share the lanes of loops tell each other, and how they meet.

    kernel arguments behind its own:
      counters   i32 [lines, 8]                      of each core one or two, see `cce.sync_cores`
      parts      f16 [2, k / 16, rows, 16]           of each left factor, one step after the other;
                                                     of one row whole fractals, [2, k / 16, 1, 16]
    in each step, before the products of a left factor:
      UB -> parts[step mod 2, own columns]           each core the lanes that it computes
      sync_and_copy parts[step mod 2] -> L1          all of them; or to L0A, where they are vectors

Two arrays take turns: a core that is a step ahead writes the other one, and cannot be two steps
ahead, as it meets the others of its loop in between.

A left factor may be what a loop hands on to the one behind it, whose cores load it a step later,
before they meet; then three arrays take turns. Steps are counted for all loops of the kernel
together. A core waits for those of the loop that hands rows on to its own, and of the loop that it
hands rows on to, but for these only until they are no more than a step behind. Loops so are as far
apart as their cores take times to come, and none waits for the slowest of all in each step. The
lines of three loops:

    own 0 | early 1 | own 1 | early 2 | own 2      a core of loop 1 looks at all but the last
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from davinci.dialects.cce import build as cce
from davinci.mlir import Op, arith, ir
from davinci.passes.ascend_to_cce.exchange import LANES, add_arguments
from davinci.passes.builder import IndexLike, add, alloc, as_value, remainder, subview
from davinci.schedule.loops.choice import factor_handed_on, giver_of
from davinci.schedule.loops.group import HANDED, LoopGroup
from davinci.schedule.loops.schedule import LoopSchedule, terms_of
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import round_up

TURNS, TURNS_HANDED_ON = 2, 3

LOADED_AGAIN = 7
"""Counters that the last core of a loop loads again in each look if it computes lanes of another.
It begins some cycles before or behind the others, and if all looked equally long, those who are
early would look a second time in each step and be late in the next one, in turns and for ever. So
they drift towards each other until one look is enough."""


@dataclass(frozen=True)
class Seats:
    """Where the cores of a loop have their counters, and which they look at: attributes of
    `cce.sync_cores`.

    Attributes:
        own: the line of a core, less the number of its block.
        early: the line that the loop in front looks at, the same way; None if there is no such.
        first, count: the lines that a core looks at.
    """

    own: int
    early: int | None
    first: int
    count: int


def seats_of(units: Sequence[int], handed: Sequence[bool]) -> list[Seats]:
    """The counters of loops.

    Args:
        units: cores of each loop.
        handed: of each loop, whether the one in front hands rows on to it.
    """
    early, own, block = [], [], []
    lines = blocks = 0
    for count, taken in zip(units, handed, strict=True):
        early.append(lines)
        own.append(lines + count if taken else lines)
        block.append(blocks)
        lines, blocks = own[-1] + count, blocks + count
    found = []
    for number, (count, taken) in enumerate(zip(units, handed, strict=True)):
        first, end = own[number - 1] if taken else own[number], own[number] + count
        if number + 1 < len(units) and handed[number + 1]:
            end = own[number + 1]
        ahead = early[number] - block[number] if taken else None
        found.append(Seats(own[number] - block[number], ahead, first, end - first))
    return found


@dataclass(frozen=True)
class Exchange:
    """The arrays in global memory by which cores exchange left factors.

    Attributes:
        counters: of all cores of the kernel.
        seats: of each loop, where its cores have their counters.
        parts: of each loop, by the number of the left factor.
        handed: of each loop, those of what is handed on to it, and the columns of that; None if
            nothing is.
        handed_on: of each loop, the left factors that it hands on.
    """

    counters: ir.Value
    seats: list[Seats]
    parts: list[dict[int, ir.Value]]
    handed: list[tuple[ir.Value, int] | None]
    handed_on: list[set[int]]


def exchange_of(kernel: Op, loops: Sequence[tuple[LoopGroup, LoopSchedule]]) -> Exchange | None:
    """The arrays of a kernel whose loops share lanes, which become arguments of it; None if they
    share rows."""
    if not all(schedule.shares_lanes for _, schedule in loops):
        return None
    groups = [group for group, _ in loops]
    sources: list[tuple[int, int] | None] = []
    for number, group in enumerate(groups):
        giver = giver_of(groups, number)
        own = None
        if giver is not None and group.source is not None:
            own = giver, factor_handed_on(groups[giver], group.source)
        sources.append(own)
    given = {source for source in sources if source is not None}
    seats = seats_of([each.units for _, each in loops], [each is not None for each in sources])
    last = seats[-1]
    lines = last.first + last.count
    i32, f16 = ir.IntegerType.get_signless(32), ir.F16Type.get()
    shapes: list[tuple[list[int], ir.Type]] = [([lines, LANES], i32)]
    places: list[dict[int, int]] = []
    columns: list[dict[int, int]] = []
    for number, (group, schedule) in enumerate(loops):
        of: dict[int, int] = {}
        columns.append({term.a: term.k for term in terms_of(group.products)})
        for term in terms_of(group.products):
            if term.a not in of and term.a != HANDED:
                of[term.a] = len(shapes)
                turns = TURNS_HANDED_ON if (number, term.a) in given else TURNS
                blocks = round_up(term.k // SIDE, SIDE if schedule.rows == 1 else 1)
                shapes.append(([turns, blocks, schedule.rows, SIDE], f16))
        places.append(of)
    kinds = [ir.MemRefType.get(shape, element) for shape, element in shapes]
    made = add_arguments(kernel, kinds)
    parts = [{a: made[n] for a, n in of.items()} for of in places]
    handed = [
        None if source is None else (parts[source[0]][source[1]], columns[source[0]][source[1]])
        for source in sources
    ]
    handed_on = [{a for giver, a in given if giver == number} for number in range(len(loops))]
    return Exchange(made[0], seats, parts, handed, handed_on)


class Meeting:
    """The meetings of a core with the others of its loop and of those that hand rows on to it or
    take its own, in each step as often as there are left factors.

    Args:
        exchange: the arrays.
        loop: number of the loop.
        delay: steps of other loops before its first one.
        longer: whether a look at counters takes longer than those of the loop's other cores.

    Attributes:
        handed_on: the left factors that the loop hands on.
    """

    def __init__(self, exchange: Exchange, loop: int, delay: int, longer: bool) -> None:
        self.lines, self.parts = exchange.counters, exchange.parts[loop]
        self.handed_on, self._handed = exchange.handed_on[loop], exchange.handed[loop]
        self._delay = delay
        self._order = {a: number for number, a in enumerate(self.parts)}
        seats = exchange.seats[loop]
        # A step has a meeting for each left factor, and one that is early is a step ahead.
        early = None if seats.early is None else (seats.early, len(self.parts))
        self._some: cce.SomeBlocks = {}
        if len(exchange.seats) > 1:
            seen = seats.first, seats.count
            self._some = {"own": seats.own, "early": early, "seen": seen}
        self._in_steps = self._some.copy()
        if longer:
            self._in_steps["again"] = LOADED_AGAIN
        rows = seats.count + (1 if early is None else 2)
        self._scratch = alloc([rows, LANES], ir.IntegerType.get_signless(32), "UB")
        self._begun = cce.read_counter(self.lines, self._scratch, **self._some)

    def step(self, time: IndexLike) -> IndexLike:
        """The number of a step of the loop among those of all loops."""
        return add(time, self._delay) if self._delay else time

    def part(self, a: int, step: IndexLike, first: IndexLike, count: int) -> ir.Value:
        """Blocks of 16 columns of a left factor in a step of all loops, [count, rows, 16]."""
        return _columns(self.parts[a], step, first, count)

    def handed(self, time: IndexLike) -> ir.Value:
        """The row that is handed on to a step of the loop, which was stored the step before."""
        assert self._handed is not None, "a loop that another one hands rows on to"
        array, columns = self._handed
        return _columns(array, add(time, self._delay - 1), 0, columns // SIDE)

    @property
    def columns_handed(self) -> int:
        """Columns of the rows that are handed on."""
        assert self._handed is not None, "a loop that another one hands rows on to"
        return self._handed[1]

    def meet(self, a: int, time: IndexLike, parts: ir.Value, target: ir.Value) -> None:
        """Waits until all cores of the loop have stored their parts of a left factor in a step, and
        loads them."""
        number = self._number(self.step(time), self._order[a])
        cce.sync_and_copy(self.lines, number, self._scratch, parts, target, **self._in_steps)

    def wait_before(self) -> None:
        """Waits for the row of the loop's first step that is handed on to it."""
        if self._delay:
            self._only_meet(self._delay - 1)

    def wait_behind(self, steps: int, count: int) -> None:
        """Lets the others be `count` steps ahead behind all `steps` of the loop; all counters are
        equal then, where the next launch begins to count."""
        if count:
            self._only_meet(self._delay + steps + count - 1)

    def _only_meet(self, step: int) -> None:
        """The last meeting of a step of all loops, in which the core has nothing to do."""
        number = self._number(step, len(self.parts) - 1)
        cce.sync_cores(self.lines, number, self._scratch, **self._some)

    def _number(self, step: IndexLike, order: int) -> ir.Value:
        """What counters have to reach in a step of all loops, for a left factor by its order."""
        i32 = ir.IntegerType.get_signless(32)
        number = arith.IndexCastOp(i32, as_value(step)).result

        def constant(value: int) -> ir.Value:
            return arith.ConstantOp(i32, ir.IntegerAttr.get(i32, value)).result

        met = arith.MulIOp(number, constant(len(self.parts))).result
        met = arith.AddIOp(met, constant(order + 1)).result
        return arith.AddIOp(self._begun, met).result


def _columns(array: ir.Value, step: IndexLike, first: IndexLike, count: int) -> ir.Value:
    """Blocks of 16 columns of the array whose turn it is in a step, [count, rows, 16]."""
    turns, _, rows, side = ir.MemRefType(array.type).shape
    start = [remainder(step, turns), first, 0, 0]
    return subview(array, start, [1, count, rows, side], drop=[0])
