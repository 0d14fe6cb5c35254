"""Products by random legal schedules, against NumPy on simulated machine code with all checks.

    python benchmarks/proofs/product_schedules.py [--draws N] [--seed S] [--seconds T]

Each draw is a product of random sizes, layouts, transpositions, batch and result, and a schedule
that fits the memories: shares, tiles, tiles beside each other, turns, pieces, slots, buffers and
parts as nobody would choose them. It must give the numbers of NumPy, without a fault or race.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "test"))

from davinci.errors import DavinciError
from product_support import Case, drawn_schedules


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    random, began = np.random.default_rng(options.seed), time.monotonic()
    done = wrong = faults = 0
    while done < options.draws and time.monotonic() - began < options.seconds:
        case, cores = Case.drawn(random), int(random.choice([1, 2, 5, 32]))
        done += 1
        with drawn_schedules(random) as given:
            try:
                case.check(cores=cores)
            except (AssertionError, DavinciError) as error:
                faults += isinstance(error, DavinciError)
                wrong += isinstance(error, AssertionError)
                print(f"{case} on {cores} cores by {given[-1]}: {error}", flush=True)
    print(f"{done} draws: {wrong} wrong, {faults} faults")
    return 1 if wrong or faults else 0


if __name__ == "__main__":
    sys.exit(main())
