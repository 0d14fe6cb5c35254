"""Products: cycles before (`--fusion none`) and after, the bound of the machine file, the estimate.

    python benchmarks/speed/products.py [--machine NAME] [--random N --seed S] [MxKxN[@cores] ...]

Operands and results are f16 rows; all kernels together, simulated without data. A target is the
most that we want, as cycles; `ratio` is after over bound. --random adds products of sizes
that nobody has looked at, large and small, on 1 to all cores. The last line says how far estimates
are from simulated cycles.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from statistics import median

import numpy as np
from timed import timed

from davinci import machine
from davinci.schedule.products.candidates import Wanted
from davinci.schedule.products.choice import choose
from davinci.schedule.products.estimate import estimate
from davinci.schedule.products.product import Product, ProductOperand, ProductResult


@dataclass(frozen=True)
class Shape:
    """C[m, n] = A[m, k] B[k, n], and the most cycles it may take, 0 if nobody said."""

    m: int
    k: int
    n: int
    cores: int
    target: int = 0

    @staticmethod
    def of(text: str, cores: int) -> Shape:
        sizes, _, given = text.partition("@")
        m, k, n = map(int, sizes.split("x"))
        return Shape(m, k, n, int(given) if given else cores)

    def __str__(self) -> str:
        return f"{self.m}x{self.k}x{self.n}@{self.cores}"

    @property
    def text(self) -> str:
        a, b, c = (f"tensor<{x}x{y}xf16>" for x, y in self.sides)
        return f"""
        func.func @main(%a: {a}, %b: {b}) -> {c} {{
          %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({a}, {b}) -> {c}
          return %0 : {c}
        }}"""

    @property
    def sides(self) -> list[tuple[int, int]]:
        return [(self.m, self.k), (self.k, self.n), (self.m, self.n)]


TARGETS = [
    Shape(512, 768, 768, 1, 88_000),
    Shape(512, 768, 768, 32, 8_200),
    Shape(1024, 1024, 1024, 32, 14_000),
    Shape(2048, 2048, 2048, 32, 76_000),
    Shape(4096, 4096, 4096, 32, 560_000),
    Shape(1, 4096, 4096, 32, 36_000),
    Shape(16, 4096, 11008, 32, 114_650),
]


def drawn(count: int, seed: int, cores: int, most: int = 1 << 31) -> list[Shape]:
    """Random products of 2^16 to `most` multiplications, on fewer cores of fewer."""
    random = np.random.default_rng(seed)
    found: list[Shape] = []
    while len(found) < count:
        m, k, n = (int(2 ** random.uniform(0, 12)) for _ in range(3))
        used = int(random.choice([1, 8, cores, cores]))
        if (1 << 16) < m * k * n < most * used // cores:
            found.append(Shape(m, k, n, used))
    return found


def cycles(shape: Shape, name: str, fusion: str) -> tuple[int, int]:
    """Of all kernels: simulated, and their bound."""
    profile = timed(shape.text, machine=name, cores=shape.cores, fusion=fusion).profile
    return profile["total_cycles"], profile["bound_cycles"]


def estimated(shape: Shape, name: str) -> float:
    described = machine.load(name)
    product = Product(
        1,
        shape.m,
        shape.k,
        shape.n,
        ProductOperand(False, 2, False),
        ProductOperand(False, 2, True),
        ProductResult(False, 2),
    )
    schedule = choose(product, described, shape.cores, Wanted())
    return estimate(product, schedule, described, shape.cores)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("shapes", nargs="*", help="instead of those with targets")
    parser.add_argument("--machine", default="ascend910")
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    cores = machine.load(options.machine).cores
    shapes = [Shape.of(text, cores) for text in options.shapes]
    if not shapes and not options.random:
        shapes = TARGETS
    shapes += drawn(options.random, options.seed, cores)
    columns = ("before", "after", "target", "bound", "ratio", "estimate")
    print(f"{'m x k x n @ cores':22}" + "".join(f"{name:>10}" for name in columns))
    apart: list[float] = []
    for shape in shapes:
        before, _ = cycles(shape, options.machine, "none")
        after, bound = cycles(shape, options.machine, "all")
        guess = estimated(shape, options.machine)
        apart.append(guess / after)
        target = f"{shape.target:,}" if shape.target else ""
        print(
            f"{shape!s:22}{before:10,}{after:10,}{target:>10}{bound:10,}{after / bound:10.2f}"
            f"{guess:10,.0f}",
            flush=True,
        )
    error = [abs(ratio - 1) for ratio in apart]
    print(f"estimates: {median(error):.1%} off (median), {max(error):.1%} at worst")


if __name__ == "__main__":
    main()
