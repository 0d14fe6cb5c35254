"""Takes out every synchronisation instruction of every kernel of bert-tiny, one at a time.

    python benchmarks/check_mutations.py [network ...]

Each mutant must be reported by the simulator, or shown redundant by an order worked out
independently (test/happens_before.py). Prints the numbers, and what is redundant: the compiler
could leave it out. Exits with 1 if a mutant escapes, or if the simulator reports what is ordered.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from davinci import zoo
from sync_mutation import Outcomes, judge, record, sequential_pipes, table

CORES = (32, 1)


def main(names: list[str]) -> int:
    start = time.perf_counter()
    results = {}
    for name in names or ["bert-tiny"]:
        for cores in CORES:
            outcomes = results[f"{name}, {cores} cores"] = Outcomes()
            for kernel in record(zoo.build(name), cores):
                judge(kernel, sequential_pipes(), outcomes)
    print(table(results))
    for title, outcomes in results.items():
        said = ", ".join(f"{text} {count}" for text, count in outcomes.messages.most_common())
        print(f"\n{title}, what was reported: {said}")
        for heading, lines in (
            ("redundant in every iteration and block", outcomes.redundant),
            ("escapes and false alarms", outcomes.wrong),
        ):
            print(f"{title}, {heading}: {len(lines)}", *lines, sep="\n  ")
    print(f"\n{time.perf_counter() - start:.0f} s")
    return int(any(outcomes.wrong for outcomes in results.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
