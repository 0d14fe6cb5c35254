"""Random scatters against NumPy.

    python benchmarks/proofs/scatters.py [--first SEED] [--count N] [--longest N]

Draws programs (test/random_scatters.py) that scatter elements, rows and boxes, set, add, multiply,
or leave the least or largest: with duplicates, places outside, NaN, nothing, one element; and runs
them on all machines, on 1 to 32 cores. Prints each that differs, and how many kernels ran on which
unit. Exits with 1 if any differs. 100 programs take 30 s.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test"))

import numpy as np

import davinci
from davinci import machine as machines
from davinci.errors import DavinciError
from random_scatters import random_scatter

MACHINES = ("ascend910", "ascend310", "ascend310p", "ascend910b")
CORES = (1, 2, 3, 8, 32)


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--longest", type=int, default=300, help="rows, and places")
    options = parser.parse_args()
    failed, units = 0, Counter[str]()
    for seed in range(options.first, options.first + options.count):
        scatter, machine = random_scatter(seed, options.longest), MACHINES[seed % len(MACHINES)]
        cores = min(CORES[seed // 4 % len(CORES)], machines.load(machine).cores)
        try:
            executable = davinci.compile(scatter.text, machine=machine, cores=cores)
            (found,) = executable.run(*scatter.inputs).values()
        except DavinciError as error:
            failed += 1
            print(f"seed {seed}, {machine}: {error}", flush=True)
            continue
        if not np.array_equal(found, scatter.result, equal_nan=found.dtype.kind == "f"):
            failed += 1
            print(f"seed {seed}, {machine}, {cores} cores: other values\n{scatter.text}")
            different = ~(
                (found == scatter.result) | ((found != found) & (scatter.result != scatter.result))
            )
            print(found[different][:5], scatter.result[different][:5], flush=True)
        units.update(kernel["unit"] for kernel in executable.profile["kernels"])
    print(f"{options.count} programs, {failed} wrong")
    for unit, count in sorted(units.items()):
        print(f"{count:6} kernels on the {unit} unit")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
