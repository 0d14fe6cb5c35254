"""Schedules of products as choices: those that are chosen are legal, given ones decide."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import davinci
from davinci import machine as machines
from davinci.errors import InputError
from davinci.schedule.choices import PartChoice, ProductChoice, of_data, to_data
from davinci.schedule.products.candidates import Wanted
from davinci.schedule.products.choice import choose, ranked
from davinci.schedule.products.legality import require_legal
from davinci.schedule.products.product import (
    DENSE,
    Product,
    ProductOperand,
    ProductResult,
    ProductSchedule,
    Share,
    Tile,
)
from davinci.schedule.vector.space import NoSpace

MACHINE = machines.load("ascend910")
TEXT = """
func.func @main(%a: tensor<{m}x{k}xf16>, %b: tensor<{k}x{n}xf16>) -> tensor<{m}x{n}xf16> {{
  %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<{m}x{k}xf16>, tensor<{k}x{n}xf16>) -> tensor<{m}x{n}xf16>
  return %c : tensor<{m}x{n}xf16>
}}"""
SIZES = [(1, 1, 1), (100, 40, 13), (257, 300, 100), (64, 1024, 512), (1, 4096, 1000)]


def rows(m: int, k: int, n: int) -> Product:
    return Product(
        1,
        m,
        k,
        n,
        ProductOperand(False, 2, False),
        ProductOperand(False, 2, True),
        ProductResult(False, 2),
    )


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("cores", [1, 32])
def test_ranked_schedules_are_legal_data(size: tuple[int, int, int], cores: int) -> None:
    product = rows(*size)
    ways = ranked(product, MACHINE, cores)
    assert ways[0] == choose(product, MACHINE, cores, Wanted())
    assert len(set(ways)) == len(ways)
    for schedule in ways:
        require_legal(product, schedule, MACHINE)
        choices = (PartChoice(cores=cores, choice=ProductChoice(schedule=schedule)),)
        assert of_data(to_data(choices)) == choices


GOOD = choose(rows(100, 40, 100), MACHINE, 2, Wanted())
BAD: list[tuple[ProductSchedule, str]] = [
    (replace(GOOD, leaving=0), "1 or more"),
    (replace(GOOD, outer="k"), "over m or n"),
    (replace(GOOD, share=Share(1, 8, 7)), "a part of C"),
    (replace(GOOD, tile=Tile(8, 1, 1)), "part of its share"),
    (replace(GOOD, part=(99, 1)), "part of a tile"),
    (replace(GOOD, beside=(9, 1)), "take turns"),
    (replace(GOOD, a=replace(GOOD.a, other=99)), "as wide as a tile"),
    (replace(GOOD, a=replace(GOOD.a, rows=99)), "part of a piece"),
    (replace(GOOD, a=replace(GOOD.a, slots=4096)), "no room in L1"),
    (replace(GOOD, a=replace(GOOD.a, held=3)), "are matrices"),
    (replace(GOOD, ragged="soon"), "rows leave by"),
]


@pytest.mark.parametrize(("schedule", "reason"), BAD)
def test_what_cannot_be_is_refused(schedule: ProductSchedule, reason: str) -> None:
    with pytest.raises(NoSpace, match=reason):
        require_legal(rows(100, 40, 100), schedule, MACHINE)


def test_whole_blocks_are_not_packed() -> None:
    whole = rows(100, 40, 96)
    schedule = replace(choose(whole, MACHINE, 2, Wanted()), ragged=DENSE)
    with pytest.raises(NoSpace, match="whole blocks"):
        require_legal(whole, schedule, MACHINE)


@pytest.mark.parametrize("change", [{"schedule": 3}, {"more": 1}, {"form": "tiles"}])
def test_data_that_is_no_schedule(change: dict[str, Any]) -> None:
    (data,) = to_data((PartChoice(cores=2, choice=ProductChoice(schedule=GOOD)),))
    data["choice"] |= change
    with pytest.raises(NoSpace, match="cannot be read"):
        of_data([data])
    (data,) = to_data((PartChoice(cores=2, choice=ProductChoice(schedule=GOOD)),))
    data["choice"]["schedule"]["a"]["more"] = 1
    with pytest.raises(NoSpace, match="cannot be read"):
        of_data([data])


def test_a_file_decides(tmp_path: Path) -> None:
    text, path = TEXT.format(m=100, k=40, n=13), tmp_path / "s.json"
    saved = json.loads(davinci.compile(text, cores=2).schedules())
    (kernel,) = saved["kernels"]
    (part,) = kernel["choices"]
    part["choice"]["schedule"] |= {"ahead": 1, "leaving": 1, "part": [1, 1]}
    path.write_text(json.dumps(saved))
    executable = davinci.compile(text, cores=2, schedules=path)
    random = np.random.default_rng(0)
    a, b = (random.integers(-3, 4, s).astype(np.float16) for s in ((100, 40), (40, 13)))
    (found,) = executable.run(a, b).values()
    np.testing.assert_array_equal(found, a @ b)
    assert json.loads(executable.schedules())["kernels"][0]["choices"] == kernel["choices"]
    part["choice"]["schedule"]["part"] = [2, 1]
    path.write_text(json.dumps(saved))
    with pytest.raises(InputError, match="part of a tile"):
        davinci.compile(text, cores=2, schedules=path)


def test_tuning(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    text, path = TEXT.format(m=64, k=100, n=200), tmp_path / "s.json"
    found = davinci.tune(text, cores=2, trials=3)
    (kernel,) = found.kernels
    path.write_text(found.text())
    executable = davinci.compile(text, cores=2, schedules=path, timing_only=True)
    executable.run(np.zeros((64, 100), np.float16), np.zeros((100, 200), np.float16))
    assert executable.launches[0].cycles == kernel.cycles <= found.untuned[0]
