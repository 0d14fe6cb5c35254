"""Products: the schedule that is chosen against the best of a search by timing-only simulation.

    python benchmarks/speed/product_search.py [--machine NAME] [--random N --seed S] [--trials T]
                                              [--cache DIR] [MxKxN[@cores] ...]

All schedules that fit the memories are ranked by their estimates; up to T of them are simulated,
all if there are no more, as `--tune` does it. Operands and results are f16 rows. `ratio` is the
chosen one's cycles over the fewest found.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent))

from products import Shape, drawn

import davinci
from davinci import machine

LARGEST = 1 << 26
"""Multiplications of a random product, so that a search of it ends."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shapes", nargs="*")
    parser.add_argument("--machine", default="ascend910")
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--cache", help="a folder that keeps what was measured")
    options = parser.parse_args()
    cores = machine.load(options.machine).cores
    shapes = [Shape.of(text, cores) for text in options.shapes]
    shapes += drawn(options.random, options.seed, cores, LARGEST)
    print(f"{'m x k x n @ cores':22}{'tried':>8}{'chosen':>10}{'best':>10}{'ratio':>8}")
    ratios: list[float] = []
    for shape in shapes:
        found = davinci.tune(
            shape.text,
            machine=options.machine,
            cores=shape.cores,
            trials=options.trials,
            cache=options.cache,
        )
        for kernel, chosen, tried in zip(found.kernels, found.untuned, found.measured, strict=True):
            ratios.append(chosen / kernel.cycles)
            print(
                f"{shape!s:22}{tried:8}{chosen:10,}{kernel.cycles:10,}{ratios[-1]:8.3f}", flush=True
            )
    print(f"chosen over best: {median(ratios):.3f} (median), {max(ratios):.3f} at worst")


if __name__ == "__main__":
    main()
