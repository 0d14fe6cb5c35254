"""What single changes to programs and machine files do to rows outside their targets."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

import pytest


@pytest.fixture(scope="module")
def experiments(benchmark_script: Any) -> Any:
    return benchmark_script("experiments")


def test_every_change_has_its_rows_as_they_are(experiments: Any) -> None:
    """A change of the machine file is undone behind its rows, and rows are told by their names."""
    published = importlib.import_module("published")
    before = published.MACHINE
    change = experiments.on_910b("c", {("mte2", "start_cycles"): 365}, published.transfers)
    plain, changed = list(change.plain()), list(change.changed())
    assert published.MACHINE is before
    assert [row.simulated + 100 for row in plain] == [row.simulated for row in changed]
    names = [(row.group, row.name) for row in plain]
    assert names == [(row.group, row.name) for row in changed]


def test_lines_take_rows_that_were_simulated_before(
    experiments: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = experiments.Row("g", "a", "us", 100, 90, 0.05)
    more = dataclasses.replace(row, simulated=101)

    def never() -> Any:
        raise AssertionError("these rows are known")

    known = experiments.Experiment("x", never, lambda: iter([more]))
    monkeypatch.setattr(experiments, "EXPERIMENTS", [lambda: known])
    *_, line = experiments.lines([row])
    assert line == "| x | g, a | 100.0 | 90.0 | -10.0% | 101.0 | +1.0% |"


def test_fixpipe_waits_for_sums(experiments: Any) -> None:
    """Nearly all of the time of the column, as published, for one buffer of everything."""
    products = importlib.import_module("published_products")
    _, how, columns, measured = products.PRODUCTS[1]
    times = products.product(how, columns // 2)
    assert times.fixpipe + times.waits == pytest.approx(measured[3], rel=0.2)


def test_the_convolution_waits_for_transfers_that_come_unevenly(experiments: Any) -> None:
    """As many cycles more, all by a part of the transfers, and the task takes longer."""
    convolution = importlib.import_module("published_convolution")
    small = convolution.Convolution(4, 4, 12, 64, 1536)
    time = {
        (late, cycles): convolution.convolution(
            dataclasses.replace(small, late=late, late_cycles=cycles)
        )[-1]
        for late, cycles in ((0.0, 0), (1.0, 80), (0.125, 640))
    }
    plain, evenly, unevenly = time.values()
    assert evenly - plain < 0.5 * (unevenly - plain)


def test_three_registers_of_gelu_lie_between(experiments: Any) -> None:
    one, three, six = (next(experiments.gelu(count)).simulated for count in (1, 3, 6))
    measured = importlib.import_module("published_950").UNROLLED
    assert six < three < measured < one


def test_rows_cost_by_their_distance(experiments: Any) -> None:
    """Each part has its own number, and the machine is the one of before behind it."""
    published = importlib.import_module("published")

    def rows(name: str) -> Any:
        cycles = published.MACHINE.mte2.nd2nz_row_cycles
        yield experiments.Row("g", name, "us", 1, cycles, 0.05)

    before = published.MACHINE
    parts = [(2, lambda: rows("near")), (16, lambda: rows("far"))]
    change = experiments.by_distance("c", parts, 0.5)
    assert [(row.name, row.simulated) for row in change.changed()] == [("near", 1), ("far", 8)]
    assert {row.simulated for row in change.plain()} == {before.mte2.nd2nz_row_cycles}
    assert published.MACHINE is before
