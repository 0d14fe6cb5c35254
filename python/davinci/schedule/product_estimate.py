"""About how many cycles a schedule of a product takes.

Of each pipe: its work, what has to come before its first and what follows its last. Data passes
MTE2, then V and MTE3 if it comes in rows, MTE1, M, and V and MTE3 as the result.
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci.machine import Machine
from davinci.schedule.product import Product, ProductSchedule
from davinci.schedule.product_cost import Busy, Costs
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div

FRACTAL = SIDE * SIDE

UNEVEN, OVERLAP = 0.5, 0.6
"""Parts of the time lost to uneven tiles, and gained where shares follow each other, measured."""


@dataclass(frozen=True)
class Tiles:
    """Tiles of a share that are alike.

    Attributes:
        count: how many.
        fills: how many panels, k deep, of A and of B have to come for each to L1, on average.
        loads: the same of L0A and L0B.
    """

    count: int
    fills: tuple[float, float]
    loads: tuple[float, float]


def tiles_of(product: Product, schedule: ProductSchedule) -> list[Tiles]:
    """The tiles of a share by what has to come for them.

    A panel of the operand of the outer loop stays for the tiles of the inner one if there is room
    for it; panels of the other operand for the next round if there is room for all of them.
    """
    share, tile, k = schedule.share, schedule.tile, product.fractals.k
    rows, columns = ceil_div(share.m, tile.m), ceil_div(share.n, tile.n)
    tiles, steps = share.batch * rows * columns, ceil_div(k, tile.k)
    if schedule.outer == "k":
        return [Tiles(tiles, (1 / columns, 1 / rows), (1.0, 1 / rows))]
    by_rows = schedule.outer == "m"
    outer, inner = (rows, columns) if by_rows else (columns, rows)
    panels = [ceil_div(k, schedule.a.k), ceil_div(k, schedule.b.k)]
    slots, blocks = [schedule.a.slots, schedule.b.slots], [schedule.l0a, schedule.l0b]
    if not by_rows:
        panels, slots, blocks = panels[::-1], slots[::-1], blocks[::-1]
    held, kept = slots[0] >= panels[0], slots[1] >= panels[1] * inner
    loaded = blocks[0] >= steps
    found = []
    for first_round, first_tile, count in (
        (True, True, 1),
        (True, False, inner - 1),
        (False, True, outer - 1),
        (False, False, (outer - 1) * (inner - 1)),
    ):
        fills = (float(first_tile or not held), float(first_round or not kept))
        loads = (float(first_tile or not loaded), 1.0)
        if count:
            pairs = (fills, loads) if by_rows else (fills[::-1], loads[::-1])
            found.append(Tiles(share.batch * count, *pairs))
    return found


def estimate(product: Product, schedule: ProductSchedule, machine: Machine, cores: int) -> float:
    """Cycles on that many cores."""
    share, whole = schedule.share, product.fractals
    rows, columns = ceil_div(whole.m, share.m), ceil_div(whole.n, share.n)
    shares = ceil_div(product.batch, share.batch) * rows * columns
    used, tiles = min(cores, shares), tiles_of(product, schedule)
    once = whole.m * whole.k * product.a.itemsize + whole.k * whole.n * product.b.itemsize
    once *= product.batch * FRACTAL
    each = schedule.tile.m * product.a.itemsize, schedule.tile.n * product.b.itemsize
    panels = [sum(kind.count * kind.fills[i] for kind in tiles) for i in (0, 1)]
    of_share = [panel * size * whole.k * FRACTAL for panel, size in zip(panels, each, strict=True)]
    read = shares * sum(of_share)
    rate = machine.cores * machine.l2.read_bytes_per_cycle / used
    slower = max(1.0, machine.mte2.port_bytes_per_cycle / rate)
    # Cores that have a row of shares read the same of A, those that have a column the same of B.
    others = of_share[0] * (min(columns, used) - 1) + of_share[1] * (min(rows, used) - 1)
    slower *= 1 + others / sum(of_share) * machine.gm.same_line_percent / 100
    costs = Costs(product, machine, min(1.0, once / read), slower)
    memory = once / (machine.gm.read_bytes_per_cycle * machine.cores)
    first, more = share_cycles(costs, schedule, tiles)
    return max(memory, first + (ceil_div(shares, used) - 1) * more)


def share_cycles(
    costs: Costs, schedule: ProductSchedule, tiles: list[Tiles]
) -> tuple[float, float]:
    """Cycles of a share, and those that one takes which begins while the one before it ends."""
    product, machine, k = costs.product, costs.machine, costs.product.fractals.k
    steps = ceil_div(k, schedule.tile.k)
    loads = [costs.load(schedule, name) for name in ("a", "b")]
    mad, part, load = costs.mad(schedule), costs.leave(schedule), loads[0] + loads[1]
    tile, (columns, height) = schedule.tile, schedule.part
    parts = ceil_div(tile.n, columns) * ceil_div(tile.m, height)
    panels, first, last = [], Busy(), Busy()
    for name in ("a", "b"):
        pieces, operand = schedule.pieces(name), product.operand(name)
        along, across = (pieces.k, pieces.other) if operand.k_rows else (pieces.other, pieces.k)
        rows = min(along, pieces.rows)
        each = costs.fill(name, pieces, *((rows, across) if operand.k_rows else (across, rows)))
        transfers = ceil_div(along, rows)
        panels.append(each * (ceil_div(k, pieces.k) * transfers))
        needed = ceil_div(min(along, schedule.tile.k), rows) if operand.k_rows else transfers
        first += each * needed
        last = each if each.sum > last.sum else last
    busy, alike, count = Busy(), 0.0, sum(kind.count for kind in tiles)
    for kind in tiles:
        work = mad * steps + part * parts
        for i in (0, 1):
            work = work + panels[i] * kind.fills[i] + loads[i] * (steps * kind.loads[i])
        busy += work * kind.count
        alike += work.most * kind.count
    begin, end = machine.mte2.start_cycles, machine.mte3.start_cycles
    # The first mad waits for the pieces of its step; the last tile leaves after the last one.
    to_mad = begin + first.most + last.sum - last.most + load.sum
    leaving = part * parts
    from_mad = machine.cube.latency_cycles + leaving.most + part.sum - part.most + end
    around = max(
        to_mad + busy.m + from_mad,
        to_mad - load.sum + busy.mte1 + mad.sum + from_mad,
        begin + busy.mte2 + last.sum - last.mte2 + load.sum + mad.sum + from_mad,
        begin + last.mte2 + busy.v + part.mte3 + end,
        # What is done to C begins when the first tile is complete.
        to_mad + mad.m * steps + part.v * parts * count + part.mte3 + end,
        begin + last.mte2 + last.v + busy.mte3 + end,
    )
    # A pipe that has much to do for some tiles holds those up, however little it has for others;
    # what comes ahead makes up for a part of that.
    once = around + (alike - busy.most) * UNEVEN
    return once, max(busy.most, once - (to_mad + from_mad) * OVERLAP)
