"""Kernels that only move elements through global memory, and the arena, of networks of the zoo.

    python benchmarks/speed/copy_kernels.py [network ...] [--machine NAME] [--cores N] [--kernels]
                                            [--write]

Simulated without data. A kernel is a copy if every operator in it only puts elements in other
places. For each network: the launches of such kernels and their cycles beside all cycles, and the
bytes of the arena; with --kernels each such kernel with its launches, cycles and label. --write
writes docs/copies.md.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from network_pages import NAME_WIDTH, NETWORKS, parser_of_networks, write_page
from timed import timed

from davinci import Executable, zoo
from davinci.arena_problem import arena_problem
from davinci.passes.ascend import memory_limit, overwriting
from davinci.passes.pipeline import pipelines
from davinci.runtime.executable import Kernel
from davinci.schedule.moves.piece_rules import RULES

MOVES = frozenset((*RULES, "copy"))

HEADER = ("network", "launches", "copies", "cycles", "of copies", "arena", "apart")

PAGE = Path(__file__).parents[2] / "docs" / "copies.md"

INTRODUCTION = """# Copies and shared bytes

Written by `python benchmarks/speed/copy_kernels.py --write`, simulated on {machine} without data.
Names are those of the zoo's networks; those that are missing here were not run.

* `launches`: kernels started; `copies`: of those, kernels that only put elements in other places:
  changes of layout, transpositions, concatenations, slices, pads, copies.
* `cycles`: of all kernels; `of copies`: of those that are copies.
* `arena`: bytes of the values that kernels hand to each other; `apart`: bytes that these take where
  no result takes the bytes of an operand, and every value keeps all of its bytes for as long as any
  of them is needed.
"""


def is_copy(kernel: Kernel) -> bool:
    """Whether all that a kernel does is moving elements."""
    return bool(kernel.members) and all(member.op in MOVES for member in kernel.members)


def copies_of(executable: Executable) -> list[dict[str, Any]]:
    """The rows of the profile that are copies."""
    rows = executable.profile["kernels"]
    return [row for row in rows if is_copy(executable.kernels[row["name"]])]


@contextlib.contextmanager
def apart() -> Iterator[None]:
    """Inside, results take no bytes of operands, and buffers have no pieces."""
    with (
        mock.patch.object(overwriting, "shareable", lambda graph: []),
        mock.patch.object(memory_limit, "pieces_of", lambda uses, size, align: ()),
    ):
        yield


def bytes_apart(model: Any, machine: str, cores: int) -> int:
    """Bytes of a network's arena without shared bytes."""
    options = pipelines.Options(machine=machine, cores=cores, plan="time")
    with apart():
        return arena_problem(model, options).height


def cells_of(network: str, executable: Executable, before: int) -> list[str]:
    """The figures of a network, in the order of `HEADER`."""
    record, copies = executable.profile, copies_of(executable)
    return [
        network,
        f"{record['ops']['total']:,}",
        f"{sum(row['launches'] for row in copies):,}",
        f"{record['total_cycles']:,}",
        f"{sum(row['cycles'] for row in copies):,}",
        f"{record['memory']['arena_bytes']:,}",
        f"{before:,}",
    ]


def kernels_of(executable: Executable) -> Iterator[list[str]]:
    """Each kernel that is a copy."""
    for row in sorted(copies_of(executable), key=lambda row: -row["cycles"]):
        launches, cycles = f"{row['launches']:,}", f"{row['cycles']:,}"
        yield ["", "", launches, "", cycles, "", "", f"  {row['label']}"]


def line(cells: list[str]) -> str:
    name, *figures = cells
    widths = [11, 9, 13, 13, 15, 15, 0]
    return f"{name:<{NAME_WIDTH}}" + "".join(
        f"{figure:>{width}}" for figure, width in zip(figures, widths, strict=False)
    )


def main() -> int:
    parser = parser_of_networks(str(__doc__).partition("\n\n")[0], "all")
    parser.add_argument("--kernels", action="store_true", help="list each copy")
    options = parser.parse_args()
    lines = [line(list(HEADER))]
    print(*lines, flush=True)
    for network in options.networks or NETWORKS:
        model = network if network.endswith(".onnx") else zoo.build(network).proto
        executable = timed(model, machine=options.machine, cores=options.cores)
        before = bytes_apart(model, options.machine, options.cores)
        lines.append(line(cells_of(network, executable, before)))
        print(lines[-1], flush=True)
        if options.kernels:
            for cells in kernels_of(executable):
                print(line(cells), flush=True)
    if options.write:
        write_page(PAGE, INTRODUCTION, lines, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
