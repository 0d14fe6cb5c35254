"""Strategies of the matrix product: what they read, what they need, and which tile to take.

Names are those of the source (a 2024 thesis on a compiler for this kind of machine): A is M x N,
B is N x K, C is M x K; a tile is (m, n, k). So n is the contracted dimension. A strategy keeps one
operand's tile in place and walks the others:

    os  output stationary   for x, y: for s: C(x, y) += A(x, s) B(s, y)
    is  input stationary    A(x, s) is read once; needs k = K or n = N, or partial sums would leave
    ws  weight stationary   B(s, y) is read once; needs m = M or n = N

Elements of A and B read from GM, for sizes that the tile divides:

    S_IS = MN + MNK/m        S_WS = KN + MNK/k        S_OS = MNK (m + k) / (mk)

All sizes are counted in fractals of 16 here; the matrices are padded to whole fractals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from davinci.errors import CompileError
from davinci.machine import Machine
from davinci.passes.ascend_to_cce.tiles import even_cut
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div

ITEM_BYTES = 2
"""Bytes of an element of A and B."""

STRATEGIES = {"os": "output stationary", "is": "input stationary", "ws": "weight stationary"}


PEELED_COST = 4
"""A tile that leaves remainders is taken to be slower by one part in this many (measured: 10 to 30
per cent for the sizes of BERT)."""


@dataclass(frozen=True)
class Size:
    """M, N, K of a product or m, n, k of a tile, in fractals; N is the contracted dimension."""

    m: int
    n: int
    k: int

    def text(self) -> str:
        """The sizes in elements, as the user gives them."""
        return f"({self.m * SIDE}, {self.n * SIDE}, {self.k * SIDE})"


@dataclass(frozen=True)
class Limits:
    """Most fractals a tile of A, B, C, and of A and B together, may have."""

    a: int
    b: int
    c: int
    ab: int

    @staticmethod
    def of(machine: Machine) -> Limits:
        """From the buffers that hold the tiles: L0A, L0B, L0C and L1; f16 inputs, f32 sums."""
        fractal = SIDE * SIDE
        return Limits(
            machine.buffer("L0A").bytes // (2 * fractal),
            machine.buffer("L0B").bytes // (2 * fractal),
            machine.buffer("L0C").bytes // (4 * fractal),
            machine.buffer("L1").bytes // (2 * fractal),
        )


@dataclass(frozen=True)
class Rates:
    """Bytes a cycle from GM: of the memory as a whole, and of one core's port."""

    memory: int
    port: int

    @staticmethod
    def of(machine: Machine) -> Rates:
        return Rates(
            machine.gm.read_bytes_per_cycle * machine.cores, machine.mte2.port_bytes_per_cycle
        )


def reads(strategy: str, whole: Size, tile: Size) -> int:
    """Elements of A and B that one product reads from GM; the formulas above, tails included."""
    rows, columns = ceil_div(whole.m, tile.m), ceil_div(whole.k, tile.k)
    a, b = whole.m * whole.n, whole.n * whole.k
    passes = {"os": (columns, rows), "is": (1, rows), "ws": (columns, 1)}[strategy]
    return (passes[0] * a + passes[1] * b) * SIDE * SIDE


def estimated_cycles(
    strategy: str, whole: Size, tile: Size, batch: int, cores: int, rates: Rates
) -> int:
    """What a product takes at least: the slowest of the memory, a core's port and its cube.

    All blocks together read at the memory's rate; the block with most work also reads at the rate
    of its port, and its cube does a fractal product a cycle. The unit of work that blocks share is
    a tile of C (os), a row panel of A (is) or a column panel of B (ws). Remainders in m or k cost
    a part of it: their loops share the event ids of the main one, so that less overlaps.
    """
    rows, columns = ceil_div(whole.m, tile.m), ceil_div(whole.k, tile.k)
    units, a, b, products = {
        "os": (rows * columns, tile.m, tile.k, tile.m * tile.k),
        "is": (rows, tile.m, whole.k, tile.m * whole.k),
        "ws": (columns, whole.m, tile.k, whole.m * tile.k),
    }[strategy]
    share = ceil_div(batch * units, cores)
    total = batch * reads(strategy, whole, tile) * ITEM_BYTES
    busiest = min(total, share * whole.n * (a + b) * SIDE * SIDE * ITEM_BYTES)
    cube = min(share * products, batch * whole.m * whole.k) * whole.n
    slowest = max(ceil_div(total, rates.memory), ceil_div(busiest, rates.port), cube)
    peeled = whole.m % tile.m or whole.k % tile.k
    return slowest + slowest // PEELED_COST if peeled else slowest


