"""Random networks of what rewrites replace, with all rewrites and with none, against StableHLO's
interpreter in f64.

    python benchmarks/proofs/random_rewrites.py [--first SEED] [--count N] [--length N] [--most N]

Each network (test/random_rewrite_steps.py) runs on the simulated 910 with all checks on, on 1 to 32
cores. Prints what is wrong, with the text of the network, and how often each rewrite was applied in
all of them. Exits with 1 if one was wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test"))

import davinci
from fuzz.graph_fuzz import CORES, Way, differences
from random_graphs import Graph
from random_rewrite_steps import STEPS


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--length", type=int, default=7, help="steps of a network")
    parser.add_argument("--most", type=int, default=4000, help="elements of an array")
    options = parser.parse_args()
    applied, wrong = Counter[str](), 0
    for seed in range(options.first, options.first + options.count):
        graph = Graph(seed, options.most)
        graph.walk(options.length, STEPS)
        cores = CORES[seed % len(CORES)]
        ways = [Way("ascend910", cores, rewrites=names) for names in ("all", "none")]
        for finding in differences(graph, seed, ways):
            wrong += 1
            print(f"seed {seed}, {finding.way}: {finding.what}\n{finding.text}", flush=True)
        found = davinci.compile(graph.text, cores=cores, timing_only=True).details["rewrites"]
        applied.update(found)
    for name, count in applied.most_common():
        print(f"{name:<24}{count:>8,}")
    print(f"{options.count} networks, each with and without rewrites: {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
