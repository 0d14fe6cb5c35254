"""What a product moves between the memory and the L2, which holds what was touched last.

An operand comes from the memory once, and again wherever more than the L2 holds was touched since:
by the tiles of a share between two rounds over the operand, or by the cores in their turns at
shares. Cores take shares in their order, columns of C first.

The memory moves whole lines. Where a tile takes a part of each stored row, the lines at both ends
of that part belong to its neighbours as well, which read them a tile later: they come once for each
of them where the L2 no longer holds them then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from davinci.isa.core import DTYPES
from davinci.machine import Machine, prices
from davinci.schedule.products.product import Product, ProductSchedule
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div


@dataclass(frozen=True)
class MemoryTraffic:
    """What passes between the memory and the L2.

    Attributes:
        operands: bytes of A and of B that come, of whole lines.
        rounds: how often A and B come, lines at the ends of parts of rows left out.
        others: bytes of C, and of what has its shape.
    """

    operands: tuple[float, float]
    rounds: tuple[float, float]
    others: float

    def cycles(self, machine: Machine) -> float:
        """The fewest cycles in which the memory moves all of it."""
        return (sum(self.operands) + self.others) / prices.share_of(machine, 1).read


def memory_traffic(
    product: Product,
    schedule: ProductSchedule,
    machine: Machine,
    used: int,
    panels: Sequence[float],
) -> MemoryTraffic:
    """What the memory has to move for a product.

    Args:
        used: cores that work at the same time.
        panels: of A and of B, k deep and as wide as a tile, that come in a share.
    """
    share, tile, whole = schedule.share, schedule.tile, product.fractals
    rows, columns = ceil_div(whole.m, share.m), ceil_div(whole.n, share.n)
    turns = ceil_div(ceil_div(product.batch, share.batch) * rows * columns, used)
    times = product.rows_of_tiles(share, tile)[0]
    rounds_in_share = (
        panels[0] / (share.batch * ceil_div(share.m, tile.m)),
        panels[1] / (times * ceil_div(share.n, tile.n)),
    )
    rounds_of_turns = ceil_div(columns, used), turns / ceil_div(columns, used)
    together = min(columns, used)
    of_turn = (
        ceil_div(used, together) * share.batch * product.panel_bytes("a", share.m),
        together * times * product.panel_bytes("b", share.n),
    )
    lines = _line_ratios(product, schedule, machine, used)
    of_fractal = beside_bytes(product)
    beside = used * share.batch * share.m * share.n * of_fractal
    whole_beside = product.batch * whole.m * whole.n * of_fractal
    room, moved, rounds = room_of(product, machine, used), [0.0, 0.0], [1.0, 1.0]
    for i, name in enumerate("ab"):
        in_share = max(1.0, rounds_in_share[i])
        if of_turn[i] + (of_turn[1 - i] + beside) / in_share > room:
            rounds[i] = in_share
        if sum(of_turn) + beside > room:
            rounds[i] *= max(1.0, rounds_of_turns[i])
        moved[i] = product.operand_bytes(name) * rounds[i] * lines[i]
    others = whole_beside if sum(moved) + whole_beside > room else 0.0
    return MemoryTraffic((moved[0], moved[1]), (rounds[0], rounds[1]), others)


def _line_ratios(
    product: Product, schedule: ProductSchedule, machine: Machine, used: int
) -> tuple[float, float]:
    """Bytes of lines that come from the memory for each byte of A and of B: more than one where
    tiles that follow each other read parts of the same stored rows, and the L2 does not hold the
    lines that two of them have in common from one to the next.

    Args:
        used: cores that work at the same time.
    """
    share, whole, ratios = schedule.share, product.fractals, [1.0, 1.0]
    shares = ceil_div(whole.m, share.m) * ceil_div(whole.n, share.n)
    matrices = min(ceil_div(product.batch, share.batch), ceil_div(used, shares)) * share.batch
    columns = min(used, ceil_div(whole.n, share.n))
    rows = min(ceil_div(used, columns), ceil_div(whole.m, share.m))
    touched = 0.0  # by all cores while each is at the tiles that take turns
    for i, (name, size, tile, count) in enumerate(
        (
            ("a", share.m, schedule.tile.m, rows * matrices),
            ("b", share.n, schedule.tile.n, columns * (1 if product.matrices == 1 else matrices)),
        )
    ):
        operand, part = product.operand(name), min(size, tile * schedule.beside[i])
        if operand.k_rows and not operand.nz and part < size:
            run = part * SIDE * operand.itemsize
            pitch = product.stored_columns(name) * operand.itemsize
            # All tiles of a share together read each of its lines once each at most.
            ratios[i] = min(prices.touched_bytes(machine, run, run, pitch) / run, size / part)
        touched += count * product.panel_bytes(name, part) * ratios[i]
    held = touched <= room_of(product, machine, used)
    return (1.0, 1.0) if held else (ratios[0], ratios[1])


def room_of(product: Product, machine: Machine, used: int) -> float:
    """Bytes of the L2 for what so many cores touch, beside what others at work meanwhile do."""
    return machine.l2.bytes * used / max(used, product.at_work)


def goes_backwards(product: Product, machine: Machine) -> bool:
    """Whether C is better made from its end on.

    What has its shape was made, or read, from the first row on. If all that is touched is more than
    the L2 holds, that still has the end of it; from the beginning on, each part would leave just
    before it is read.
    """
    whole = product.fractals
    comes = any(not extra.row for extra in product.end.extras)
    touched = product.panel_bytes("a", whole.m) + whole.m * whole.n * beside_bytes(product)
    return comes and product.batch * touched > machine.l2.bytes


def beside_bytes(product: Product) -> int:
    """Bytes of GM for a fractal of C: what leaves, and what of its shape comes."""
    if product.work is not None:
        return product.work.row_bytes * SIDE // product.fractals.n
    end = product.end
    values = [extra.value for extra in end.extras if not extra.row]
    return SIDE * SIDE * sum(DTYPES[v.dtype].itemsize for v in (*values, *end.program.outputs))
