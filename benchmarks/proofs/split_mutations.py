"""Removes and moves synchronisation of kernels whose cube and vector cores run their own programs,
and shifts accesses to slots of rings.

These are the kernels of each kind that the compiler makes for the 910B
(test/fuzz/split_kernels.py).

    python benchmarks/proofs/split_mutations.py [kernel ...] [--most N] [--slots N] [--write]

Each mutant lacks a flag, a barrier or a flag between cores, or has it at another place. It must be
reported by the simulator, or shown harmless by an order worked out independently
(test/fuzz/happens_before.py). Others have one access to a slot of a ring at the next slot; where
that order still holds, the results of the launch are compared (test/fuzz/slot_mutation.py). Prints
the numbers; --write puts them into docs/checks.md. Exits with 1 if a mutant escapes, or if what is
ordered is reported.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from functools import partial
from itertools import chain
from pathlib import Path
from textwrap import wrap

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test"))

from checks_page import parser_of_figures, put

from davinci.units import ceil_div
from fuzz.hivm_mutation import HivmOutcomes, MutatedLaunch, judge, table
from fuzz.recorded_launches import record_launches
from fuzz.slot_mutation import judge_slots, shifts
from fuzz.split_kernels import KINDS, RINGS, made

MOST, SLOTS = 120, 30
"""Mutants of a launch that are judged, evenly spread over its programs: of flags and barriers, and
of slots."""


def one_of(mutants: Iterable[object], most: int) -> int:
    """One of how many mutants is judged so that no more than `most` are."""
    return max(1, ceil_div(sum(1 for _ in mutants), most))


def main() -> int:
    parser = parser_of_figures(str(__doc__).partition("\n\n")[0])
    kernels = [*chain(*KINDS.values()), *RINGS]
    parser.add_argument("names", nargs="*", metavar="kernel", help=", ".join(kernels))
    parser.add_argument("--most", type=int, default=MOST, metavar="N", help="of a launch")
    parser.add_argument("--slots", type=int, default=SLOTS, metavar="N", help="the same of slots")
    options = parser.parse_args()
    start, outcomes = time.process_time(), HivmOutcomes()
    for name in options.names or kernels:
        executable, inputs = made(name)
        before = outcomes.mutants
        for launch in map(MutatedLaunch, record_launches(name, partial(executable.run, inputs))):
            if name not in RINGS:
                judge(launch, outcomes, one_of(launch.mutants(), options.most))
            judge_slots(launch, outcomes, one_of(shifts(launch), options.slots))
        print(f"{name}: {outcomes.mutants - before} mutants", flush=True)
    said = ", ".join(f"{text} {count}" for text, count in outcomes.messages.most_common())
    lines = [
        f"{outcomes.kernels} kernels, {outcomes.instructions} instructions",
        *table(outcomes),
        *wrap(f"reported as: {said}", 120),
    ]
    command = f"split_mutations.py --most {options.most} --slots {options.slots}"
    put("SPLIT", command, lines, time.process_time() - start, options.write)
    print(*outcomes.wrong[:20], sep="\n")
    return int(bool(outcomes.wrong))


if __name__ == "__main__":
    sys.exit(main())
