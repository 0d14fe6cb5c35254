"""Ranges of inputs: declared and measured ones, bad ones, and runs that leave them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import davinci
from davinci.errors import InputError
from davinci.input_ranges import DECLARED, MEASURED, parsed, ranges_of
from davinci.report.value_range import range_summary
from davinci.tools import npu_run
from support import compile_text

SQUARE = """
func.func @main(%x: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %0 = stablehlo.multiply %x, %x : tensor<5x7xf32>
  return %0 : tensor<5x7xf32>
}"""


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"arg0": (5, 3)}, "ends before it begins; found 5:3"),
        ({"arg0": (0, math.nan)}, "not finite"),
        ({"arg0": (0, math.inf)}, "not finite"),
        ({"arg0": (1, 2, 3, 4)}, "not a range"),
        ({"arg0": "wide"}, "not a range"),
        ({"arg1": (0, 1)}, "did you mean 'arg0'"),
        ([], "not ranges"),
        ([{"arg0": np.array([np.nan])}], "not finite"),
        ([{"arg0": np.array([])}], "no elements"),
    ],
)
def test_bad_ranges(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        compile_text(SQUARE, precision="scaled-fp16", ranges=given)


def test_other_policies_read_no_ranges() -> None:
    with pytest.raises(InputError, match="not read with this precision; found mixed"):
        compile_text(SQUARE, ranges={"arg0": (0, 1)})


@pytest.mark.parametrize("text", ["x", "x=1", "x=1:2:3", "=0:1", "x=a:b"])
def test_bad_options(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["zoo:mlp", "--precision", "scaled-fp16", "--range", text]
    assert npu_run.main(arguments) == 2
    assert "NAME=LOW:HIGH" in capsys.readouterr().err


def test_ranges_are_declared_or_measured(tmp_path: Path) -> None:
    path = tmp_path / "samples.npz"
    np.savez(path, x=np.array([[1.0, -2.0], [3.0, 0.5]]))
    assert ranges_of({"x": (0, 255)})["x"] == (0, 255, DECLARED)
    assert ranges_of(str(path))["x"] == (-2, 3, MEASURED)
    assert ranges_of([{"x": np.ones(2)}, {"x": -np.ones(2)}])["x"] == (-1, 1, MEASURED)
    assert parsed([str(path), "y=-1:1e3"]) == {"x": (-2, 3, MEASURED), "y": (-1, 1000, DECLARED)}


def test_a_run_that_leaves_a_range_says_so() -> None:
    executable = compile_text(SQUARE, precision="scaled-fp16", ranges={"arg0": (0, 255)})
    x = np.full((5, 7), 255, np.float32)
    found = executable.run(x)["out0"]
    assert np.isfinite(found).all()
    assert executable.profile["range"]["inputs"] == []
    x[0, :2] = 300, -1
    executable.run(x)
    (row,) = executable.profile["range"]["inputs"]
    assert (row["outside"], row["found_low"], row["found_high"]) == (2, -1, 300)
    expected = "input 'arg0': 2 values are outside of 0:255 (-1 to 300), so f16 may overflow"
    assert expected in range_summary(executable.profile)


def test_ranges_are_saved_with_what_was_compiled(tmp_path: Path) -> None:
    executable = compile_text(SQUARE, precision="scaled-fp16", ranges={"arg0": (0, 255)})
    executable.save(tmp_path / "square.davinci")
    loaded = davinci.load(tmp_path / "square.davinci")
    loaded.run(np.full((5, 7), 256, np.float32))
    assert loaded.profile["range"]["inputs"][0]["outside"] == 35
    assert loaded.profile["scaling"]["outputs"] == executable.details["scaling"]["outputs"]


def test_ranges_are_part_of_what_the_cache_knows(tmp_path: Path) -> None:
    path = tmp_path / "square.mlir"
    path.write_text(SQUARE)
    for ranges, state in (((0, 1), "miss"), ((0, 2), "miss"), ((0, 1), "hit")):
        given = {"arg0": ranges}
        executable = davinci.compile(
            str(path), precision="scaled-fp16", ranges=given, cache=tmp_path / "kept"
        )
        assert executable.details["cache"] == state
