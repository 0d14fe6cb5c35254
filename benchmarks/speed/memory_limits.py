"""Which limits of memory each network's arena fits, by which remedy, and what that costs.

    python benchmarks/speed/memory_limits.py [network ...] [--limit 60%] [--times]

For each network at batch 1 on ascend910: KB of the arena as it is planned for time, and with each
remedy that the compiler tries until the limit holds (launches reordered, fewer kernels that share a
launch, values computed again, chains of kernels computed in parts); the remedy that is enough, or
"none"; and what it costs in estimated cycles. With --times both are simulated without data. The
seconds are those of the processor for the compilation until the arena is planned.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any
from unittest import mock

from network_pages import NETWORKS
from timed import timed

from davinci import zoo
from davinci.arena_problem import arena_problem
from davinci.errors import CompileError
from davinci.passes.ascend import ascend_bufferize
from davinci.passes.ascend.memory_limit import (
    CUT,
    PLANNED,
    RECOMPUTE,
    REORDER,
    SPLIT,
    Attempt,
    Cuts,
    Fit,
    Remedy,
)
from davinci.passes.pipeline import pipelines

NAMES = (PLANNED, REORDER, SPLIT, RECOMPUTE, CUT)


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("networks", nargs="*", metavar="NAME", help="networks of the zoo")
    parser.add_argument("--limit", default="60%", help="of the arena; default: 60%%")
    parser.add_argument("--times", action="store_true", help="simulate the networks, too")
    options = parser.parse_args()
    line = "{:<50}" + "{:>11}" * len(NAMES) + "{:>11}{:>7}{:>26}{:>6}"
    more = ("enough", "part", "cycles", "s", *(["us", "with limit"] * options.times))
    line += "{:>11}{:>11}" * options.times
    print(line.format("network, KB", *NAMES, *more))
    for network in options.networks or NETWORKS:
        began = time.process_time()
        remedies, holds = tried(network, options.limit)
        seconds = time.process_time() - began
        first, last = remedies[0], remedies[-1]
        best = last if holds else min(remedies, key=lambda each: each.arena_bytes)
        cells = [least(remedies, name) for name in NAMES]
        cells += [best.name if holds else "none"]
        cells += [f"{best.arena_bytes / max(first.arena_bytes, 1):.0%}"]
        cells += [price(best, first)]
        cells += [f"{seconds:.0f}"]
        if options.times:
            limits = ("", options.limit if holds else "")
            cells += [f"{time_us(network, limit):,.1f}" if holds else "" for limit in limits]
        print(line.format(network, *cells), flush=True)
    return 0


def price(best: Remedy, first: Remedy) -> str:
    """Estimated cycles that a remedy takes more; nothing where they are not known."""
    if best.cycles is None or first.cycles is None:
        return ""
    return f"{best.cycles - first.cycles:+,.0f} of {first.cycles:,.0f}"


def least(remedies: Sequence[Remedy], name: str) -> str:
    """The fewest KB of a remedy; nothing where it was not tried."""
    sizes = [each.arena_bytes for each in remedies if each.name == name]
    return f"{min(sizes) / 1024:,.0f}" if sizes else ""


def tried(network: str, limit: str) -> tuple[list[Remedy], bool]:
    """What each remedy gave, and whether the last one is enough."""
    found: list[Remedy] = []
    holds = True

    def noted(cuts: Cuts, fitted: Fit) -> list[Remedy]:
        found.extend(remedies := remedies_of(cuts, fitted))
        return remedies

    def failed(best: Attempt, remedies: Sequence[Remedy], limit_bytes: int) -> CompileError:
        nonlocal holds
        holds = False
        return CompileError("no memory")

    remedies_of = Cuts.remedies
    with (
        mock.patch.object(Cuts, "remedies", noted),
        mock.patch.object(ascend_bufferize, "does_not_fit", failed),
    ):
        try:
            arena_problem(zoo.find(network).proto, pipelines.Options(memory_limit=limit))
        except CompileError:
            if holds:
                raise
    return found, holds


def time_us(network: str, limit: str) -> float:
    """Microseconds of a network with its launches."""
    options: dict[str, Any] = {"memory_limit": limit} if limit else {}
    return float(timed(zoo.find(network), **options).profile["time_us"])


if __name__ == "__main__":
    sys.exit(main())
