"""Placement: plans of random graphs, checked independently and held against all plans there are.

    python benchmarks/proofs/placements.py --graphs 1000 --seed 1

Draws graphs of up to 9 tasks on 2 or 3 devices. The integer program has to find the least latency,
which trying all plans finds, too; every plan of every algorithm has to pass the check. Prints how
far from the best each algorithm was. Exit code 1 if something is wrong.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test"))

from davinci.placement import ALGORITHMS, Placement, faults, place
from davinci.placement.exhaustive import exhaustive
from davinci.placement.hope import integer_parts
from random_task_graphs import random_problem

TOLERANCE = 1e-6


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--graphs", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    ratios: dict[str, list[float]] = {name: [] for name in (*ALGORITHMS, "integer program")}
    wrong = 0
    for number in range(options.graphs):
        problem = random_problem(rng, rng.randint(1, 9), rng.randint(2, 3))
        best = exhaustive(problem)
        plans = {name: place(problem, name) for name in ALGORITHMS}
        plans["integer program"] = integer_parts(problem, seconds=120.0, short=0.0)
        for name, plan in plans.items():
            ratio = plan.latency / best.latency if best.latency else 1.0
            ratios[name].append(ratio)
            found = faults(plan)
            if plan.proven and abs(ratio - 1) > TOLERANCE:
                found.append(f"said to be the best, which takes {best.latency:g}")
            if name == "integer program" and not plan.proven:
                found.append("not proven")
            wrong += report(number, name, plan, found)
    print(f"{options.graphs} graphs, {wrong} plans wrong; latency over the least one:")
    for name, found_ratios in ratios.items():
        median, mean = statistics.median(found_ratios), statistics.mean(found_ratios)
        best_count = sum(ratio <= 1 + TOLERANCE for ratio in found_ratios)
        share = 100 * best_count / len(found_ratios)
        most = max(found_ratios)
        print(
            f"  {name:16} median {median:.3f}  mean {mean:.3f}  most {most:.3f}  best {share:.1f} %"
        )
    return int(wrong > 0)


def report(number: int, name: str, plan: Placement, found: list[str]) -> bool:
    """Prints what is wrong with a plan; returns whether something is."""
    for fault in found:
        print(f"graph {number}, {name}, latency {plan.latency:g}: {fault}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
