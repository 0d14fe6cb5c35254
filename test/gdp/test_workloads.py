"""The programs of `examples/gdp` on small images, against the same in f64."""

from __future__ import annotations

import runpy
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from davinci import gdp

EXAMPLES = Path(__file__).parents[2] / "examples" / "gdp"


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of the programs can be imported from."""
    monkeypatch.syspath_prepend(str(EXAMPLES))


def image(height: int, width: int) -> Any:
    return np.random.default_rng(0).random((3, height, width)).astype(np.float16)


@pytest.mark.parametrize(
    ("name", "size", "precision"),
    [
        ("tone", (1, 17), "fp16"),
        ("gaussian", (1, 1), "mixed"),
        ("gaussian", (13, 67), "fp16"),
        ("sharp", (7, 1), "mixed"),
        ("mean_std", (11, 13), "mixed"),
    ],
)
def test_programs_on_images(name: str, size: tuple[int, int], precision: str) -> None:
    """Within 0.2 % of the largest value."""
    module = import_module(name)
    expected = getattr(module, "by_numpy", module.__dict__[name])
    img = image(*size)
    model = gdp.compile(module.__dict__[name], precision=precision)
    found = gdp.run_async(model, {"img": img}).result()
    wanted = expected(img.astype(np.float64))
    wanted = wanted if isinstance(wanted, dict) else {"out0": wanted}
    for key, array in found.items():
        largest = max(np.abs(wanted[key]).max(), 1e-3)
        np.testing.assert_allclose(array, wanted[key], rtol=0, atol=0.002 * largest)


def test_edges_are_exact() -> None:
    canny, picture = import_module("canny"), import_module("workloads").picture
    img = picture(23, 41)
    found = gdp.run_async(gdp.compile(canny.canny), {"img": img}).result()["out0"]
    expected = canny.by_numpy(img.astype(np.float64))
    np.testing.assert_array_equal(found, expected)
    assert {0, 1, 2} == set(np.unique(expected))


def test_an_example_runs_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "knn.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("knn: ")
    assert all(float(line.split()[3]) < 0.002 for line in lines[:-1])
    assert {"workloads"} <= sys.modules.keys()
