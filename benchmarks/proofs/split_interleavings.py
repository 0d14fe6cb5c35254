"""Kernels of the 910B as compiled, in random interleavings of the pipes of all their cores.

    python benchmarks/proofs/split_interleavings.py [kernel ...] [--runs N] [--seed N] [--write]

Small kernels of each kind (test/fuzz/split_kernels.py) run once on two cube cores and four vector
cores, and what each core issues is kept, through all phases of a launch. An executor that shares
nothing with the simulator (test/fuzz/interleaving.py) runs these programs in any order that pipes,
flags and flags between cores allow: all memories must end with the same bytes. Prints the numbers,
and of each kernel that differs the first interleaving that does and where; --write puts the numbers
into docs/checks.md. Exits with 1 if one differs.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test"))

from checks_page import parser_of_figures, put

from fuzz.group_interleavings import wrong_interleavings
from fuzz.recorded_launches import record_launches
from fuzz.split_kernels import KINDS, made

RUNS = 200
"""Interleavings of a launch."""

HEADINGS = ("kernels", "launches", "instructions", "interleavings", "other bytes")


def main() -> int:
    parser = parser_of_figures(str(__doc__).partition("\n\n")[0])
    names = [name for kernels in KINDS.values() for name in kernels]
    parser.add_argument("names", nargs="*", metavar="kernel", help=", ".join(names))
    parser.add_argument("--runs", type=int, default=RUNS, metavar="N", help="of each launch")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    options = parser.parse_args()
    start, rows, wrong = time.process_time(), [("", HEADINGS)], []
    for kind, kernels in KINDS.items():
        chosen = [name for name in kernels if name in options.names or not options.names]
        numbers = [0] * len(HEADINGS)
        for name in chosen:
            executable, inputs = made(name)
            launches = record_launches(name, partial(executable.run, inputs))
            found = [wrong_interleavings(x, options.runs, options.seed) for x in launches]
            wrong += [differing[0] for differing in found if differing]
            steps = sum(len(records) for x in launches for records in x.streams.values())
            runs = options.runs * len(launches)
            more = 1, len(launches), steps, runs, sum(map(len, found))
            numbers = [a + b for a, b in zip(numbers, more, strict=True)]
            print(f"{name}: {runs} interleavings, {more[-1]} with other bytes", flush=True)
        if chosen:
            rows.append((kind, tuple(map(str, numbers))))
    total = [sum(int(cells[i]) for _, cells in rows[1:]) for i in range(len(HEADINGS))]
    rows.append(("together", tuple(map(str, total))))
    first = max(len(name) for name, _ in rows)
    lines = [
        f"{name:<{first}}"
        + "".join(f"  {cell:>{len(h)}}" for cell, h in zip(cells, HEADINGS, strict=True))
        for name, cells in rows
    ]
    command = f"split_interleavings.py --runs {options.runs}"
    put("INTERLEAVINGS", command, lines, time.process_time() - start, options.write)
    print(*wrong, sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
