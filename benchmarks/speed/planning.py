"""Heights and seconds of the planner's algorithms on buffer allocation problems.

    python benchmarks/speed/planning.py FOLDER
    python benchmarks/speed/planning.py --networks [--times]

FOLDER has files of the form that `npu-plan` takes, as `benchmarks/challenging` of MiniMalloc's
repository; the number in a file's name, `A.1048576.csv`, is its capacity. Quick is what a
compilation has without a search. Heights are in units of the lower bound, those of the search in
units of the capacity as well. Seconds are of the processor, one thread; the first search includes
the compilation of its native code.

With --networks the memory of whole networks is planned, see `planned_networks.py`; exits with 1 if
ResNeXt needs more memory, or with --times longer, than it should.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import planned_networks

from davinci.planning import ALGORITHMS, QUICK, Budget, Plan, Problem, faults, files, run, solve


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("folder", type=Path, nargs="?", help="of problems, NAME.CAPACITY.csv")
    what.add_argument("--networks", action="store_true", help="plan whole networks instead")
    parser.add_argument("--times", action="store_true", help="simulate the networks, too")
    parser.add_argument("--seconds", type=float, default=20.0, help="for a search; default: 20")
    options = parser.parse_args()
    if options.networks:
        good = planned_networks.show_networks(options.times)
        print()
        planned_networks.show_batches()
        return int(not good)
    names = list(ALGORITHMS)
    print("problem  buffers  " + "  ".join(names) + "  quick  seconds  search/capacity  seconds")
    for path in sorted(options.folder.glob("*.csv")):
        problem = files.load(str(path))
        capacity = int(path.name.split(".")[1])
        heights = [checked(run(name, problem)).ratio for name in names]
        began = time.process_time()
        quick = solve(Problem(problem.buffers), QUICK)
        quick_seconds = time.process_time() - began
        began = time.process_time()
        best = solve(problem, Budget(1 << 60, options.seconds), capacity)
        seconds = time.process_time() - began
        checked(quick)
        checked(best)
        row = [f"{path.name.split('.')[0]:7}", f"{len(problem.buffers):8}"]
        row += [f"{ratio:{len(name)}.3f}" for name, ratio in zip(names, heights, strict=True)]
        row += [f"{quick.ratio:.3f}", f"{quick_seconds:7.3f}"]
        print("  ".join([*row, f"{best.height / capacity:15.4f}", f"{seconds:7.2f}"]), flush=True)
    return 0


def checked(plan: Plan) -> Plan:
    """The plan, held against the brute-force checker."""
    found = faults(plan.problem, plan.offsets)
    assert not found, found[0]
    return plan


if __name__ == "__main__":
    sys.exit(main())
