"""Random programs, and random interleavings of their pipes and cores, against the race checks.

    python benchmarks/proofs/fuzz_interleavings.py [programs] [seed] [--write]

A program without a reported fault must give the same bytes in every interleaving of an executor
that shares nothing with the simulator (test/fuzz/interleaving.py). So must kernels of groups as
they are compiled (test/fuzz/group_kernels.py). Prints the numbers; --write puts them into
docs/checks.md. Exits with 1 if there is an escape, a false alarm or a race that was not shown.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test"))

from checks_page import parser_of_figures, put

from fuzz.group_interleavings import wrong_interleavings
from fuzz.group_kernels import group_models
from fuzz.interleaving_fuzz import CoresFuzzer, Fuzzer, Tally, table
from fuzz.recorded_kernels import record

CORES = (("ascend910", "AICORE"), ("ascend910b", "AIC"), ("ascend910b", "AIV"))
GROUPS = len(CORES) + 1
CLEAN_RUNS, RACE_RUNS = 40, 200
PER_POOL = 200
"""Programs of one seed: each seed draws its own instructions and contents of memory."""


def main() -> int:
    parser = parser_of_figures(str(__doc__).partition("\n\n")[0])
    parser.add_argument(
        "programs",
        type=int,
        nargs="?",
        default=1600,
        metavar="PROGRAMS",
        help="for one block, for two blocks, and for several cores of a split machine, together",
    )
    parser.add_argument("seed", type=int, nargs="?", default=1, metavar="SEED")
    options = parser.parse_args()
    programs, seed = options.programs, options.seed
    start = time.process_time()
    totals: dict[str, Tally] = {}
    for number, first in enumerate(range(0, programs, PER_POOL)):
        count = min(PER_POOL, programs - first)
        for name, tally in run(number % GROUPS, seed + first, count).items():
            totals[name] = totals[name].plus(tally) if name in totals else tally
    command = f"fuzz_interleavings.py {programs} {seed}"
    compiled = [k for model in group_models().values() for k in record(model, model.cores)]
    differing = [x for kernel in compiled for x in wrong_interleavings(kernel, CLEAN_RUNS, seed)]
    lines = [
        *table(totals),
        f"{len(compiled)} kernels of groups as compiled: {len(compiled) * CLEAN_RUNS} "
        f"interleavings, {len(differing)} with other bytes",
    ]
    put("FUZZ", command, lines, time.process_time() - start, options.write)
    wrong = [
        *differing,
        *(
            text
            for tally in totals.values()
            for text in (*tally.escapes, *tally.false_alarms, *tally.unexplained)
        ),
    ]
    print(*wrong[:5], sep="\n")
    return int(bool(wrong))


def run(group: int, seed: int, count: int) -> dict[str, Tally]:
    """So many programs of a group, from one pool of instructions."""
    if group == len(CORES):
        cores = CoresFuzzer(seed, CLEAN_RUNS, RACE_RUNS)
        for _ in range(count):
            cores.launch()
        return {"ascend910b, several cores": cores.tally}
    machine, kind = CORES[group]
    fuzzer = Fuzzer(machine, kind, seed, CLEAN_RUNS, RACE_RUNS)
    for _ in range(count):
        fuzzer.one_block()
        fuzzer.two_blocks()
    return {
        f"{machine} {kind}, one block": fuzzer.single,
        f"{machine} {kind}, two blocks": fuzzer.blocks,
    }


if __name__ == "__main__":
    sys.exit(main())