def violation(strategy: str, whole: Size, tile: Size, limits: Limits) -> str:
    """Which constraint the tile breaks, in elements, or "" if none."""
    for name, product, limit in (
        ("m n", tile.m * tile.n, limits.a),
        ("n k", tile.n * tile.k, limits.b),
        ("m k", tile.m * tile.k, limits.c),
        ("m n + n k", tile.n * (tile.m + tile.k), limits.ab),
    ):
        if product > limit:
            return f"{name} <= {limit * SIDE * SIDE}"
    if strategy == "is" and tile.k < whole.k and tile.n < whole.n:
        return "k = K or n = N for input stationary"
    if strategy == "ws" and tile.m < whole.m and tile.n < whole.n:
        return "m = M or n = N for weight stationary"
    return ""


def choose(
    strategy: str,
    whole: Size,
    wanted: tuple[int, int, int],
    machine: Machine,
    batch: int,
    cores: int,
) -> Size:
    """The tile of a product, in fractals.

    Sizes given in `wanted` (m, n, k in elements; 0: free) are taken, clipped to the product. Free
    ones are chosen: fewest `estimated_cycles`; among equals (on one core: all that keep the cube
    busy) the smallest S; then the tile that fills the buffers most. Only even cuts ceil(M / i) are
    tried, so that the last tile is no sliver.

    Raises:
        CompileError: unknown strategy, a size that is not a multiple of 16, a tile that breaks a
            constraint, or no tile that keeps them all.
    """
    if strategy not in STRATEGIES:
        raise CompileError(
            "unknown matmul strategy", found=repr(strategy), expected=" or ".join(STRATEGIES)
        )
    for name, size in zip("mnk", wanted, strict=True):
        if size < 0 or size % SIDE:
            raise CompileError(
                f"bad tile size {name}", found=str(size), expected=f"a multiple of {SIDE}, or 0"
            )
    fixed = [
        min(size // SIDE, most)
        for size, most in zip(wanted, (whole.m, whole.n, whole.k), strict=True)
    ]
    limits, rates = Limits.of(machine), Rates.of(machine)
    best: tuple[tuple[int, int, int], Size] | None = None
    broken = ""
    for tile in _candidates(whole, fixed, limits):
        problem = violation(strategy, whole, tile, limits)
        if problem:
            broken = problem
            continue
        fill = tile.m * tile.n + tile.n * tile.k + tile.m * tile.k
        cycles = estimated_cycles(strategy, whole, tile, batch, cores, rates)
        cost = (cycles, reads(strategy, whole, tile), -fill)
        if best is None or cost < best[0]:
            best = cost, tile
    if best is None:
        given = Size(*fixed).text() if all(fixed) else f"{wanted}, 0 is free"
        raise CompileError(
            f"no tile (m, n, k) for the {STRATEGIES[strategy]} strategy and (M, N, K) = "
            f"{whole.text()}",
            found=given,
            expected=broken or "sizes that fit L1, L0A, L0B and L0C",
            hint="give smaller tile sizes, leave them 0, or use matmul-strategy=os",
        )
    return best[1]


def _candidates(whole: Size, fixed: list[int], limits: Limits) -> Iterator[Size]:
    """Tiles worth trying: given sizes as they are, free ones by even cuts; n as large as fits."""
    for m in [fixed[0]] if fixed[0] else even_cuts(whole.m, limits.a):
        for k in [fixed[2]] if fixed[2] else even_cuts(whole.k, limits.b):
            if fixed[1]:
                yield Size(m, fixed[1], k)
                continue
            most = min(limits.a // m, limits.b // k, limits.ab // (m + k))
            if most:
                yield Size(m, length_of(whole.n, most), k)


def length_of(total: int, most: int) -> int:
    """The largest divisor of `total` up to `most`; if that is less than half, the even cut."""
    divisor = next(size for size in range(min(total, most), 0, -1) if total % size == 0)
    return divisor if 2 * divisor >= most else even_cut(total, most)


def even_cuts(total: int, most: int) -> list[int]:
    """The different sizes ceil(total / i) up to `most`, largest first.

    >>> even_cuts(10, 8)
    [5, 4, 3, 2, 1]
    """
    sizes = {ceil_div(total, i) for i in range(1, total + 1)}
    return sorted((size for size in sizes if size <= most), reverse=True)
