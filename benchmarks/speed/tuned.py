"""Kernels that the compiler makes for the 910B beside programs tuned by hand.

    python benchmarks/speed/tuned.py [row ...] [--check] [--write]

A row of the first table is one operator, or a few that become one kernel: cycles on all cores,
simulated without data and without the task's head, with the L2 empty ("cold") or as a run before
left it ("warm"), and the most that it may take, which is what a program written by hand for this
machine takes and a few per cent more. `row` is a regular expression that chooses names of rows.
--check runs each row's smaller size with data instead, compares it with NumPy, and fails where one
is wrong. The second table has published schedules, as `benchmarks/fidelity` rebuilds them, and what
their boards took, both with the task's head. --write writes both into docs/tuned.md.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isqrt
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from tuned_operators import (
    ADDITION,
    ATTENTION,
    BY_COLUMNS,
    BY_WEIGHTS,
    CAUSAL,
    CONVOLUTION,
    FLOATS,
    GELU,
    LAYER_NORM,
    PRODUCT,
    RMS_NORM,
    SCALED,
    SCALED_GELU,
    SHORT,
    SOFTMAX,
    WIDE_CONVOLUTION,
    WITH_GELU,
    Operators,
    Sizes,
)

import davinci
from davinci import machine as machines
from davinci.files import write_atomically
from davinci.reference import check
from davinci.simulator.core.device import Device

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tuned.md"
MACHINE = "ascend910b"


@dataclass(frozen=True)
class Row:
    """One row of the table.

    Attributes:
        name: without the sizes.
        operators: what is computed.
        sizes: that are timed.
        small: that are computed and compared.
        state: of the L2, "cold" or "warm".
        most: cycles.
        kernel: only kernels whose name begins so count; "": all.
        precision: the policy.
    """

    name: str
    operators: Operators
    sizes: Sizes
    small: Sizes
    state: str
    most: int
    kernel: str = ""
    precision: str = "mixed"

    @property
    def title(self) -> str:
        return f"{self.name} {'x'.join(map(str, self.sizes))} {self.state}"


ROWS = (
    Row("product", PRODUCT, (4096, 4096, 4096), (512, 1024, 1536), "cold", 770_000),
    Row("product", PRODUCT, (8192, 8192, 8192), (768, 1024, 1024), "cold", 6_050_000),
    Row("product", PRODUCT, (1024, 1024, 1024), (384, 512, 768), "warm", 19_500),
    Row("product", PRODUCT, (128, 3072, 768), (128, 1024, 256), "warm", 10_500),
    Row("product", PRODUCT, (1, 4096, 4096), (1, 512, 1024), "cold", 45_500),
    Row("product", PRODUCT, (16, 4096, 11008), (16, 512, 1376), "cold", 121_000),
    Row("gelu(product + bias)", WITH_GELU, (4096, 4096, 4096), (512, 512, 768), "cold", 775_000),
    Row("gelu(product + bias)", WITH_GELU, (512, 768, 3072), (256, 384, 768), "cold", 25_500),
    Row("attention", ATTENTION, (32, 4096, 128), (4, 512, 128), "cold", 1_950_000),
    Row("causal attention", CAUSAL, (32, 4096, 128), (4, 512, 128), "cold", 1_120_000),
    Row("attention", ATTENTION, (1, 8192, 128), (1, 1024, 128), "warm", 365_000),
    Row("attention", ATTENTION, (12, 512, 64), (3, 512, 64), "warm", 16_000),
    Row("layer norm", LAYER_NORM, (512, 768), (64, 768), "warm", 5_200),
    Row("softmax", SOFTMAX, (6144, 512), (192, 512), "warm", 9_700),
    Row("gelu", GELU, (512, 3072), (64, 3072), "warm", 10_000),
    Row("RMS norm", RMS_NORM, (4096, 4096), (96, 4096), "cold", 54_000),
    Row("convolution 3x3", CONVOLUTION, (16, 64, 56, 56), (2, 64, 28, 28), "warm", 25_500, "conv"),
)


def compiled(row: Row, sizes: Sizes, timing_only: bool) -> tuple[davinci.Executable, Any]:
    """The executable for all cores, and its arrays by name."""
    arrays = row.operators.arrays(sizes)
    model = row.operators.model(sizes, arrays)
    options = {"machine": MACHINE, "precision": row.precision, "core_choice": "all"}
    return davinci.compile(model, timing_only=timing_only, **options), arrays


def cycles(row: Row) -> int:
    """Simulated cycles of a row, without heads of tasks."""
    executable, _ = compiled(row, row.sizes, timing_only=True)
    # Between runs the L2 is left with lines that runs before wrote. Here it begins empty, and stays
    # as the first run leaves it.
    with mock.patch.object(Device, "flush"):
        for _ in range(2 if row.state == "warm" else 1):
            executable.run()
    kernels = executable.profile["kernels"]
    return sum(int(x["cycles"]) for x in kernels if x["name"].startswith(row.kernel))


def compared(row: Row) -> dict[str, float]:
    """Errors of the smaller size against NumPy.

    Raises:
        CheckError: they are too large.
    """
    executable, arrays = compiled(row, row.small, timing_only=False)
    given = {name: x for name, x in arrays.items() if name not in row.operators.weights}
    found = executable.run(given)
    wanted = row.operators.values(*(x.astype(np.float32) for x in arrays.values()))
    errors = check.compare(found, {"y": wanted})
    check.require(errors, row.precision)
    return errors


def lines(rows: tuple[Row, ...]) -> Iterator[str]:
    """The first table."""
    yield "| row | cycles | at most | of it |"
    yield "|---|---:|---:|---:|"
    for row in rows:
        taken = cycles(row)
        yield f"| {row.title} | {taken:,} | {row.most:,} | {taken / row.most:.2f} |"


CATLASS = (
    "1024 x 576 x 6144 f16",
    "256 x 512 x 1024 f16",
    "160 x 6144 x 2048 f16, B in fractals",
    "20 x 6144 x 16384 f16, B in fractals",
    "20 x 6144 x 16384 f16, B in rows",
)
"""Products of f16 of its guides, each in several tilings (`published_tiles`)."""


def published() -> Iterator[tuple[str, Row, float, float]]:
    """Names, the same work for the compiler, and microseconds of tasks: as simulated with the
    published schedule, and of boards."""
    sys.path.insert(0, str(ROOT / "benchmarks" / "fidelity"))
    import published_attention as rows_of_attention
    import published_convolution as convolutions
    import published_grouped as grouped
    import published_memory as memory
    import published_products as products
    import published_split as splits
    import published_tiles as templates

    def product(*sizes: int, state: str = "cold") -> Row:
        return Row("product", PRODUCT, sizes, sizes, state, 0)

    name, how, columns, measured = products.PRODUCTS[8]
    yield name, product(8192, 8192, 8192), products.product(how, columns).task, measured[-1]
    size = products.PTO_SIZE
    *_, task = products.pto_product()
    yield "PTO's product", product(size, size, size), task.simulated, task.measured
    name, tiled, times = products.TUNING[3]
    simulated = products.product(tiled).task
    yield name, product(4096, 4096, 5120), simulated, times.get("task", 0.0)
    for found, (keys, board) in zip(
        rows_of_attention.pto_attention(), rows_of_attention.LENGTHS, strict=True
    ):
        row = Row("attention", ATTENTION, (1, keys, 128), (1, 128, 128), "warm", 0)
        yield "PTO's attention", row, found.simulated, board
    for queries, times in rows_of_attention.GRID.items():
        for keys, board in zip(rows_of_attention.GRID_KEYS, times, strict=True):
            row = Row("attention", SHORT, (queries, keys, 128), (64, 256, 128), "warm", 0)
            yield "PTO's grid", row, rows_of_attention.attention(queries, keys), board
    how = convolutions.IMAGES
    sizes = how.batch, how.blocks * convolutions.BLOCK, how.height, how.width
    *_, simulated = convolutions.convolution(how)
    row = Row("convolution 3x3", WIDE_CONVOLUTION, sizes, sizes, "warm", 0, "conv")
    yield "PTO's convolution", row, simulated, convolutions.SHARES[0]
    layouts = {"columns": BY_COLUMNS, "rows": PRODUCT, "fractals": BY_WEIGHTS}
    for problem in CATLASS:
        tiles = [replace(how, machine=templates.MACHINE) for _, how, _ in templates.TILES[problem]]
        (m, n, k), b = tiles[0].size, tiles[0].b
        row = Row(f"product, B in {b},", layouts[b], (m, k, n), (m, k, n), "cold", 0)
        yield "catlass", row, min(map(templates.simulated, tiles)), 0.0
    side = isqrt(memory.ELEMENTS)
    past = memory.addition(
        memory.VECTOR_CORES, memory.PUBLISHED_SIZE, memory.APART, bypass=memory.BYPASS
    )
    yield "no conflicts", Row("addition", ADDITION, (side, side), (64, 512), "warm", 0), past, 184.5
    m, n, k = templates.FLOATS.size
    versions = [how for _, how, _ in templates.TILES[f"{m} x {n} x {k} f32"]]
    row = Row("product of f32", FLOATS, (m, k, n), (m, k, n), "cold", 0, precision="fp32")
    yield "catlass", row, min(map(templates.simulated, versions)), 0.0
    for how, _ in splits.MEASURED:
        sizes = how.rows, how.depth, how.columns
        row = Row("product of bytes, scaled,", SCALED, sizes, sizes, "cold", 0)
        yield "catlass, k split", row, splits.task(replace(how, machine=templates.MACHINE)), 0.0
    rows = grouped.ROWS // grouped.GROUPS
    sizes = grouped.GROUPS, rows, grouped.DEPTH, grouped.COLUMNS
    row = Row("gelu(grouped product of bytes, scaled)", SCALED_GELU, sizes, sizes, "cold", 0)
    simulated, *_ = grouped.times(grouped.VERSIONS[-1][1])
    yield "grouped product", row, simulated, grouped.VERSIONS[-1][-1][0]


def published_lines() -> Iterator[str]:
    """The second table."""
    machine = machines.load(MACHINE)
    launch = machine.launch
    head_us = launch.head_us + launch.head_of_all_cores_us
    yield "| schedule | work | compiled, us | schedule, us | board, us | compiled / schedule |"
    yield "|---|---|---:|---:|---:|---:|"
    for name, row, schedule, board in published():
        ours = cycles(row) / machine.clock_mhz + head_us
        measured = f"{board:,.1f}" if board else ""
        yield (
            f"| {name} | {row.title} | {ours:,.1f} | {schedule:,.1f} | {measured} "
            f"| {ours / schedule:.2f} |"
        )


PAGE_TEXT = """# Compiled kernels beside tuned ones

