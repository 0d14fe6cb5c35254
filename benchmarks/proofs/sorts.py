"""Random sorts, argsorts and top-ks against NumPy.

    python benchmarks/proofs/sorts.py [--first SEED] [--count N] [--longest N]

Draws programs (test/random_sorts.py) with keys of every type, comparator and rank: duplicates,
zeros of both signs, infinities, NaN, nothing, one element; and runs them on all machines, on 1 to
32 cores. Prints each that differs, and how many kernels sorted on which unit. Exits with 1 if any
differs. 100 programs take 40 s.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test"))

import davinci
from davinci import machine as machines
from davinci.errors import DavinciError
from random_sorts import differs, random_sort

MACHINES = ("ascend910", "ascend310", "ascend310p", "ascend910b")
CORES = (1, 2, 3, 8, 32)


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--longest", type=int, default=700, help="keys of a row")
    options = parser.parse_args()
    failed, units = 0, Counter[str]()
    for seed in range(options.first, options.first + options.count):
        sort, machine = random_sort(seed, options.longest), MACHINES[seed % len(MACHINES)]
        cores = min(CORES[seed // 4 % len(CORES)], machines.load(machine).cores)
        try:
            executable = davinci.compile(sort.text, machine=machine, cores=cores)
            found = list(executable.run(*sort.inputs).values())
        except DavinciError as error:
            failed += 1
            print(f"seed {seed}, {machine}: {error}", flush=True)
            continue
        if differs(sort, found):
            failed += 1
            print(f"seed {seed}, {machine}, {cores} cores: other values\n{sort.text}", flush=True)
        for kernel in executable.profile["kernels"]:
            if "sort" in kernel["op"]:
                units[kernel["unit"]] += 1
    print(f"{options.count} programs, {failed} wrong")
    for unit, count in sorted(units.items()):
        print(f"{count:6} kernels on the {unit} unit")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
