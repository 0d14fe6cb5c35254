"""What rows outside their targets seem to lack, tried: one thing is changed at a time.

    python benchmarks/fidelity/experiments.py

A change here is no mechanism of the model: it says how far a suspicion reaches, and where it would
be wrong. `validate_timing.py` writes the table into its page.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import published
import published_950
import published_950_cube
import published_attention
import published_convolution
import published_grouped
import published_kernels
import published_products
import published_split
from foretelling import GRID, PTO, V1, V7, Rows, of_group, others, readings, rows_on, with_number
from foretelling import versions as versions_of
from published import Row
from published_products import Product, product

from davinci.machine import Machine

Key = tuple[str, ...]

GELU_GROUP = published_950.GROUPS[1]
PRODUCT_950, _, MX = published_950_cube.GROUPS
CONVOLUTION, GROUPED = published_convolution.GROUP, published_grouped.GROUP


@dataclass(frozen=True)
class Experiment:
    """A change, and rows that it touches.

    Attributes:
        change: what is changed.
        plain: the rows as they are.
        changed: the same rows with the change.
    """

    change: str
    plain: Rows
    changed: Rows


def on_910b(change: str, numbers: Mapping[Key, float], *rows: Rows) -> Experiment:
    """Rows by a machine file with other numbers."""

    def plain() -> Iterator[Row]:
        for each in rows:
            yield from each()

    def changed() -> Iterator[Row]:
        data: dict[str, Any] = published.MACHINE.model_dump()
        for key, value in numbers.items():
            data = with_number(data, key, value)
        for each in rows:
            yield from rows_on(data, each)

    return Experiment(change, plain, changed)


Versions = Sequence[tuple[str, Product, int, tuple[float, ...]]]


def waiting(group: str, products: Versions, names: Sequence[str], waits: bool) -> Iterator[Row]:
    """The fixpipe column of versions of a product, with what fixpipe waits for sums or without."""
    for name, how, columns, measured in products:
        if name.split(",")[0] in names:
            times = product(how, columns)
            found = times.fixpipe + waits * times.waits
            yield Row(group, f"{name}: fixpipe", "us", measured[3], found, 0.15)


def waits_counted(group: str, products: Versions, names: Sequence[str]) -> Experiment:
    rows = partial(waiting, group, products, names)
    change = "fixpipe counts from when it waits for sums"
    return Experiment(change, partial(rows, False), partial(rows, True))


def convolution(late: float, cycles: int) -> Iterator[Row]:
    """PTO's convolution, a part of whose transfers of weights takes longer."""
    how = dataclasses.replace(published_convolution.IMAGES, late=late, late_cycles=cycles)
    for row in published_convolution.pto_convolution(how):
        if row.name in ("cube", "MTE2", "task"):
            yield row


def late(change: str, part: float, cycles: int) -> Experiment:
    return Experiment(change, partial(convolution, 0, 0), partial(convolution, part, cycles))


def by_distance(change: str, parts: Sequence[tuple[float, Rows]], cycles: float) -> Experiment:
    """A row of a transfer to fractals costs by how far the next one is from it.

    Args:
        parts: kilobytes from row to row, and the rows of the page that have it.
        cycles: of a kilobyte.
    """

    def changed() -> Iterator[Row]:
        for distance, rows in parts:
            key = ("mte2", "nd2nz_row_cycles")
            yield from on_910b(change, {key: cycles * distance}, rows).changed()

    def plain() -> Iterator[Row]:
        for _, rows in parts:
            yield from rows()

    return Experiment(change, plain, changed)


def later(rows: Rows) -> Iterator[Row]:
    """Tasks with what the machine file gives for a launch of cube and vector cores."""
    for row in rows():
        yield dataclasses.replace(row, simulated=row.simulated + published.MACHINE.launch.mixed_us)


def started(rows: Rows) -> Experiment:
    change = f"a task takes {published.MACHINE.launch.mixed_us:g} us more, `launch.mixed_us`"
    return Experiment(change, rows, partial(later, rows))


def gelu(registers: int) -> Iterator[Row]:
    """The vector unit with so many registers of GELU at a time."""
    compute = published_950.unrolled(registers)
    time = published_950.Tiles(compute, 4, published_950.TILE, published_950.PAIRS).vector()
    measured = published_950.UNROLLED
    yield Row(GELU_GROUP, "unrolled by 6: vector unit", "us", measured, time, 0.05)


def registers(count: int) -> Experiment:
    change = f"{count} of the six registers at a time"
    return Experiment(change, partial(gelu, 6), partial(gelu, count))


def transfers_of_950(machine: Machine) -> Iterator[Row]:
    """MTE2 of products of MX formats and of f16."""
    for name, how, rows, measured in published_950_cube.MX_PRODUCTS:
        times = dataclasses.replace(how, machine=machine).times(rows)
        yield Row(MX, f"{name}: MTE2", "us", measured[2], times.mte2, 0.15)
    for name, version, columns, measured in published_950_cube.PRODUCTS:
        if name.split(",")[0] in ("C4", "C5"):
            found = product(dataclasses.replace(version, machine=machine), columns)
            yield Row(PRODUCT_950, f"{name}: MTE2", "us", measured[2], found.mte2, 0.15)


