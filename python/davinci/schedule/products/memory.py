"""What a product moves between the memory and the L2, which holds what was touched last.

An operand comes from the memory once, and again wherever more than the L2 holds was touched since:
by the tiles of a share between two rounds over the operand, or by the cores in their turns at
shares. Cores take shares in their order, columns of C first.
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
        operands: bytes of A and of B that come.
        others: bytes of C, and of what has its shape.
    """

    operands: tuple[float, float]
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
    of_fractal = beside_bytes(product)
    beside = used * share.batch * share.m * share.n * of_fractal
    whole_beside = product.batch * whole.m * whole.n * of_fractal
    room, moved = machine.l2.bytes, [0.0, 0.0]
    for i, name in enumerate("ab"):
        times_read, in_share = 1.0, max(1.0, rounds_in_share[i])
        if of_turn[i] + (of_turn[1 - i] + beside) / in_share > room:
            times_read = in_share
        if sum(of_turn) + beside > room:
            times_read *= max(1.0, rounds_of_turns[i])
        moved[i] = product.operand_bytes(name) * times_read
    others = whole_beside if sum(moved) + whole_beside > room else 0.0
    return MemoryTraffic((moved[0], moved[1]), others)


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
    end = product.end
    values = [extra.value for extra in end.extras if not extra.row]
    return SIDE * SIDE * sum(DTYPES[v.dtype].itemsize for v in (*values, *end.program.outputs))
