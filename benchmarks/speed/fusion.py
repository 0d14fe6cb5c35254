"""What fusion is worth: networks of the zoo with a kernel for each operator, and with groups.

    python benchmarks/speed/fusion.py [network ...] [--large] [--machine NAME] [--cores N] [--write]

For each network kernels, launches, bytes that instructions moved from and to global memory, bytes
between the L2 and the memory, cycles of the kernels, and time with the launches, simulated without
data; the line below says how many times less a fused network has of each. --large adds
all networks of the zoo, and takes some minutes more; --write writes docs/fusion.md.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from network_pages import NAME_WIDTH, NETWORKS, parser_of_networks, write_page
from timed import timed_network

PAGE = Path(__file__).parents[2] / "docs" / "fusion.md"

SMALL = ("mlp", "bert-tiny", "bert,layers=1,hidden=256,heads=4,seq=64")
LARGE = ("mlp,batch=512", "bert-base")

COLUMNS = ("kernels", "launches", "GM MB", "memory MB", "cycles", "us")
FORMATS = ("{:,}", "{:,}", "{:,.2f}", "{:,.2f}", "{:,}", "{:,.1f}")

INTRODUCTION = """# What fusion is worth

Written by `python benchmarks/speed/fusion.py --large --write`: networks of the zoo with a kernel
for each operator (`--fusion none`), and with groups of operators as kernels.

* `kernels`: different ones; `launches`: how often any of them is started.
* `GM MB`: what instructions moved from and to global memory, whether the L2 had it
  or not; `memory MB`: what passed between the L2 and the memory.
* `cycles`: of the kernels, simulated on {machine}; `us`: those and the launches.
* `ratio`: without fusion over with it.
"""


@dataclass(frozen=True)
class Figures:
    """Of one run."""

    kernels: int
    launches: int
    gm_mb: float
    memory_mb: float
    cycles: int
    time_us: float

    def over(self, other: Figures) -> list[float]:
        """How many times more of everything than `other`."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return [mine / theirs if theirs else 1.0 for mine, theirs in pairs]


assert len(fields(Figures)) == len(COLUMNS)


def measure(network: str, machine: str, cores: int, fusion: str) -> Figures:
    """Runs a network of the zoo without data."""
    options = {"machine": machine, "cores": cores, "fusion": fusion}
    executable = timed_network(network, "many", **options)
    record, launches = executable.profile, executable.launches
    moved = sum(launch.gm_read_bytes + launch.gm_write_bytes for launch in launches)
    passed = sum(x.traffic.filled_bytes + x.traffic.written_back_bytes for x in launches)
    cycles, time_us = record["total_cycles"], record["time_us"]
    kernels = len(record["kernels"])
    return Figures(kernels, len(launches), moved / 1e6, passed / 1e6, cycles, time_us)


def lines_of(network: str, none: Figures, fused: Figures) -> list[str]:
    """The table's three lines of a network."""
    rows = [
        [network, "none", *(f.format(v) for f, v in zip(FORMATS, astuple(none), strict=True))],
        ["", "all", *(f.format(v) for f, v in zip(FORMATS, astuple(fused), strict=True))],
        ["", "ratio", *(f"{ratio:.2f}" for ratio in none.over(fused))],
    ]
    return [line(row) for row in rows]


def line(cells: Sequence[str]) -> str:
    name, fusion, *figures = cells
    return f"{name:<{NAME_WIDTH}} {fusion:<6}" + "".join(f"{figure:>13}" for figure in figures)


def main() -> int:
    parser = parser_of_networks(str(__doc__).partition("\n\n")[0], "small")
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    networks = options.networks or [*SMALL, *(LARGE + NETWORKS if options.large else ())]
    networks = list(dict.fromkeys(networks))
    lines = [line(["network", "fusion", *COLUMNS])]
    print(*lines, flush=True)
    for network in networks:
        runs = [
            measure(network, options.machine, options.cores, fusion) for fusion in ("none", "all")
        ]
        found = lines_of(network, *runs)
        print(*found, sep="\n", flush=True)
        lines += found
    if options.write:
        write_page(PAGE, INTRODUCTION, lines, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
