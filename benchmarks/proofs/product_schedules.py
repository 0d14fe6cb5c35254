"""Products by random legal schedules, against NumPy on simulated machine code with all checks.

    python benchmarks/proofs/product_schedules.py [DRAWS] [SEED] [--write]

Each draw is a product of random sizes, layouts, transpositions, batch and result, and a schedule
that fits the memories: shares, tiles, tiles beside each other, turns, pieces, slots, buffers and
parts as nobody would choose them, operands and results row by row or packed. It must give the
numbers of NumPy in double precision, without a fault or race. --write puts the figures into
docs/checks.md.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "test"))

from checks_page import parser_of_figures, put

from davinci.errors import DavinciError
from product_support import Case, drawn_schedules


def main() -> int:
    parser = parser_of_figures(str(__doc__).partition("\n\n")[0])
    parser.add_argument("draws", type=int, nargs="?", default=1000, metavar="DRAWS")
    parser.add_argument("seed", type=int, nargs="?", default=0, metavar="SEED")
    options = parser.parse_args()
    draws, seed = options.draws, options.seed
    random, began = np.random.default_rng(seed), time.process_time()
    wrong = faults = 0
    for _ in range(draws):
        case, cores = Case.drawn(random), int(random.choice([1, 2, 5, 32]))
        with drawn_schedules(random) as given:
            try:
                case.check(cores=cores)
            except (AssertionError, DavinciError) as error:
                faults += isinstance(error, DavinciError)
                wrong += isinstance(error, AssertionError)
                print(f"{case} on {cores} cores by {given[-1]}: {error}", flush=True)
    lines = [f"{draws} draws: {wrong} wrong, {faults} faults or races"]
    command = f"product_schedules.py {draws} {seed}"
    put("SCHEDULES", command, lines, time.process_time() - began, options.write)
    return 1 if wrong or faults else 0


if __name__ == "__main__":
    sys.exit(main())
