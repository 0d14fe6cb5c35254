"""The arena of each network against the lower bound on its order of launches, and planning time.

    python benchmarks/speed/arenas.py [network ...]

For each network of the zoo at batch 1 on ascend910: KB of the arena as it is planned, the largest
sum of bytes that are live during one launch, and processor seconds of all plans that the
compilation made. Exits with 1 if an arena is larger than 1.02 times its lower bound.
"""

from __future__ import annotations

import argparse
import sys
import time
from unittest import mock

from network_pages import NETWORKS

from davinci import planning, zoo
from davinci.arena_problem import arena_problem
from davinci.passes.ascend import memory_limit
from davinci.passes.pipeline import pipelines

MOST = 1.02
"""Largest arena, in units of the lower bound."""


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("networks", nargs="*", metavar="NAME", help="networks of the zoo")
    options = parser.parse_args()
    print(f"{'network':<44}{'values':>8}{'arena KB':>12}{'bound KB':>12}{'ratio':>8}{'s':>8}")
    worst = 0.0
    for network in options.networks or NETWORKS:
        plans: list[tuple[planning.Plan, float]] = []

        def timed(problem: planning.Problem) -> planning.Plan:
            began = time.process_time()
            plan = planning.solve(problem)
            plans.append((plan, time.process_time() - began))  # noqa: B023
            return plan

        with mock.patch.object(memory_limit, "solve", timed):
            arena_problem(zoo.find(network).proto, pipelines.Options())
        # Without a limit of memory the last plan is the one that is taken.
        plan, seconds = plans[-1][0], sum(spent for _, spent in plans)
        arena, bound, ratio = plan.height, plan.problem.lower_bound, plan.ratio
        worst = max(worst, ratio)
        print(
            f"{network:<44}{len(plan.offsets):>8}{arena / 1024:>12,.1f}{bound / 1024:>12,.1f}"
            f"{ratio:>8.3f}{seconds:>8.2f}",
            flush=True,
        )
    print(f"largest ratio {worst:.3f}")
    return int(worst > MOST)


if __name__ == "__main__":
    sys.exit(main())
