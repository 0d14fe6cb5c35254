"""Takes out every synchronisation instruction of every kernel of bert-tiny, one at a time, and of
kernels of groups with several tiles on one core: softmax, layer norm, gelu, rotary embedding, a
product with what follows it, statistics of columns (test/fuzz/group_kernels.py).

    python benchmarks/proofs/check_mutations.py [network or group ...] [--write]

Each mutant must be reported by the simulator, or shown redundant by an order worked out
independently (test/fuzz/happens_before.py). Prints the numbers, and what is redundant: the compiler
could leave it out; --write puts the numbers into docs/checks.md. Exits with 1 if a mutant escapes,
or if the simulator reports what is ordered.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test"))

from checks_page import arguments, put

from davinci import zoo
from fuzz import cores_mutation
from fuzz.group_kernels import group_models
from fuzz.sync_mutation import Outcomes, judge, record, sequential_pipes, table

CORES = (1, 32)
SEED, PROGRAMS = 1, 400
"""Of random programs for several cores, whose mutants are judged as well."""


def main(names: list[str], write: bool) -> int:
    start = time.perf_counter()
    results = {}
    groups = group_models()
    for name in names or ["bert-tiny", *groups]:
        for cores in CORES[:1] if name in groups else CORES:
            title = f"{name}, {cores} core{'s' if cores > 1 else ''}"
            outcomes = results[title] = Outcomes()
            for kernel in record(groups.get(name) or zoo.build(name), cores):
                judge(kernel, sequential_pipes(), outcomes)
    lines = table(results).splitlines()
    for title, outcomes in results.items():
        said = ", ".join(f"{text} {count}" for text, count in outcomes.messages.most_common())
        lines.append(f"{title}, reported as: {said}")
    cores = cores_mutation.judge(SEED, PROGRAMS)
    lines.append(
        f"random programs for several cores of ascend910b: {cores['programs']} programs, "
        + ", ".join(f"{kind} {cores[kind]}" for kind in cores_mutation.OUTCOMES)
    )
    command = " ".join(["check_mutations.py", *names])
    put("MUTATIONS", command, lines, time.perf_counter() - start, write)
    for title, outcomes in results.items():
        for heading, texts in (
            ("redundant in every iteration and block", outcomes.redundant),
            ("escapes and false alarms", outcomes.wrong),
        ):
            print(f"{title}, {heading}: {len(texts)}", *texts, sep="\n  ")
    wrong = any(outcomes.wrong for outcomes in results.values())
    return int(wrong or cores["escaped"] or cores["false alarm"])


if __name__ == "__main__":
    sys.exit(main(*arguments()))
