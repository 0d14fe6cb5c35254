"""How little memory each network's arena can have: what the remedies of a memory limit reach.

    python benchmarks/speed/memory_limits.py [network ...]

For each network at batch 1 on ascend910: KB of the arena as it is planned for time, with its
launches reordered, with fewer kernels that share a launch, and with values computed again, each the
least that the compiler found; what the largest kernel reads and writes, below which none of these
can go; how many launches are repeated, and what the least arena costs in estimated cycles.
Nothing is run. The seconds are those of the whole compilation until the arena is planned.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any
from unittest import mock

from network_pages import NETWORKS

from davinci import zoo
from davinci.arena_problem import arena_problem
from davinci.errors import CompileError
from davinci.passes.ascend import memory_limit
from davinci.passes.ascend.memory_limit import PLANNED, RECOMPUTE, REORDER, SPLIT, Attempt, Remedy
from davinci.passes.pipeline import pipelines

NAMES = (PLANNED, REORDER, SPLIT, RECOMPUTE)


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("networks", nargs="*", metavar="NAME", help="networks of the zoo")
    options = parser.parse_args()
    line = "{:<50}" + "{:>12}" * len(NAMES) + "{:>12}{:>8}{:>9}{:>14}{:>6}"
    print(line.format("network, KB", *NAMES, "kernel", "least", "repeated", "cycles", "s"))
    for network in options.networks or NETWORKS:
        began = time.process_time()
        remedies, kernel = tried(network)
        seconds = time.process_time() - began
        first, best = remedies[0], min(remedies, key=lambda each: each.arena_bytes)
        found = [least(remedies, name) for name in NAMES]
        part = f"{best.arena_bytes / max(first.arena_bytes, 1):.0%}"
        cells = [f"{size / 1024:,.0f}" for size in (*found, kernel)]
        more = f"{best.cycles - first.cycles:+,.0f} of {first.cycles:,.0f}"
        print(line.format(network, *cells, part, best.repeated, more, f"{seconds:.0f}"), flush=True)
    return 0


def least(remedies: list[Remedy], name: str) -> int:
    """The fewest bytes of a remedy or one in front of it."""
    known = NAMES[: NAMES.index(name) + 1]
    return min(each.arena_bytes for each in remedies if each.name in known)


def tried(network: str) -> tuple[list[Remedy], int]:
    """All remedies, and the bytes of the arena that the kernel with most of them touches."""
    found: dict[str, Any] = {}

    def noted(best: Attempt, remedies: list[Remedy], limit: int) -> CompileError:
        launches = [launch for stage in best.staged.launches for launch in stage]
        touched = [{place.storage for place, _ in launch.buffers} for launch in launches]
        sums = [sum(s.size for s in each if s.kind == "arena") for each in touched]
        found["remedies"], found["kernel"] = remedies, max(sums, default=0)
        return CompileError("no memory")

    options = pipelines.Options(memory_limit="1")
    with mock.patch.object(memory_limit, "_does_not_fit", noted):
        try:
            arena_problem(zoo.find(network).proto, options)
        except CompileError:
            if not found:
                raise
    if not found:  # nothing is in the arena
        return [Remedy(PLANNED, 0, 0.0)], 0
    return found["remedies"], found["kernel"]


if __name__ == "__main__":
    sys.exit(main())