Made by `python benchmarks/speed/tuned.py --write`; do not edit. All on the simulated
`{machine}`, all cores; arrays of f16 and precision `mixed` where nothing else is said.

## Programs by hand

Cycles of the compiler's kernels, and the most that they should take: what a program written by hand
for the row takes, and a few per cent. Below one in the last column is as wanted. Heads of tasks are
not counted; *cold*: nothing is in the L2; *warm*: what a run before left. Smaller sizes of each row
are computed and compared with NumPy by `--check`.

{first}

## Published schedules

Microseconds of tasks, their heads among them: of the compiler's kernel, of the published schedule
as a program on the same simulated machine (`benchmarks/fidelity`), and of the board, where its time
was published. C8 and 4096x4096x5120 have other layouts than the compiler's kernel has: B of C8 has
k along its rows. Of catlass's tilings of a product the fastest on all cores of this machine counts;
its boards have fewer.

{second}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("rows", nargs="*", metavar="row", help="default: all")
    parser.add_argument("--check", action="store_true", help="compute smaller sizes and compare")
    parser.add_argument("--write", action="store_true", help="write docs/tuned.md")
    options = parser.parse_args()
    chosen = re.compile("|".join(options.rows))
    rows = tuple(row for row in ROWS if chosen.search(row.title))
    if options.check:
        for row in rows:
            errors = compared(row)
            print(f"{row.name} {row.small}: cosine {errors['cosine']:.7f}", flush=True)
        return 0
    tables: list[list[str]] = []
    for table in (lines(rows), () if options.rows else published_lines()):
        tables.append([])
        for line in table:
            print(line, flush=True)
            tables[-1].append(line)
    if options.write:
        first, second = ("\n".join(table) for table in tables)
        text = PAGE_TEXT.format(machine=MACHINE, first=first, second=second)
        write_atomically(PAGE, text.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
