"""Launches whose cores wait for each other, with one thing changed: flag, counter, set of cores,
placement or order.

    python benchmarks/proofs/launch_mutations.py [mutants] [seed] [--write]

Random launches on a coupled machine, whose cores write and load parts of a buffer between meetings
of all, of groups and of neighbours (test/fuzz/talking_launches.py), and compiled kernels whose
cores meet (test/fuzz/talking_kernels.py). Each mutant is judged twice: as a graph of what comes
before what, worked out without running anything, and by the simulator with all checks. Both must
agree: no unsafe launch accepted, no safe one refused. Prints the numbers; --write puts them into
docs/checks.md. Exits with 1 if they disagree anywhere.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test"))

from checks_page import parser_of_figures, put

from assembler import Assembler
from fuzz.talking_mutation import compiled, judge_compiled, judged, table

EVERY = 4
"""One in so many mutants of each compiled kernel is judged."""


def main() -> int:
    parser = parser_of_figures(str(__doc__).partition("\n\n")[0])
    parser.add_argument("mutants", type=int, nargs="?", default=7500, metavar="MUTANTS")
    parser.add_argument("seed", type=int, nargs="?", default=1, metavar="SEED")
    options = parser.parse_args()
    start = time.process_time()
    tally = judged(options.mutants, np.random.default_rng(options.seed), Assembler)
    for kernel in compiled():
        judge_compiled(kernel, tally, EVERY)
    command = f"launch_mutations.py {options.mutants} {options.seed}"
    put("LAUNCHES", command, table(tally), time.process_time() - start, options.write)
    print(*tally.wrong[:10], sep="\n")
    return int(bool(tally.wrong))


if __name__ == "__main__":
    sys.exit(main())
