"""Whole networks: launches, cycles and bytes before (`--fusion none`) and after, and their bounds.

    python benchmarks/speed/network_targets.py [network ...] [--quick] [--machine NAME] [--cores N]

Simulated without data. `bound` are the cycles of the machine's limits of all kernels, as the
machine file gives them; `memory` bytes between the L2 and the memory over those that must pass
once: weights, inputs and outputs. A target is the most that we want, cycles / launches.
--quick leaves out the largest, and what the others take without fusion.
"""

from __future__ import annotations

import sys

import numpy as np
from network_pages import parser_of_networks
from timed import timed_network

LARGEST = "bert-base,seq=512"

TARGETS = {
    "lstm,steps=100,hidden=256": (0, 2),
    "bert,layers=2,hidden=768,heads=12,seq=128": (150_000, 22),
    LARGEST: (900_000, 90),
}
"""Cycles and launches at most; 0 if nobody said."""


def measured(network: str, machine: str, cores: int, fusion: str) -> tuple[int, int, int, float]:
    """Launches, cycles, their bound, and how often bytes pass the memory."""
    executable = timed_network(network, machine=machine, cores=cores, fusion=fusion)
    record, launches = executable.profile, executable.launches
    passed = sum(x.traffic.filled_bytes + x.traffic.written_back_bytes for x in launches)
    once = record["memory"]["weights_bytes"] + sum(
        int(np.prod(spec.shape)) * np.dtype(spec.dtype).itemsize
        for spec in (*executable.inputs, *executable.outputs)
    )
    return len(launches), record["total_cycles"], record["bound_cycles"], passed / once


def main() -> int:
    parser = parser_of_networks(str(__doc__).partition("\n\n")[0], "those with a target")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    networks = options.networks or [x for x in TARGETS if not (options.quick and x == LARGEST)]
    print(f"{'network':<42}{'launches':>16}{'cycles':>24}{'target':>14}{'bound':>10}{'memory':>8}")
    for network in networks:
        launches, cycles, bound, memory = measured(network, options.machine, options.cores, "all")
        old = "-", "-"
        if not options.quick:
            before = measured(network, options.machine, options.cores, "none")
            old = f"{before[0]:,}", f"{before[1]:,}"
        target = " / ".join(f"{x:,}" if x else "-" for x in TARGETS.get(network, (0, 0)))
        print(
            f"{network:<42}{old[0] + ' -> ' + format(launches, ','):>16}"
            f"{old[1] + ' -> ' + format(cycles, ','):>24}{target:>14}{bound:>10,}{memory:>8.2f}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