def start_hidden(cycles: int) -> Experiment:
    """Transfers to fractals on the 950 with another number of cycles besides rows and bytes."""
    machine = published_950.MACHINE
    mte2 = machine.mte2.model_copy(update={"nd2nz_fixed_cycles": cycles})
    other = machine.model_copy(update={"mte2": mte2})
    change = f"a transfer to fractals takes {cycles} cycles besides rows and bytes, not "
    change += f"{machine.mte2.nd2nz_fixed_cycles:g}"
    return Experiment(change, partial(transfers_of_950, machine), partial(transfers_of_950, other))


def kernels(rows: bool) -> Iterator[Row]:
    """Products beside those of libraries, by weights that lie as rows or as fractals."""
    for group, known, machine in (
        (published_kernels.GROUP_310, published_kernels.ON_310, "ascend310"),
        (published_kernels.GROUP_910, published_kernels.ON_910, "ascend910"),
    ):
        for kernel in known:
            if kernel.operator == "MatMul":
                how = dataclasses.replace(kernel, rows=rows)
                yield published_kernels.row(group, how, machine, "")


def as_rows() -> Experiment:
    return Experiment("ours takes weights as rows", partial(kernels, False), partial(kernels, True))


SIXTEEN: Mapping[int, Sequence[float]] = {2048: published_attention.GRID[2048]}
ONE: Mapping[int, Sequence[float]] = {128: published_attention.GRID[128]}
PTO_MTE2 = of_group(published_products.pto_product, PTO, "MTE2")
ROWS_OF_V7 = others("20 cores, 64 x 64 x 256", "128 x 256 x 64", "large transfers")

LOADED = [
    case
    for case in published_products.PRODUCTS
    if case[0].split(",")[0] in ("C5", "C6", "C7", "C8")
]
"""Versions of V1 whose cube takes the same mads, on the board for 9, 6, 3 and 0 % longer."""

EXPERIMENTS: list[Callable[[], Experiment]] = [
    partial(
        waits_counted,
        V1,
        published_products.PRODUCTS,
        ("C0", "C1", "C2", "C3", "C4", "basic API"),
    ),
    partial(waits_counted, PRODUCT_950, published_950_cube.PRODUCTS, ("C0", "C1", "C2", "C5")),
    partial(
        on_910b,
        "1.4 times the time of a request for a line that several cores read",
        {("gm", "same_line_request_cycles"): 1.4 * published.MACHINE.gm.same_line_request_cycles},
        of_group(partial(published_attention.grid, SIXTEEN), GRID),
        readings("to UB, all by all cores, in the same order"),
    ),
    partial(
        on_910b,
        "a line costs 8 % more for each other core that reads it",
        {("gm", "same_line_percent"): 8},
        of_group(published_convolution.pto_convolution, CONVOLUTION, "MTE2", "task"),
        PTO_MTE2,
    ),
    partial(late, "all transfers of weights take 80 cycles more", 1, 80),
    partial(late, "a quarter of them take 320 more", 0.25, 320),
    partial(
        on_910b,
        "fractals come to L0B at 102 bytes a cycle, five cycles each",
        {("mte1", "l0b_bytes_per_cycle"): 102.4},
        of_group(
            published_grouped.grouped,
            GROUPED,
            *(
                f"{name}: {pipe}"
                for name, *_ in published_grouped.VERSIONS
                for pipe in ("MTE1", "task")
            ),
        ),
    ),
    partial(started, published_split.split_products),
    partial(started, partial(published_attention.grid, ONE)),
    partial(
        on_910b,
        "a row of a transfer to fractals takes 2 cycles, a transfer none besides",
        {("mte2", "nd2nz_row_cycles"): 2, ("mte2", "nd2nz_fixed_cycles"): 0},
        of_group(ROWS_OF_V7, V7),
        versions_of("MTE2", "C1"),
        PTO_MTE2,
    ),
    partial(
        by_distance,
        "a row of a transfer to fractals costs in proportion to the distance of the next one, 2.54 "
        "cycles for 16 KB",
        ((16, versions_of("MTE2", "C1", "C4")), (9, of_group(ROWS_OF_V7, V7)), (6, PTO_MTE2)),
        published.MACHINE.mte2.nd2nz_row_cycles / 16,
    ),
    partial(
        on_910b,
        "a clock of 1,720 MHz, as the cube of C5 has it",
        {("clock_mhz",): 1720},
        of_group(
            partial(published_products.products, LOADED),
            V1,
            *(f"{name}: {pipe}" for name, *_ in LOADED for pipe in ("cube", "task")),
        ),
    ),
    *(partial(registers, count) for count in (1, 2, 3)),
    partial(start_hidden, 187),
    as_rows,
]


def lines(seen: Sequence[Row] = ()) -> Iterator[str]:
    """Lines of Markdown: rows as they are, of `seen` or simulated, and with each change."""
    yield "| change | row | measured | as it is | error | changed | error |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    for make in EXPERIMENTS:
        experiment = make()
        known = {(row.group, row.name): row for row in seen}
        changed = list(experiment.changed())
        if not all((row.group, row.name) in known for row in changed):
            known = {(row.group, row.name): row for row in experiment.plain()}
        for row in changed:
            plain = known[row.group, row.name]
            said = "" if row is not changed[0] else experiment.change
            yield (
                f"| {said} | {row.group}, {row.name} | {row.measured:,.1f} | "
                f"{plain.simulated:,.1f} | {plain.error:+.1%} | {row.simulated:,.1f} | "
                f"{row.error:+.1%} |"
            )


def main() -> None:
    argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0]).parse_args()
    for line in lines():
        print(line, flush=True)


if __name__ == "__main__":
    main()
