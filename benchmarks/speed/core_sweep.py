"""How well the number of cores of each kernel is chosen: networks with all cores and with fewer.

    python benchmarks/speed/core_sweep.py [network ...] [--counts 1,2,4,8,16,32] [--all-cores]

For each network at batch 1: the time with launches where every kernel takes as many of the
machine's cores as its cost says, then with at most each count of cores; simulated without data on
ascend910. With --all-cores kernels of the sweep take all cores that they have work for, one launch
after the other. Each run has a process of its own, so memory does not add up over a sweep. Exits
with 1 if a network takes more than 2 % longer than with the best count.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from typing import Any

from network_pages import NETWORKS
from timed import timed

from davinci import zoo

SLACK = 0.02
"""Part of the time that the choice may lose to the best count of the sweep."""


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("networks", nargs="*", metavar="NAME", help="networks of the zoo")
    parser.add_argument("--counts", default="1,2,4,8,16,32", help="of cores, separated by commas")
    parser.add_argument(
        "--all-cores", action="store_true", help="kernels of the sweep take all cores"
    )
    options = parser.parse_args()
    counts = [int(count) for count in options.counts.split(",")]
    swept: dict[str, Any] = {"core_choice": "all"} if options.all_cores else {}
    line = "{:<50}{:>10}" + "{:>10}" * len(counts) + "{:>10}"
    print(line.format("network", "chosen us", *(f"on {count}" for count in counts), "lost"))
    missed = 0
    for network in options.networks or NETWORKS:
        chosen = time_us(network)
        times = [time_us(network, cores=count, **swept) for count in counts]
        lost = chosen / min(times) - 1
        cells = (f"{time:,.1f}" for time in (chosen, *times))
        print(line.format(network, *cells, f"{lost:.1%}"), flush=True)
        missed += lost > SLACK
    print(f"{missed} networks lose more than {SLACK:.0%}")
    return int(missed > 0)


def time_us(network: str, **options: Any) -> float:
    """Microseconds of a network with its launches queued on the device, found in a new process."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(simulated_us, (network,), options)


def simulated_us(network: str, **options: Any) -> float:
    """Simulated microseconds of a network of the zoo, compiled and run in this process."""
    return float(timed(zoo.find(network), **options).profile["time_us"])


if __name__ == "__main__":
    sys.exit(main())
