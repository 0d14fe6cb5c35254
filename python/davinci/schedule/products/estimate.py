"""About how many cycles a schedule of a product takes.

Of each pipe: its work, what has to come before its first and what follows its last. Data passes
MTE2, then V and MTE3 if it comes in rows, MTE1, M, and V and MTE3 as the result.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

from davinci.machine import Machine, prices
from davinci.schedule.products.cost import Busy, ProductCosts
from davinci.schedule.products.memory import MemoryTraffic, memory_traffic
from davinci.schedule.products.product import Product, ProductSchedule
from davinci.units import ceil_div

UNEVEN, OVERLAP, CROWDED, TURNS = 0.5, 0.2, 0.03, 0.02
"""Parts of the time lost to uneven tiles, gained where shares follow each other, lost because the
other pipes have work as well, and lost where tiles take turns; measured."""

OVERLAP_POWER = 4
"""How well the memory and the cores work side by side: the greater, the less they wait."""


@dataclass(slots=True)
class Tiles:
    """Tiles of a share that are alike.

    Attributes:
        count: how many, on average.
        fills: how many panels, k deep, of A and of B have to come for each to L1, on average.
        loads: the same of L0A and L0B.
        new: whether panels of A and of B come that no tile before had.
    """

    count: float
    fills: tuple[float, float]
    loads: tuple[float, float]
    new: tuple[bool, bool]


def tiles_of(product: Product, schedule: ProductSchedule) -> list[Tiles]:
    """The tiles of a share by what has to come for them.

    A panel of the operand of the outer loop stays for the tiles of the inner one if there is room
    for it; panels of the other operand for the next round if there is room for all of them.
    """
    share, tile, k = schedule.share, schedule.tile, product.fractals.k
    down, across = schedule.beside
    times, rows = product.rows_of_tiles(share, tile)
    columns = ceil_div(share.n, tile.n)
    steps, by_rows = ceil_div(k, tile.k), schedule.outer == "m"
    groups = ceil_div(rows, down), ceil_div(columns, across)
    outer, inner = groups if by_rows else groups[::-1]
    # What one tile of a group brings serves those beside it, too.
    shares = [1 / across, 1 / down]
    panels = [ceil_div(k, schedule.a.k) * down, ceil_div(k, schedule.b.k) * across]
    slots, blocks = [schedule.a.slots, schedule.b.slots], [schedule.l0a, schedule.l0b]
    if not by_rows:
        panels, slots, blocks = panels[::-1], slots[::-1], blocks[::-1]
        shares = shares[::-1]
    held, kept = slots[0] >= panels[0], slots[1] >= panels[1] * inner
    loaded = blocks[0] >= steps and down * across == 1
    tiles, found = rows * columns / (outer * inner), []
    for first_round, first_tile, count in (
        (True, True, 1),
        (True, False, inner - 1),
        (False, True, outer - 1),
        (False, False, (outer - 1) * (inner - 1)),
    ):
        fills = shares[0] * (first_tile or not held), shares[1] * (first_round or not kept)
        loads = shares[0] * (first_tile or not loaded), shares[1]
        if count:
            new = first_tile, first_round
            pairs = (fills, loads, new) if by_rows else (fills[::-1], loads[::-1], new[::-1])
            found.append(Tiles(times * count * tiles, *pairs))
    return found


@dataclass(frozen=True)
class CoreTraffic:
    """What cores that work at the same time have to do with each other.

    Attributes:
        costs: with what others make longer.
        turns: shares of the busiest core.
        memory: the fewest cycles in which the memory moves what it has to.
        l2_rate: bytes a cycle that a core has of the L2.
        memory_rates: the same of A and of B, in the time in which what of them the L2 has not comes
            from the memory at the core's share of that; of direct operands no limit.
        spans: parts of the cores' time, and the cycles of the memory in each.
    """

    costs: ProductCosts
    turns: int
    memory: float
    l2_rate: float
    memory_rates: tuple[float, float]
    spans: tuple[tuple[float, float], ...]

    def cycles(self, cores: float) -> float:
        """Cycles in all, given those that the cores need: they and the memory work side by side,
        and wait for each other the more often the longer both take; no span is over before either
        is."""
        more: float = (self.memory**OVERLAP_POWER + cores**OVERLAP_POWER) ** (1 / OVERLAP_POWER)
        return max(more, sum(max(memory, cores * part) for part, memory in self.spans))

    def played(self, cycles: float) -> float:
        """Cycles in all, given those that the cores need as they are played, and so waits for the
        memory among them, unless operands are direct: those wait in ways that are not played."""
        return self.cycles(cycles) if self.costs.product.direct else max(self.memory, cycles)

    def longer_than_cores(self, cycles: float) -> bool:
        """Whether of so many cycles, all in all, the memory takes more than the cores do."""
        return 2 * self.memory**OVERLAP_POWER > cycles**OVERLAP_POWER


def traffic_of(
    plain: ProductCosts, schedule: ProductSchedule, cores: int, tiles: list[Tiles]
) -> CoreTraffic:
    """The traffic of a product on that many cores.

    Args:
        plain: costs of the product on one core alone.
    """
    product, machine = plain.product, plain.machine
    share, whole = schedule.share, product.fractals
    rows, columns = ceil_div(whole.m, share.m), ceil_div(whole.n, share.n)
    shares = shares_of(product, schedule)
    used = min(cores, shares)
    once = product.operand_bytes("a") + product.operand_bytes("b")
    each = product.panel_bytes("a", schedule.tile.m), product.panel_bytes("b", schedule.tile.n)
    panels = [sum(kind.count * kind.fills[i] for kind in tiles) for i in (0, 1)]
    of_share = [panel * size for panel, size in zip(panels, each, strict=True)]
    read = shares * sum(
        size * plain.lines_of(name, schedule) for size, name in zip(of_share, "ab", strict=True)
    )
    # Cores that have a row of shares read the same of A, those that have a column the same of B.
    others = of_share[0] * (min(columns, used) - 1) + of_share[1] * (min(rows, used) - 1)
    others /= schedule.starts  # not at the same time
    slower = 1 + others / sum(of_share) * machine.gm.same_line_percent / 100
    turns = ceil_div(shares, used)
    runs = {"a": (share.m, schedule.tile.m, rows), "b": (share.n, schedule.tile.n, columns)}
    alone = {
        name: count
        for name, (size, tile, count) in runs.items()
        if product.operand(name).k_rows and size == tile and turns == 1
    }
    moved = memory_traffic(product, schedule, machine, used, panels)
    working = max(used, product.at_work)
    rates, memory = prices.share_of(machine, working), moved.cycles(machine) * working / used
    a, b = (
        math.inf if product.direct else rates.read * shares * size / missed
        for size, missed in zip(of_share, moved.operands, strict=True)
    )
    return CoreTraffic(
        plain.beside_others(min(1.0, once / read), slower, alone),
        turns,
        memory,
        rates.l2_read,
        (a, b),
        spans_of(product, moved, tiles, turns, memory),
    )


def spans_of(
    product: Product, moved: MemoryTraffic, tiles: list[Tiles], turns: int, memory: float
) -> tuple[tuple[float, float], ...]:
    """Parts of the cores' time, and cycles of the memory in each: where the panels of an operand
    come to L1 several times, the first tiles wait for the memory and the others have the L2.

    Args:
        turns: shares of a core; of several the memory is as busy all the time.
        memory: its cycles in all.
    """
    if turns > 1 or not product.direct:
        return ((1.0, memory),)
    count, size = sum(kind.count for kind in tiles), sum(moved.operands) + moved.others
    found = []
    for kind in tiles:
        part = kind.count / count
        taken = moved.others * part
        for side in (0, 1):
            news = sum(each.count for each in tiles if each.new[side])
            again = any(each.fills[side] and not each.new[side] for each in tiles)
            again &= moved.rounds[side] <= 1
            taken += moved.operands[side] * (kind.new[side] * kind.count / news if again else part)
        found.append((part, memory * taken / size))
    return tuple(found)


def shares_of(product: Product, schedule: ProductSchedule) -> int:
    """How many shares a schedule cuts the matrices of C into."""
    share, whole = schedule.share, product.fractals
    rows, columns = ceil_div(whole.m, share.m), ceil_div(whole.n, share.n)
    return ceil_div(product.batch, share.batch) * rows * columns


def estimate(product: Product, schedule: ProductSchedule, machine: Machine, cores: int) -> float:
    """Cycles on that many cores."""
    return estimate_of(ProductCosts(product, machine), schedule, cores)


def estimate_of(plain: ProductCosts, schedule: ProductSchedule, cores: int) -> float:
    """The same, given the costs of the product on one core alone."""
    tiles = tiles_of(plain.product, schedule)
    traffic = traffic_of(plain, schedule, cores, tiles)
    port = prices.reading(plain.machine)
    crowd = max(1.0, port.bytes_per_cycle / traffic.l2_rate)
    first, more = share_cycles(traffic.costs, schedule, tiles, crowd)
    return traffic.cycles(first + (traffic.turns - 1) * more)


def least_on(costs: ProductCosts, cores: int) -> float:
    """What no estimate of a product is below on so many cores, whatever its schedule: of mads that
    they share evenly.

    Args:
        costs: of the product on one core alone.
    """
    product, machine = costs.product, costs.machine
    mads = product.batch * costs.mad(product.fractals).m
    return prices.ends(machine) + prices.mad_latency(machine) + mads / cores


class LeastCycles:
    """What no estimate of a schedule is below, whatever L1 has room for: of loads and mads, and
    what comes before the first and behind the last.

    Args:
        costs: of the product on one core alone.
    """

    def __init__(self, costs: ProductCosts, cores: int) -> None:
        self._costs, self._cores = costs, cores
        self._known: dict[tuple[object, ...], float] = {}

    def of(self, schedule: ProductSchedule) -> float:
        """The cycles of one; of all that differ in nothing that they follow from once."""
        a, b = schedule.a, schedule.b
        loops = schedule.share, schedule.tile, schedule.outer, schedule.beside
        pieces = a.together, b.together, self._costs.product.image and a.k
        key = loops, pieces, schedule.part, schedule.ragged
        if key not in self._known:
            self._known[key] = self._of(schedule)
        return self._known[key]

    def _of(self, schedule: ProductSchedule) -> float:
        """The bound of `of`: the busier one of the mads and the loads to L0, and what comes around
        them."""
        costs, cores, tile = self._costs, self._cores, schedule.tile
        product, machine = costs.product, costs.machine
        steps = ceil_div(product.fractals.k, tile.k)
        shares = shares_of(product, schedule)
        mad, a, b = costs.mad(tile), costs.load(schedule, "a"), costs.load(schedule, "b")
        m = mte1 = 0.0
        for kind in tiles_of(product, schedule):
            m += mad.m * steps * kind.count
            mte1 += (a.mte1 * kind.loads[0] + b.mte1 * kind.loads[1]) * steps * kind.count
        part, (columns, height) = costs.leave(schedule), schedule.part
        leaving = part * (ceil_div(tile.n, columns) * ceil_div(tile.m, height))
        ends = prices.ends(machine) + prices.mad_latency(machine)
        around = ends + leaving.most + part.sum - part.most
        once = around + max(a.mte1 + b.mte1 + m, mte1 + mad.m) + CROWDED * min(m, mte1)
        once *= 1 + TURNS * (math.prod(schedule.beside) - 1)
        return once + (ceil_div(shares, min(cores, shares)) - 1) * max(m, mte1)


class Fewest:
    """The fewest cycles of estimates, so many of them.

    Attributes:
        limit: schedules of more cycles come behind those when all are sorted, or are too slow.

    Args:
        alike: the part of their cycles in which schedules may differ that are alike.
        far: how many times as long as the fastest a schedule takes that is too slow.
    """

    def __init__(self, count: int, alike: float, far: float) -> None:
        self._count, self._alike, self._far, self.limit = count, alike, far, math.inf
        self._found: list[float] = []  # a heap of what is below 0: the most cycles first

    def add(self, cycles: float) -> None:
        """Counts another estimate."""
        self.limit = min(self.limit, cycles * self._far)
        heapq.heappush(self._found, -cycles)
        if len(self._found) > self._count:
            heapq.heappop(self._found)
        if len(self._found) == self._count:
            self.limit = min(self.limit, -self._found[0] * (1 + self._alike))


def stalls(schedule: ProductSchedule, tiles: list[Tiles], k: int, side: int) -> float:
    """How often a piece of A (`side` 0) or B comes only when the one in its place is used up,
    because L1 holds no more than what tiles beside each other need at a time."""
    pieces, beside = (schedule.a, schedule.b)[side], schedule.beside[side]
    panels = sum(kind.count * kind.fills[side] for kind in tiles)
    later = max(0.0, panels * ceil_div(k, pieces.k) - pieces.slots) / beside
    return later * max(0.0, 1 - (pieces.slots - beside) / beside)


@dataclass(slots=True)
class _Fills:
    """What comes to L1 for a tile.

    Attributes:
        panels: of A and of B, k deep.
        single: a piece of each.
        first: what the first mad waits for.
        last: the longest transfer.
    """

    panels: list[Busy]
    single: list[Busy]
    first: Busy
    last: Busy


def _fills(costs: ProductCosts, schedule: ProductSchedule) -> _Fills:
    """What comes to L1 for a tile of a schedule, in busy cycles of the pipes."""
    product = costs.product
    k, found = product.fractals.k, _Fills([], [], Busy(), Busy())
    for name in ("a", "b"):
        pieces, operand = schedule.pieces(name), product.operand(name)
        along, across = (pieces.k, pieces.other) if operand.k_rows else (pieces.other, pieces.k)
        rows = min(along, pieces.rows)
        each = costs.fill(name, pieces, *((rows, across) if operand.k_rows else (across, rows)))
        transfers = ceil_div(along, rows)
        found.panels.append(each * (ceil_div(k, pieces.k) * transfers))
        found.single.append(each * transfers)
        needed = ceil_div(min(along, schedule.tile.k), rows) if operand.k_rows else transfers
        found.first += each * needed
        found.last = each if each.sum > found.last.sum else found.last
    return found


def cycles_to_mad(
    costs: ProductCosts, schedule: ProductSchedule, fills: _Fills | None = None
) -> float:
    """Cycles of a share before its first mad, which waits for the pieces of its step."""
    fills = fills or _fills(costs, schedule)
    load = costs.load(schedule, "a") + costs.load(schedule, "b")
    begin = prices.reading(costs.machine).start_cycles
    return begin + fills.first.most + fills.last.sum - fills.last.most + load.sum


def cycles_from_mad(costs: ProductCosts, schedule: ProductSchedule) -> float:
    """Cycles of a share behind its last mad, in which the last tile leaves L0C."""
    machine, part, tile = costs.machine, costs.leave(schedule), schedule.tile
    columns, height = schedule.part
    leaving = part * (ceil_div(tile.n, columns) * ceil_div(tile.m, height))
    end = prices.writing(machine).start_cycles
    behind = prices.mad_latency(machine) + leaving.most + part.sum - part.most + end
    # Of tiles that take turns, the last but one leaves during the last turn.
    turn = costs.mad(tile).m * schedule.turn
    return behind + (math.prod(schedule.beside) - 1) * max(0, leaving.most - turn)


def share_cycles(
    costs: ProductCosts, schedule: ProductSchedule, tiles: list[Tiles], crowd: float
) -> tuple[float, float]:
    """Cycles of a share, and those that one takes which begins while the one before it ends.

    Args:
        crowd: how much longer reads take than the port does if all cores read all the time.
    """
    product, machine, k = costs.product, costs.machine, costs.product.fractals.k
    steps = ceil_div(k, schedule.tile.k)
    loads = [costs.load(schedule, name) for name in ("a", "b")]
    mad, part, load = costs.mad(schedule.tile), costs.leave(schedule), loads[0] + loads[1]
    tile, (columns, height) = schedule.tile, schedule.part
    parts = ceil_div(tile.n, columns) * ceil_div(tile.m, height)
    fills = _fills(costs, schedule)
    busy, alike, count = Busy(), 0.0, sum(kind.count for kind in tiles)
    # Mads wait for loads to the only buffer of an operand.
    alone, waits = (schedule.l0a == 1, schedule.l0b == 1), 0.0
    late = sum(stalls(schedule, tiles, k, i) * each.sum for i, each in enumerate(fills.single))
    beside = costs.beside(schedule, tile)
    of_tile = mad * steps + part * parts + beside
    if product.end.matrices:
        of_tile += costs.matrix(tile, product.end.matrix_columns(tile.m))
    a, b = fills.panels
    for kind in tiles:
        of_a, of_b = kind.fills
        to_l0 = [each.mte1 * steps * n for each, n in zip(loads, kind.loads, strict=True)]
        work = Busy(
            of_tile.mte2 + a.mte2 * of_a + b.mte2 * of_b,
            of_tile.v + a.v * of_a + b.v * of_b,
            of_tile.mte3 + a.mte3 * of_a + b.mte3 * of_b,
            of_tile.mte1 + to_l0[0] + to_l0[1],
            of_tile.m,
        )
        waits += (alone[0] * to_l0[0] + alone[1] * to_l0[1]) * kind.count
        busy += work * kind.count
        alike += work.most * kind.count
    # A core that did not read for a while makes up for that.
    stretched = busy.mte2 * crowd - machine.gm.idle_credit_cycles
    busy.mte2 = max(busy.mte2, stretched)
    begin, end = prices.reading(machine).start_cycles, prices.writing(machine).start_cycles
    to_mad, from_mad = cycles_to_mad(costs, schedule, fills), cycles_from_mad(costs, schedule)
    last = fills.last
    around = max(
        to_mad + busy.m + waits + from_mad,
        to_mad - load.sum + busy.mte1 + mad.sum + from_mad,
        begin + busy.mte2 + last.sum - last.mte2 + load.sum + mad.sum + from_mad,
        begin + last.mte2 + busy.v + part.mte3 + end,
        # What is done to C begins when the first tile is complete.
        to_mad + mad.m * steps + (part.v * parts + beside.v) * count + part.mte3 + end,
        begin + last.mte2 + last.v + busy.mte3 + end,
    )
    # A pipe that has much to do for some tiles holds those up, however little it has for others;
    # what comes ahead makes up for a part of that.
    once = around + (alike - busy.most) * UNEVEN + (busy.sum - busy.most) * CROWDED + late
    once *= 1 + TURNS * (math.prod(schedule.beside) - 1)
    return once, max(busy.most, once - (to_mad + from_mad) * OVERLAP)
