"""Kernels that only move elements through global memory, and the arena, of networks of the zoo.

    python benchmarks/speed/copy_kernels.py [network ...] [--machine NAME] [--cores N] [--kernels]

Simulated without data. A kernel is a copy if every operator in it only puts elements in other
places. For each network: the launches of such kernels and their cycles beside all cycles, and the
bytes of the arena; with --kernels each such kernel with its launches, cycles and label.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from network_pages import NAME_WIDTH, NETWORKS, parser_of_networks
from timed import timed

from davinci import Executable, zoo
from davinci.runtime.executable import Kernel
from davinci.schedule.moves.piece_rules import RULES

MOVES = frozenset((*RULES, "copy"))

HEADER = ("network", "launches", "copies", "cycles", "of copies", "arena")


def is_copy(kernel: Kernel) -> bool:
    """Whether all that a kernel does is moving elements."""
    return bool(kernel.members) and all(member.op in MOVES for member in kernel.members)


def copies_of(executable: Executable) -> list[dict[str, Any]]:
    """The rows of the profile that are copies."""
    rows = executable.profile["kernels"]
    return [row for row in rows if is_copy(executable.kernels[row["name"]])]


def cells_of(network: str, executable: Executable) -> list[str]:
    """The figures of a network, in the order of `HEADER`."""
    record, copies = executable.profile, copies_of(executable)
    return [
        network,
        f"{record['ops']['total']:,}",
        f"{sum(row['launches'] for row in copies):,}",
        f"{record['total_cycles']:,}",
        f"{sum(row['cycles'] for row in copies):,}",
        f"{record['memory']['arena_bytes']:,}",
    ]


def kernels_of(executable: Executable) -> Iterator[list[str]]:
    """Each kernel that is a copy."""
    for row in sorted(copies_of(executable), key=lambda row: -row["cycles"]):
        launches, cycles = f"{row['launches']:,}", f"{row['cycles']:,}"
        yield ["", "", launches, "", cycles, "", f"  {row['label']}"]


def line(cells: list[str]) -> str:
    name, *figures = cells
    widths = [11, 9, 13, 13, 15, 0]
    return f"{name:<{NAME_WIDTH}}" + "".join(
        f"{figure:>{width}}" for figure, width in zip(figures, widths, strict=False)
    )


def main() -> int:
    parser = parser_of_networks(str(__doc__).partition("\n\n")[0], "all")
    parser.add_argument("--kernels", action="store_true", help="list each copy")
    options = parser.parse_args()
    print(line(list(HEADER)), flush=True)
    for network in options.networks or NETWORKS:
        model = network if network.endswith(".onnx") else zoo.build(network).proto
        executable = timed(model, machine=options.machine, cores=options.cores)
        print(line(cells_of(network, executable)), flush=True)
        if options.kernels:
            for cells in kernels_of(executable):
                print(line(cells), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
