"""Random slices, gathers, updates and scatters at computed indices against NumPy, scatters also of
those that add, subtract, multiply or take the greater or lesser number.

    python benchmarks/proofs/blocks.py [--first SEED] [--count N]

Draws programs (test/random_blocks.py) of every form, element type, rank and place of tuples, with
indices outside of the array, negative ones that count from the end, and the same ones twice, and
runs them on all machines, on one core, two and all. Prints each that differs, and how many kernels
moved their blocks in which way. Exits with 1 if any differs. 100 programs take 40 s.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test"))

import davinci
from davinci import machine as machines
from davinci.errors import DavinciError
from random_blocks import FORMS, random_program

MACHINES = ("ascend910", "ascend310", "ascend310p", "ascend910b")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--form", choices=FORMS, help="programs of this form only")
    options = parser.parse_args()
    failed, ways = 0, Counter[str]()
    step = len(FORMS) if options.form else 1
    begin = options.first
    if options.form:
        begin += (FORMS.index(options.form) - begin) % step
    for seed in range(begin, begin + step * options.count, step):
        program, machine = random_program(seed), MACHINES[seed // len(FORMS) % len(MACHINES)]
        cores = min(
            (1, 2, 5, 0)[seed // len(FORMS) // len(MACHINES) % 4], machines.load(machine).cores
        )
        try:
            executable = davinci.compile(program.text, machine=machine, cores=cores)
            (found,) = executable.run(*program.inputs).values()
        except DavinciError as error:
            failed += 1
            print(f"seed {seed}, {machine}: {error}", flush=True)
            continue
        if not np.array_equal(found, program.result, equal_nan=program.result.dtype.kind == "f"):
            failed += 1
            print(f"seed {seed}, {machine}: other values\n{program.text}", flush=True)
        for kernel in executable.profile["kernels"]:
            if "blocks" in kernel["op"]:
                ways[f"{kernel['op']}, {kernel['unit']} unit"] += 1
    print(f"{options.count} programs, {failed} wrong")
    for way, count in sorted(ways.items()):
        print(f"{count:6} {way}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
