"""Launches whose cores wait for each other, with one thing changed: flag, counter, set of cores,
placement or order.

    python benchmarks/proofs/launch_mutations.py [mutants] [seed] [--before-running] [--write]

Random launches on a coupled machine, whose cores write and load parts of a buffer between meetings
of all, of groups and of neighbours (test/fuzz/talking_launches.py), compiled kernels whose cores
meet (test/fuzz/talking_kernels.py), and, as many mutants again, random launches on a split machine,
whose cube and vector cores meet by flags (test/fuzz/flag_meetings.py). Each mutant is judged twice:
as a graph of what comes before what, worked out without running anything, and by the simulator with
all checks. Both must agree: no unsafe launch accepted, no safe one refused.

With --before-running the first judge is the pass `check-meetings`, and what it judges are kernels
with a program for cube cores and one for vector cores, which have flags for each other
(test/fuzz/core_flags.py), and compiled ones of these (test/fuzz/compiled_flags.py).

Prints the numbers; --write puts them into docs/checks.md. Exits with 1 if they disagree anywhere.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test"))

from checks_page import parser_of_figures, put

from assembler import Assembler
from fuzz.talking_mutation import (
    COMPILED,
    Tally,
    compiled,
    judge_compiled,
    judge_compiled_before_running,
    judged,
    judged_before_running,
    judged_by_flags,
    table,
)

EVERY = 4
"""One in so many mutants of each compiled kernel is judged."""


def main() -> int:
    parser = parser_of_figures(str(__doc__).partition("\n\n")[0])
    parser.add_argument("mutants", type=int, nargs="?", default=7500, metavar="MUTANTS")
    parser.add_argument("seed", type=int, nargs="?", default=1, metavar="SEED")
    parser.add_argument(
        "--before-running", action="store_true", help="mutants that check-meetings judges"
    )
    options = parser.parse_args()
    start = time.process_time()
    if options.before_running:
        checked = judged_before_running(options.mutants, np.random.default_rng(options.seed))
        of_compiled = Tally()
        for name in COMPILED:
            judge_compiled_before_running(name, of_compiled, EVERY)
        command = f"launch_mutations.py {options.mutants} {options.seed} --before-running"
        lines = [*table(checked), "", "compiled kernels:", *table(of_compiled)]
        put("BEFORE", command, lines, time.process_time() - start, options.write)
        wrong = [*checked.wrong, *of_compiled.wrong]
        print(*wrong[:10], sep="\n")
        return int(bool(wrong))
    tally = judged(options.mutants, np.random.default_rng(options.seed), Assembler)
    for kernel in compiled():
        judge_compiled(kernel, tally, EVERY)
    by_flags = judged_by_flags(options.mutants, np.random.default_rng(options.seed), Assembler)
    command = f"launch_mutations.py {options.mutants} {options.seed}"
    lines = [*table(tally), "", "on a split machine, by flags:", *table(by_flags)]
    put("LAUNCHES", command, lines, time.process_time() - start, options.write)
    wrong = [*tally.wrong, *by_flags.wrong]
    print(*wrong[:10], sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
