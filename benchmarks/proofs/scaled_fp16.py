"""Random graphs whose inputs have ranges under `scaled-fp16`, against float64.

    python benchmarks/proofs/scaled_fp16.py [--first SEED] [--count N] [--length N] [--write]

Each graph (test/random_ranges.py) is compiled for its ranges and runs on random inputs in them and
on their ends: no f16 may overflow, and each output has to stay within the bound that the compiler
states for its error. It is compiled with `fp16` as well, to count where that overflows. --write
puts the numbers into docs/checks.md. Exits with 1 if anything is wrong.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path
from textwrap import wrap

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test"))

import numpy as np
from checks_page import parser_of_figures, put

import davinci
from davinci.errors import DavinciError
from random_ranges import RangedGraph, findings, lost


def overflows_unscaled(graph: RangedGraph) -> bool:
    """Whether policy `fp16` loses values of a graph."""
    executable = davinci.compile(graph.model, precision="fp16")
    found = executable.run(graph.inputs(graph.seed + 1))
    return lost(executable.profile) > 0 or not all(np.isfinite(x).all() for x in found.values())


def main() -> int:
    parser = parser_of_figures(str(__doc__).partition("\n\n")[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--length", type=int, default=7, help="steps of a graph")
    options = parser.parse_args()
    start, steps, wrong, unscaled = time.process_time(), Counter[str](), 0, 0
    halves = singles = outputs = bounded = 0
    shares: list[float] = []
    for seed in range(options.first, options.first + options.count):
        graph = RangedGraph(seed, options.length)
        steps.update(graph.steps)
        try:
            executable = davinci.compile(graph.model, precision="scaled-fp16", ranges=graph.ranges)
            found, given = findings(graph, executable)
            unscaled += overflows_unscaled(graph)
        except DavinciError as error:
            found, given = [str(error)], []
        shares += given
        scaling = executable.details["scaling"]
        halves, singles = halves + scaling["halves"], singles + len(scaling["left"])
        outputs += len(scaling["outputs"])
        bounded += sum(row["max_abs_err"] is not None for row in scaling["outputs"])
        wrong += bool(found)
        for what in found:
            print(f"seed {seed}: {what}", flush=True)
    made = ", ".join(f"{count} {name}" for name, count in steps.most_common())
    lines = [
        *wrap(f"steps: {made}", 120),
        f"{options.count} graphs, {wrong} wrong; fp16 overflows in {unscaled}",
        f"{halves} values are f16, {singles} are f32 for want of a bound",
        f"{bounded} of {outputs} outputs have a bound of their error, of which runs show "
        f"{np.median(shares):.1%} (median) to {max(shares):.1%}",
    ]
    command = f"scaled_fp16.py --first {options.first} --count {options.count}"
    put("SCALES", command, lines, time.process_time() - start, options.write)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
