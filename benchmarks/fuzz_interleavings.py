"""Random programs, and random interleavings of their pipes, against the simulator's verdict.

    python benchmarks/fuzz_interleavings.py [programs] [seed]

A program without a reported fault must give the same bytes in every interleaving of an executor
that shares nothing with the simulator (test/interleaving.py). Prints the numbers; exits with 1 if
there is an escape or a false alarm.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from interleaving_fuzz import Fuzzer, Tally

CORES = (("ascend910", "AICORE"), ("ascend910b", "AIC"), ("ascend910b", "AIV"))
CLEAN_RUNS, RACE_RUNS = 40, 200
PER_POOL = 500
"""Programs of one seed: each seed draws its own instructions and contents of memory."""


def main(programs: int = 4500, seed: int = 1) -> int:
    start = time.perf_counter()
    totals: dict[str, Tally] = {}
    for number, first in enumerate(range(0, programs, PER_POOL)):
        machine, kind = CORES[number % len(CORES)]
        fuzzer = Fuzzer(machine, kind, seed + first, CLEAN_RUNS, RACE_RUNS)
        for _ in range(min(PER_POOL, programs - first)):
            fuzzer.one_block()
            fuzzer.two_blocks()
        for blocks, tally in (("one block", fuzzer.single), ("two blocks", fuzzer.blocks)):
            name = f"{machine} {kind}, {blocks}"
            totals[name] = totals[name].plus(tally) if name in totals else tally
    for name, tally in totals.items():
        print(f"{name}: ", end="")
        print(*tally.lines(), sep="\n")
        for kind in ("escapes", "false_alarms", "unexplained"):
            for text in getattr(tally, kind)[:3]:
                print(f"{kind}: {text}")
    print(f"{time.perf_counter() - start:.0f} s")
    return int(any(tally.escapes or tally.false_alarms for tally in totals.values()))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
