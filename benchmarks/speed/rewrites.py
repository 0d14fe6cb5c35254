"""What each rewrite of the catalogue gains: networks compiled with it and without it.

    python benchmarks/speed/rewrites.py [name ...] [--networks SPEC ...] [--machine NAME] [--write]

A small network for each rewrite (`rewrite_networks`), and networks of the zoo, each compiled with
all rewrites and with all but one of those that were applied, simulated without data. Prints
launches, cycles of the kernels, and time with the launches; --write puts the table into
docs/rewrites.md, between the marks that the generator of that page leaves alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewrite_networks import built
from timed import timed

from davinci import machine as machines
from davinci import zoo
from davinci.files import write_atomically
from davinci.passes.pipeline.rewrites import REWRITES

PAGE = Path(__file__).parents[2] / "docs" / "rewrites.md"
FIRST, LAST = "<!-- gains -->\n", "<!-- end of gains -->"

ZOO = ("gru,steps=32", "vit,depth=2")
"""Networks that are measured where none are named."""

PUBLISHED = {
    "fold-scales": "BN to scale 5.9 to 10.3",
    "slice-product": "slices 8.5",
    "loop-kernels": "GRU 35",
    "product-epilogues": "MatMul + bias 2.97",
}
"""Gains in % that MindSpore Lite's authors measured on phones, of the same idea."""

HEADER = ("rewrite", "network", "applied", "launches", "cycles", "us", "gain", "published, %")

INTRODUCTION = """## What they gain

Written by `python benchmarks/speed/rewrites.py --write`.

Each network without the rewrite (`--rewrites all,-NAME`) -> with it, simulated on {machine} without
data, each kernel on all cores that it has work for (`--core-choice all`). `applied`: how often, in
the network; `cycles`: of the kernels; `us`: those and what launches take, queued on the device
behind the first, which the host starts in {overhead:g} us; `gain`: of `us`, as a share of the time
without the rewrite. `small` networks are in `benchmarks/speed/rewrite_networks.py`, the others in
the zoo. The last column has what the authors of MindSpore Lite measured on phones of rewrites with
the same idea.

"""


@dataclass(frozen=True)
class Figures:
    """Of one run.

    Attributes:
        applied: how often each rewrite was applied.
    """

    launches: int
    cycles: int
    time_us: float
    applied: dict[str, int]


def measure(model: Any, machine: str, rewrites: str) -> Figures:
    """Compiles a model and runs it without data."""
    executable = timed(model, machine=machine, rewrites=rewrites, core_choice="all")
    record = executable.profile
    cycles, time_us = record["total_cycles"], record["time_us"]
    return Figures(len(executable.launches), cycles, time_us, executable.details["rewrites"])


def row(name: str, network: str, off: Figures, on: Figures) -> str:
    """A line of the table."""
    gain = 1 - on.time_us / off.time_us
    cells = [
        str(on.applied.get(name, 0)),
        f"{off.launches} -> {on.launches}",
        f"{off.cycles:,} -> {on.cycles:,}",
        f"{off.time_us:,.1f} -> {on.time_us:,.1f}",
        f"{gain:.1%}",
        PUBLISHED.get(name, "") if network == "small" else "",
    ]
    return line([name, network, *cells])


def line(cells: Sequence[str]) -> str:
    name, network, applied, launches, cycles, us, gain, published = cells
    widths = f"{applied:>8}{launches:>13}{cycles:>22}{us:>20}{gain:>8}"
    return f"{name:<22} {network:<42}{widths}   {published}".rstrip()


def rows(names: Sequence[str], networks: Sequence[str], machine: str) -> Iterator[str]:
    """Lines of small networks and of those of the zoo."""
    for name in names:
        model = built(name)
        on = measure(model, machine, "all")
        yield row(name, "small", measure(model, machine, f"all,-{name}"), on)
    for network in networks:
        model = zoo.find(network)
        on = measure(model, machine, "all")
        for name in names:
            if on.applied.get(name):
                yield row(name, network, measure(model, machine, f"all,-{name}"), on)


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="name", help="of a rewrite; default: all")
    parser.add_argument("--networks", nargs="*", default=list(ZOO), help="of the zoo")
    parser.add_argument("--machine", default="ascend910")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in REWRITES]
    if unknown:
        parser.error(f"no such rewrite: {', '.join(unknown)}")
    if options.write and options.names:
        parser.error("--write is for all rewrites, without names")
    lines = [line(HEADER)]
    print(*lines, flush=True)
    for found in rows(options.names or list(REWRITES), options.networks, options.machine):
        print(found, flush=True)
        lines.append(found)
    if options.write:
        put(lines, options.machine)
    return 0


def put(lines: Sequence[str], machine: str) -> None:
    """Writes the table between its marks on the page."""
    found = machines.load(machine)
    head = INTRODUCTION.format(
        machine=f"{found.name}, {found.cores} cores", overhead=found.launch.overhead_us
    )
    before, rest = PAGE.read_text(encoding="utf-8").split(FIRST)
    after = rest.partition(LAST)[2]
    table = "\n".join(lines)
    text = f"{before}{FIRST}{head}```\n{table}\n```\n{LAST}{after}"
    write_atomically(PAGE, text.encode())


if __name__ == "__main__":
    sys.exit(main())
