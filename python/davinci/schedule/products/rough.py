"""What shares of C, and tiles of them, cost by their size alone: which are looked at closely."""

from __future__ import annotations

from typing import NamedTuple

from davinci.machine import prices
from davinci.schedule.products.image import windows_cycles
from davinci.schedule.products.pieces import PieceWays
from davinci.schedule.products.product import Share, Tile
from davinci.units import FRACTAL_BYTES, ceil_div

BESIDE = (1, 1), (2, 1), (1, 2), (4, 1), (1, 4)
"""Rows and columns of tiles that take turns."""

MOST_TURNS = max(down for down, _ in BESIDE)
"""Tiles of different rows that may take turns."""

ENDS_OF_SHARE = 2
"""How many times the latencies of global memory pass until a share's first pieces came, went
through all pipes and its last part left."""


class TimedTile(NamedTuple):
    """A tile with about the cycles of a share that is cut into such.

    Attributes:
        fits_twice: whether L0C holds two of them, or all that there are.
        alone, after, shared: cycles where each mad loads both of its blocks, where it loads those
            that no tile before has left in L0A or L0B, and where tiles that take turns load what
            they have in common once.
    """

    tile: Tile
    fits_twice: bool
    alone: float
    after: float
    shared: float


class Rough:
    """Estimates the cycles of a share of C from its size alone, before tiles are chosen.

    Attributes:
        loads: MTE1 for a fractal of A and of B, what an instruction takes besides left out.
        around: cycles in which a share's first pieces come and its last part leaves.
    """

    def __init__(self, ways: PieceWays, cores: int) -> None:
        self.ways, self.cores = ways, cores
        self.product, self.machine = ways.product, ways.costs.machine
        self.whole = self.product.fractals
        self._known: dict[tuple[str, int], tuple[float, ...]] = {}
        machine, image = self.machine, self.product.image
        load = prices.load2d(machine, "L0A", FRACTAL_BYTES, 0)
        if image is not None:
            load = windows_cycles(image, machine, 1, 2) - windows_cycles(image, machine, 1, 1)
        self.loads = load, prices.load2d(machine, "L0B", FRACTAL_BYTES, 0)
        self.around = ENDS_OF_SHARE * prices.ends(machine)

    def cycles(self, share: Share) -> float:
        """Cycles of the core that has most shares of this size."""
        whole, product = self.whole, self.product
        shares = ceil_div(product.batch, share.batch)
        shares *= ceil_div(whole.m, share.m) * ceil_div(whole.n, share.n)
        return ceil_div(shares, self.cores) * self.of_share(share)

    def of_share(self, share: Share) -> float:
        """Cycles of a share: of its busiest pipe, and what goes around it."""
        whole, product = self.whole, self.product
        a, b = self._each("a", share.m), self._each("b", share.n)
        pipes = [x * share.m + y * share.n for x, y in zip(a, b, strict=True)]
        load_a, load_b = self.loads
        # Tiles of several matrices that take turns load what they have in common once.
        turns = min(share.batch, MOST_TURNS) if product.matrices == 1 else 1
        loads = load_a * share.m + load_b * share.n / turns
        work = share.batch * whole.k * max(*pipes, loads, share.m * share.n)
        leaving = share.batch * share.m * share.n * FRACTAL_BYTES * product.c.itemsize / 2
        work += leaving / prices.writing(self.machine).bytes_per_cycle / 2
        return work + self.around

    def _each(self, name: str, other: int) -> tuple[float, ...]:
        """MTE2, V and MTE3 for a fractal of an operand of which the core takes `other`."""
        key = name, min(other, 16)
        if key not in self._known:
            k = min(4, self.whole.k)
            tile = Tile(key[1], k, key[1])
            pieces = next(self.ways.pieces(name, tile))
            k_rows = self.product.operand(name).k_rows
            size = (pieces.rows, key[1]) if k_rows else (pieces.k, pieces.rows)
            busy = self.ways.costs.fill(name, pieces, *size)
            self._known[key] = tuple(x / size[0] / size[1] for x in (busy.mte2, busy.v, busy.mte3))
        return self._known[key]
