"""Takes out every synchronisation instruction of every kernel of bert-tiny, one at a time, and of
kernels of groups (test/fuzz/group_kernels.py): softmax, layer norm, gelu, rotary embedding,
products with what is around them, rows in phases, groups side by side.

    python benchmarks/proofs/check_mutations.py [network or group ...] [--write]

Each mutant must be reported by the simulator, or shown redundant by an order worked out
independently (test/fuzz/happens_before.py). Kernels whose cores meet are judged with all of their
blocks together, one in so many of their mutants (test/fuzz/talking_kernels.py). Prints the numbers,
and what is redundant: the compiler could leave it out; --write puts the numbers into
docs/checks.md. Exits with 1 if a mutant escapes, or if the simulator reports what is ordered.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path
from textwrap import wrap

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test"))

from checks_page import parser_of_figures, put

from davinci import zoo
from fuzz import cores_mutation, talking_mutation
from fuzz.group_kernels import group_models
from fuzz.recorded_kernels import record
from fuzz.sync_mutation import Outcomes, judge, sequential_pipes, table
from fuzz.talking_kernels import TalkingKernel

CORES = (1, 32)
SEED, PROGRAMS = 1, 400
"""Of random programs for several cores, whose mutants are judged as well."""

EVERY = 4
"""One in so many mutants of each kernel whose cores meet is judged."""


def main() -> int:
    groups = group_models()
    parser = parser_of_figures(str(__doc__).partition("\n\n")[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"a network of the zoo, or of {', '.join(groups)}"
    )
    options = parser.parse_args()
    names, start = options.names, time.process_time()
    results, meeting = {}, talking_mutation.Tally()
    for name in names or ["bert-tiny", *groups]:
        for cores in [groups[name].cores] if name in groups else CORES:
            title = f"{name}, {cores} core{'s' if cores > 1 else ''}"
            outcomes = results[title] = Outcomes()
            for kernel in record(groups.get(name) or zoo.build(name), cores):
                if (talking := TalkingKernel(kernel)).posts:
                    talking_mutation.judge_compiled(talking, meeting, EVERY)
                else:
                    judge(kernel, sequential_pipes(), outcomes)
    messages = sum((each.messages for each in results.values()), Counter[str]())
    said = ", ".join(f"{text} {count}" for text, count in messages.most_common())
    lines = [*table(results), *wrap(f"reported as: {said}", 120)]
    cores = cores_mutation.judge(SEED, PROGRAMS)
    lines.append(
        f"random programs for several cores of ascend910b: {cores['programs']} programs, "
        + ", ".join(f"{kind} {cores[kind]}" for kind in cores_mutation.OUTCOMES)
    )
    if meeting.kernels:
        lines += ["", f"kernels whose cores meet: {meeting.kernels}, one in {EVERY} mutants"]
        lines += talking_mutation.table(meeting)[1:]
    command = " ".join(["check_mutations.py", *names])
    put("MUTATIONS", command, lines, time.process_time() - start, options.write)
    for title, outcomes in results.items():
        for heading, texts in (
            ("redundant in every iteration and block", outcomes.redundant),
            ("escapes and false alarms", outcomes.wrong),
        ):
            print(f"{title}, {heading}: {len(texts)}", *(t[:120] for t in texts), sep="\n  ")
    print(*meeting.wrong, sep="\n")
    wrong = meeting.wrong or any(outcomes.wrong for outcomes in results.values())
    return int(bool(wrong) or cores["escaped"] or cores["false alarm"])


if __name__ == "__main__":
    sys.exit(main())
