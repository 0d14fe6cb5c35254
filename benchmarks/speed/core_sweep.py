"""How well the number of cores of each kernel is chosen: networks with all cores and with fewer.

    python benchmarks/speed/core_sweep.py [network ...] [--counts 1,2,4,8,16,32] [--all-cores]

For each network at batch 1: the time with launches where every kernel takes as many of the
machine's cores as its cost says, then with at most each count of cores; simulated without data on
ascend910. With --all-cores kernels of the sweep take all cores that they have work for, one launch
after the other. A count is not simulated if that many cubes, or vector units, at work all the time
take longer than the choice does: `>` and that time stand in its place. Each run has a process of
its own, so memory does not add up over a sweep. Exits with 1 if a network takes more than 2 %
longer than with the best count.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from typing import Any

from network_pages import NETWORKS
from timed import timed

from davinci import machine, zoo
from davinci.report.limits import limits

MACHINE = machine.load("ascend910")

SLACK = 0.02
"""Part of the time that the choice may lose to the best count of the sweep."""

TILED = 4
"""How many times as often a 3x3 convolution multiplies as its product by Winograd tiles of 4x4."""


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
        chosen, work_us = measured(network)
        times, cells = [chosen], []
        for count in counts:
            least = work_us / count
            if least > chosen:
                cells.append(f">{least:,.0f}")
                continue
            whole = count == MACHINE.cores and not swept
            times.append(chosen if whole else measured(network, cores=count, **swept)[0])
            cells.append(f"{times[-1]:,.1f}")
        lost = chosen / min(times) - 1
        print(line.format(network, f"{chosen:,.1f}", *cells, f"{lost:.1%}"), flush=True)
        missed += lost > SLACK
    print(f"{missed} networks lose more than {SLACK:.0%}")
    return int(missed > 0)


def measured(network: str, **options: Any) -> tuple[float, float]:
    """Microseconds of a network with its launches queued on the device, found in a new process; and
    those that one core would work on it at least."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(simulated, (network,), options)


def simulated(network: str, **options: Any) -> tuple[float, float]:
    """The same, compiled and run in this process. A unit of a core does its part of the work one
    after the other, whatever the schedule is; but convolutions may be products by tiles on another
    number of cores, which take the cube down to a quarter."""
    record = timed(zoo.find(network), **options).profile
    work = [row["work"] for row in record["kernels"] for _ in range(row["launches"])]
    one = limits(MACHINE, 1)
    rates = {8: one["macs_i8"], 16: one["macs_f16"]}
    cube = sum(each.get("macs", 0) / rates[each.get("factor_bits", 16)] for each in work)
    vector = sum(each.get("vector_repeats", 0) / one["vector_repeats"] for each in work)
    if any("conv" in row["op"] for row in record["kernels"]):
        cube /= TILED
    return float(record["time_us"]), max(cube, vector) / MACHINE.clock_mhz


if __name__ == "__main__":
    sys.exit(main())
