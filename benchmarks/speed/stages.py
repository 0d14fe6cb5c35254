"""What it gains that kernels share launches: time of networks with launches, plan by plan.

    python benchmarks/speed/stages.py [network ...] [--plans sequential,time]

For each network at batch 1 and each plan: launches, cycles, time with the launches queued on the
device, bytes of the arena, and the gain over one launch after the other; simulated without data on
ascend910. `most` is what it could gain if no launch waited for another than those whose results it
reads, whatever cores there are: the rest is the longest chain of launches, by estimates. Then the
seconds of the processor that the search for stages took, without estimates of kernels.

A network whose name ends in `:apart` has every group of its convolutions as an operator of its own,
as "Memory and parallel execution of a network's graph" (2021) has ResNeXt. Exits with 1 if a
network of `TARGETS` gains less than it should.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any
from unittest import mock

from graph_memory import groups_apart
from timed import timed

from davinci import zoo
from davinci.passes.ascend import staging
from davinci.schedule.stages import longest_after, sequential

TARGETS = {
    "inception-v3": 1.6,
    "randwire": 1.4,
    "nasnet-mobile": 1.4,
    "squeezenet": 1.2,
    "googlenet": 1.3,
    "resnext50:apart": 1.3,
}
"""Least gain of the plan `time`."""

NETWORKS = (*TARGETS, "resnext50", "densenet", "shufflenet-v2")

APART = ":apart"

SEARCH_SECONDS = 10.0
"""At most, of the search."""


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("networks", nargs="*", metavar="NAME", help="networks of the zoo")
    parser.add_argument("--plans", default="sequential,time", help="separated by commas")
    options = parser.parse_args()
    missed = []
    figures = ("launches", "cycles", "us", "arena KB", "gain", "most", "search s")
    columns = ("network", "plan", *figures)
    line = "{:<24}{:<14}{:>10}{:>12}{:>10}{:>10}{:>8}{:>8}{:>10}"
    print(line.format(*columns))
    for network in options.networks or NETWORKS:
        first = None
        for plan in options.plans.split(","):
            record, seconds, waiting_us = measured(network, plan)
            first = first or record["time_us"]
            gain = first / record["time_us"]
            cells = (record["launches"], record["total_cycles"], record["time_us"])
            arena = record["memory"]["arena_bytes"] / 1024
            texts = (f"{cells[0]:,}", f"{cells[1]:,}", f"{cells[2]:,.1f}", f"{arena:,.0f}")
            most = f"{first / (first - waiting_us):.2f}" if waiting_us else ""
            texts = (*texts, f"{gain:.2f}", most, f"{seconds:.2f}")
            print(line.format(network, plan, *texts), flush=True)
            if plan == "time" and (gain < TARGETS.get(network, 0) or seconds > SEARCH_SECONDS):
                missed.append(network)
    for network in missed:
        print(f"missed: {network}, gain {TARGETS.get(network)} in {SEARCH_SECONDS:g} s")
    return int(bool(missed))


def measured(network: str, plan: str) -> tuple[dict[str, Any], float, float]:
    """The record of a network, the seconds that searching its stages took, and by how many
    microseconds all launches in a row take longer than the longest chain of them."""
    seconds = waiting = 0.0

    def watched(prices: Any) -> Any:
        nonlocal seconds, waiting
        apart = sum(stage.cycles for stage in sequential(prices))
        waiting = (apart - max(longest_after(prices))) / prices.machine.clock_mhz
        begin = time.process_time()
        found = search(prices)
        seconds += time.process_time() - begin
        return found

    search = staging.fastest
    with mock.patch.object(staging, "fastest", watched):
        executable = timed(model_of(network), plan=plan)
    return executable.profile, seconds, waiting


def model_of(network: str) -> Any:
    """A network of the zoo, with its groups apart if its name says so."""
    model = zoo.build(network.removesuffix(APART)).proto
    return groups_apart(model) if network.endswith(APART) else model


if __name__ == "__main__":
    sys.exit(main())
