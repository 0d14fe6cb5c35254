"""Launches, cycles, work of the cube and idle cores of the networks of the zoo, one by one.

    python benchmarks/speed/networks.py [network ...] [--kernels N] [--machine NAME] [--cores N]
                                        [--write]

Simulated without data. `idle` is the share of all cores' time in which a core has no block of the
launch under way, `limit` what the machine's limits of all kernels are of their cycles; `lost` are
core-cycles of idle cores, with `--kernels` also of the N kernels that lose most of them. --write
writes docs/networks.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from network_pages import NAME_WIDTH, NETWORKS, parser_of_networks, write_page
from timed import timed_network

PAGE = Path(__file__).parents[2] / "docs" / "networks.md"

HEADER = ("network", "launches", "scalar", "cycles", "us", "cube", "limit", "idle", "lost")

INTRODUCTION = """# Networks of the zoo

Written by `python benchmarks/speed/networks.py --write`, simulated on {machine} without data.

* `launches`: kernels started, in launches of their own or as phases of one; `scalar`: of those, on
  the scalar unit.
* `cycles`: of the kernels; `us`: those and what it takes to start them, or that cores meet, queued
  on the device after the first, which the host starts in {overhead:g} us.
* `cube`: share of the cycles in which the cube is busy, on average over the cores at work; `limit`:
  what the machine's limits of all kernels are of their cycles.
* `idle`: share of all cores' time in which a core has no block; `lost`: those core-cycles.
"""


def measure(network: str, machine: str, cores: int) -> dict[str, Any]:
    """The record of a network of the zoo, run without data."""
    record: dict[str, Any] = timed_network(network, machine=machine, cores=cores).profile
    return record


def cells_of(network: str, record: dict[str, Any]) -> list[str]:
    total = max(1, record["total_cycles"])
    return [
        network,
        f"{record['ops']['total']:,}",
        f"{record['ops']['scalar']:,}",
        f"{record['total_cycles']:,}",
        f"{record['time_us']:,.0f}",
        f"{record['pipes'].get('PIPE_M', {'ratio': 0})['ratio']:.0%}",
        f"{record['bound_cycles'] / total:.0%}",
        f"{record['idle']['ratio']:.0%}",
        f"{record['idle']['idle_core_cycles']:,}",
    ]


def kernels_of(record: dict[str, Any], count: int) -> Iterator[list[str]]:
    """The kernels that lose most cycles of idle cores."""
    rows = sorted(record["kernels"], key=lambda row: -row["idle_core_cycles"])
    for row in rows[:count]:
        yield [
            f"  {row['label'][:39]}",
            f"{row['launches']:,}",
            "1" if row["unit"] == "scalar" else "",
            f"{row['cycles']:,}",
            "",
            "",
            f"{row['bound_cycles'] / max(1, row['cycles']):.0%}",
            f"{row['idle_core_cycles'] / max(1, row['core_cycles']):.0%}",
            f"{row['idle_core_cycles']:,}",
        ]


def line(cells: Sequence[str]) -> str:
    name, *figures = cells
    return f"{name:<{NAME_WIDTH}}" + "".join(f"{figure:>13}" for figure in figures)


def main() -> int:
    parser = parser_of_networks(str(__doc__).partition("\n\n")[0], "all")
    parser.add_argument("--kernels", type=int, default=0, help="that lose most, of each network")
    options = parser.parse_args()
    lines = [line(HEADER)]
    print(*lines, flush=True)
    for network in options.networks or NETWORKS:
        record = measure(network, options.machine, options.cores)
        found = [line(cells_of(network, record))]
        print(*found, sep="\n", flush=True)
        for cells in kernels_of(record, options.kernels):
            print(line(cells), flush=True)
        lines += found
    if options.write:
        write_page(PAGE, INTRODUCTION, lines, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
