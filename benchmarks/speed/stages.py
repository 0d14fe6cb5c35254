"""What it gains that kernels share launches: time of networks with launches, plan by plan.

    python benchmarks/speed/stages.py [network ...] [--plans sequential,time]

For each network at batch 1 and each plan: launches, cycles, time with the launches queued on the
device, bytes of the arena, and the gain over one launch after the other; simulated without data on
ascend910. Then the seconds of the processor that the search for stages took, without estimates of
kernels. Exits with 1 if a network of `TARGETS` gains less than it should.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any
from unittest import mock

import davinci
from davinci import zoo
from davinci.passes.ascend import staging

TARGETS = {
    "inception-v3": 1.6,
    "randwire": 1.4,
    "nasnet-mobile": 1.4,
    "squeezenet": 1.2,
    "googlenet": 1.3,
}
"""Least gain of the plan `time`."""

NETWORKS = (*TARGETS, "resnext50", "densenet", "shufflenet-v2")

SEARCH_SECONDS = 10.0
"""At most, of the search."""


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("networks", nargs="*", metavar="NAME", help="networks of the zoo")
    parser.add_argument("--plans", default="sequential,time", help="separated by commas")
    options = parser.parse_args()
    missed = []
    columns = ("network", "plan", "launches", "cycles", "us", "arena KB", "gain", "search s")
    line = "{:<24}{:<14}{:>10}{:>12}{:>10}{:>10}{:>8}{:>10}"
    print(line.format(*columns))
    for network in options.networks or NETWORKS:
        first = None
        for plan in options.plans.split(","):
            record, seconds = measured(network, plan)
            first = first or record["time_us"]
            gain = first / record["time_us"]
            cells = (record["launches"], record["total_cycles"], record["time_us"])
            arena = record["memory"]["arena_bytes"] / 1024
            texts = (f"{cells[0]:,}", f"{cells[1]:,}", f"{cells[2]:,.1f}", f"{arena:,.0f}")
            print(line.format(network, plan, *texts, f"{gain:.2f}", f"{seconds:.2f}"), flush=True)
            if plan == "time" and (gain < TARGETS.get(network, 0) or seconds > SEARCH_SECONDS):
                missed.append(network)
    for network in missed:
        print(f"missed: {network}, gain {TARGETS.get(network)} in {SEARCH_SECONDS:g} s")
    return int(bool(missed))


def measured(network: str, plan: str) -> tuple[dict[str, Any], float]:
    """The record of a network, and the seconds that searching its stages took."""
    seconds = 0.0

    def timed(prices: Any) -> Any:
        nonlocal seconds
        begin = time.process_time()
        found = search(prices)
        seconds += time.process_time() - begin
        return found

    search = staging.fastest
    with mock.patch.object(staging, "fastest", timed):
        executable = davinci.compile(zoo.build(network), plan=plan, timing_only=True)
    executable.run()
    return executable.profile, seconds


if __name__ == "__main__":
    sys.exit(main())
