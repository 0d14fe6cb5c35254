"""Products of random sizes: cycles against those of sizes of whole fractals, and against the bound.

    python benchmarks/speed/ragged_products.py [--machine NAME] [--count N] [--seed S] [MxKxN ...]

C[m, n] = A[m, k] B[k, n], all of f16 in rows, on all cores, simulated without data. Sizes are drawn
evenly on a scale of logarithms, m from 1 to 4,096, k and n from 16 to 12,288; every other product
has whole fractals. `whole` is the time of the same product with its sizes rounded up to whole
fractals, `ragged` the ratio of the two; `bound` what the machine file allows at best, and the ratio
to it where the time is more than 50,000 cycles. A star marks what is above the limit wanted.
"""

from __future__ import annotations

import argparse

import numpy as np
from products import Shape, cycles

from davinci import machine
from davinci.units import FRACTAL_SIDE, round_up

MOST_RAGGED, MOST_OF_BOUND = 1.25, 1.4
"""Most of the time of whole fractals, and of the bound of large products, that is wanted."""

LARGE_CYCLES = 50_000
"""Cycles above which a product is held against its bound."""

LEAST, MOST = (1, 16, 16), (4096, 12288, 12288)
"""Sizes m, k and n that are drawn."""


def drawn(count: int, seed: int, cores: int) -> list[Shape]:
    """Random sizes, every other product of whole fractals."""
    random = np.random.default_rng(seed)
    found = []
    for number in range(count):
        sizes = [
            int(least * (most / least) ** random.uniform())
            for least, most in zip(LEAST, MOST, strict=True)
        ]
        shape = Shape(*sizes, cores)
        found.append(whole(shape) if number % 2 else shape)
    return found


def whole(shape: Shape) -> Shape:
    """The same with sizes rounded up to whole fractals."""
    m, k, n = (round_up(size, FRACTAL_SIDE) for size in (shape.m, shape.k, shape.n))
    return Shape(m, k, n, shape.cores)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("shapes", nargs="*", help="instead of random ones")
    parser.add_argument("--machine", default="ascend910")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    cores = machine.load(options.machine).cores
    shapes = [Shape.of(text, cores) for text in options.shapes]
    shapes = shapes or drawn(options.count, options.seed, cores)
    print(
        f"{'m x k x n @ cores':22}{'cycles':>12}{'whole':>12}{'ragged':>8}{'bound':>12}{'ratio':>8}"
    )
    above = {"ragged": 0, "bound": 0}
    worst = {"ragged": 0.0, "bound": 0.0}
    for shape in shapes:
        taken, bound = cycles(shape, options.machine, "all")
        rounded = whole(shape)
        least = taken if rounded == shape else cycles(rounded, options.machine, "all")[0]
        ratios = {"ragged": taken / least}
        if taken > LARGE_CYCLES:
            ratios["bound"] = taken / bound
        limits = {"ragged": MOST_RAGGED, "bound": MOST_OF_BOUND}
        stars = ""
        for name, ratio in ratios.items():
            worst[name] = max(worst[name], ratio)
            if ratio > limits[name]:
                above[name] += 1
                stars += " *" + name
        print(
            f"{shape!s:22}{taken:12,}{least:12,}{taken / least:8.2f}{bound:12,}"
            f"{taken / bound:8.2f}{stars}",
            flush=True,
        )
    print(
        f"of whole fractals: {above['ragged']} of {len(shapes)} above {MOST_RAGGED}, "
        f"{worst['ragged']:.2f} at worst"
    )
    print(
        f"of the bound, over {LARGE_CYCLES:,} cycles: {above['bound']} above {MOST_OF_BOUND}, "
        f"{worst['bound']:.2f} at worst"
    )


if __name__ == "__main__":
    main()
