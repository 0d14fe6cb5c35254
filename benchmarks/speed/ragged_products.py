"""Products of random sizes: cycles against those of sizes of whole fractals, and against the bound.

    python benchmarks/speed/ragged_products.py [--machine NAME] [--count N] [--seed S] [MxKxN ...]

C[m, n] = A[m, k] B[k, n], all of f16 in rows, on as many cores as take least time with the launch
on them, simulated without data. Sizes are drawn evenly on a scale of logarithms, m from 1 to 4,096,
k and n from 16 to 12,288; every other product has whole fractals. `whole` is the time of the same
product with its sizes rounded up to whole fractals, `ragged` the ratio of the two, `in all` the
ratio with the launches: of two ways that take the same with it, the one on fewer cores has the
longer kernel. `bound` is what the machine file allows at best, and the ratio to it where the time
is more than 50,000 cycles. A star marks what is above the limit wanted.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from products import Shape
from timed import timed

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


@dataclass(frozen=True)
class Times:
    """Cycles of a product's kernels, their bound, and microseconds of both with the launches."""

    cycles: int
    bound: int
    launched_us: float

    @staticmethod
    def of(shape: Shape, name: str) -> Times:
        """The times of a product on a machine, simulated."""
        profile = timed(shape.text, machine=name, cores=shape.cores).profile
        return Times(profile["total_cycles"], profile["bound_cycles"], profile["time_us"])


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
        f"{'m x k x n @ cores':22}{'cycles':>12}{'whole':>12}{'ragged':>8}{'in all':>8}"
        f"{'bound':>12}{'ratio':>8}"
    )
    limits = {"ragged": MOST_RAGGED, "in all": MOST_RAGGED, "bound": MOST_OF_BOUND}
    above, worst = dict.fromkeys(limits, 0), dict.fromkeys(limits, 0.0)
    for shape in shapes:
        taken, rounded = Times.of(shape, options.machine), whole(shape)
        least = taken if rounded == shape else Times.of(rounded, options.machine)
        ratios = {
            "ragged": taken.cycles / least.cycles,
            "in all": taken.launched_us / least.launched_us,
        }
        if taken.cycles > LARGE_CYCLES:
            ratios["bound"] = taken.cycles / taken.bound
        stars = ""
        for name, ratio in ratios.items():
            worst[name] = max(worst[name], ratio)
            if ratio > limits[name]:
                above[name] += 1
                stars += " *" + name
        print(
            f"{shape!s:22}{taken.cycles:12,}{least.cycles:12,}{ratios['ragged']:8.2f}"
            f"{ratios['in all']:8.2f}{taken.bound:12,}{taken.cycles / taken.bound:8.2f}{stars}",
            flush=True,
        )
    for name, of in (
        ("ragged", "whole fractals"),
        ("in all", "whole fractals, with the launches"),
        ("bound", f"the bound, over {LARGE_CYCLES:,} cycles"),
    ):
        print(f"of {of}: {above[name]} above {limits[name]}, {worst[name]:.2f} at worst")


if __name__ == "__main__":
    main()
