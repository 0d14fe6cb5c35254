"""Random networks, fused and with a kernel for each operator, against StableHLO's interpreter.

    python benchmarks/proofs/fuzz_graphs.py [--first SEED] [--count N] [--length N] [--most N]
                                            [--views] [--machine NAME] [--keep DIR] [--write]

Each network (test/random_graphs.py) is compiled for every machine that the compiler makes kernels
for, or for one, with 1 to 32 cores, and runs on the simulated machine with all checks on; bytes of
the arena that no value needs are filled with 0xFF between launches. Prints what went wrong, and
what the networks were made of. --views takes networks rich in parts, joined values and residual
sums; --keep writes the text of each network that failed, --write puts the numbers into
docs/checks.md. After every ten networks a line of stderr says how far it is, so that a long run is
seen to go on and one that was stopped says which seeds it has tried. Exits with 1 if any failed.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path
from textwrap import wrap

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test"))

from checks_page import parser_of_figures, put

from fuzz.graph_fuzz import MACHINES, findings
from random_graph_steps import STEPS, VIEWS
from random_graphs import Graph

NETWORKS_PER_LINE = 10


def main() -> int:
    parser = parser_of_figures(str(__doc__).partition("\n\n")[0])
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--length", type=int, default=8, help="steps of a network")
    parser.add_argument("--most", type=int, default=70_000, help="elements of an array")
    parser.add_argument("--views", action="store_true", help="networks rich in views")
    parser.add_argument("--machine", choices=MACHINES, help="by default all")
    parser.add_argument("--keep", metavar="DIR")
    options = parser.parse_args()
    allowed = VIEWS if options.views else STEPS
    machines = [options.machine] if options.machine else MACHINES
    start, steps, failed = time.process_time(), Counter[str](), 0
    began = time.monotonic()
    for seed in range(options.first, options.first + options.count):
        graph = Graph(seed, options.most)
        graph.walk(options.length, allowed)
        steps.update(graph.steps)
        length, most = options.length, options.most
        for finding in findings(seed, length, most, len(machines), allowed, machines):
            failed += 1
            print(f"seed {finding.seed}, {finding.way}: {finding.what}", flush=True)
            if options.keep:
                folder = Path(options.keep)
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"{finding.seed}.mlir").write_text(finding.text, encoding="utf-8")
        report_progress(seed, options.first, options.count, failed, time.monotonic() - began)
    runs = options.count * 2 * len(machines)
    made = ", ".join(f"{count} {name}" for name, count in steps.most_common())
    lines = [
        *wrap(f"steps: {made}", 120),
        f"{options.count} networks, {runs} runs, {failed} failed",
    ]
    size = f"--length {options.length} --most {options.most}{' --views' * options.views}"
    size += f" --machine {options.machine}" if options.machine else ""
    command = f"fuzz_graphs.py --first {options.first} --count {options.count} {size}"
    put(
        "VIEWS" if options.views else "GRAPHS",
        command,
        lines,
        time.process_time() - start,
        options.write,
    )
    return int(failed > 0)


def report_progress(seed: int, first: int, count: int, failed: int, seconds: float) -> None:
    """Prints to stderr how many networks are tried, after every tenth of them and the last."""
    tried = seed - first + 1
    if tried % NETWORKS_PER_LINE == 0 or tried == count:
        print(
            f"{tried} of {count} networks (seeds {first} to {seed}), {failed} failed, "
            f"{seconds:,.0f} s",
            file=sys.stderr,
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
