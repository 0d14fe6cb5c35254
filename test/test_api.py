"""The package as its users see it: names at the top, ways to call, reports, repeated use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import davinci
from davinci import InputError

SUBTRACT = """
func.func @main(%x: tensor<2x3xf32> {ascend.name = "x"}, %y: tensor<2x3xf32> {ascend.name = "y"},
                %n: tensor<4xi32> {ascend.name = "n"}) -> (tensor<2x3xf32>, tensor<4xi32>) {
  %0 = stablehlo.subtract %x, %y : tensor<2x3xf32>
  %1 = stablehlo.add %n, %n : tensor<4xi32>
  return %0, %1 : tensor<2x3xf32>, tensor<4xi32>
}"""

X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = np.ones((2, 3), np.float32)
N = np.arange(4, dtype=np.int32)
INPUTS = "x: float32[2, 3], y: float32[2, 3], n: int32[4]"


@pytest.fixture(scope="module")
def exe() -> davinci.Executable:
    return davinci.compile(SUBTRACT)


class Tensor:
    """What other libraries' arrays have in common."""

    def __init__(self, values: np.ndarray, error: Exception | None = None) -> None:
        self.values, self.error = values, error
        self.dtype, self.shape = values.dtype, values.shape

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        if self.error is not None:
            raise self.error
        return self.values


@pytest.mark.parametrize(
    ("arrays", "named"),
    [
        ([X, Y, N], {}),
        ([X, Y], {"n": N}),
        ([], {"n": N, "y": Y, "x": X}),
        ([{"n": N, "y": Y, "x": X}], {}),
        ([{"x": X}], {"y": Y, "n": N}),
        ([Tensor(X), Y.tolist(), [0, 1, 2, 3]], {}),
        ([X, [[True] * 3] * 2, N[::-1][::-1]], {}),
    ],
)
def test_ways_to_call(exe: davinci.Executable, arrays: list[Any], named: dict[str, Any]) -> None:
    found = exe.run(*arrays, **named)
    assert list(found) == exe.output_names == ["out0", "out1"]
    np.testing.assert_array_equal(found["out0"], X - Y)
    np.testing.assert_array_equal(found["out1"], 2 * N)


@pytest.mark.parametrize(
    ("arrays", "named", "message"),
    [
        ([X], {}, f"wrong input names; found x; expected {INPUTS}"),
        ([X, Y, N, N], {}, "too many inputs; found float32[2, 3], float32[2, 3], int32[4], int32"),
        ([X, Y, None, 3], {}, f"float32[2, 3], NoneType, int; expected {INPUTS}"),
        ([X, Y], {"x": X}, f"input 'x': given twice; expected once: {INPUTS}"),
        ([X, Y], {"nn": N}, f"found x, y, nn; expected {INPUTS}; did you mean 'n'?"),
        ([X, Y[0], N], {}, "'y': wrong shape or element type; found float32[3]; expected float32"),
        ([X, Y, [0.5] * 4], {}, f"found float64[4]; expected int32[4]; all inputs are {INPUTS}"),
        ([X, Y, [1 << 40] * 4], {}, "found int64[4]; expected int32[4]"),
        ([X, Y, [[1], [2, 3]]], {}, "input 'n': not an array: "),
        ([X, Y, Tensor(N, TypeError("on another device\nsorry"))], {}, "array: on another device;"),
        (
            [X, Y, N],
            {"timeline": "some"},
            "timeline: bad value; found 'some'; expected none, first",
        ),
    ],
)
def test_wrong_calls(
    exe: davinci.Executable, arrays: list[Any], named: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as error:
        exe.run(*arrays, **named)
    assert message in str(error.value)


def test_report_trace_and_csv_follow_any_run(tmp_path: Path) -> None:
    exe = davinci.compile(SUBTRACT)
    for write in (exe.report, exe.trace, exe.csv):
        with pytest.raises(InputError, match="nothing has run yet; call run first"):
            write(tmp_path / "early")
    x = X.copy()
    first = exe.run(x, Y, N)
    cycles = exe.profile["total_cycles"]
    x[:] = np.nan  # a caller's array is the caller's
    exe.report(tmp_path / "r.html")
    exe.trace(tmp_path / "t.json")
    exe.csv(tmp_path / "tables")
    assert "<html" in (tmp_path / "r.html").read_text()
    assert "vsub" in (tmp_path / "t.json").read_text()
    assert list((tmp_path / "tables").glob("op_summary*.csv"))
    assert exe.profile["total_cycles"] == cycles
    assert any(launch.rows for launch in exe.launches)
    np.testing.assert_array_equal(first["out0"], X - Y)


def test_report_to_a_place_that_is_none(exe: davinci.Executable, tmp_path: Path) -> None:
    exe.run(X, Y, N)
    with pytest.raises(InputError, match="cannot write"):
        exe.report(tmp_path / "no" / "r.html")


def test_names_at_the_top() -> None:
    assert set(davinci.__all__) <= set(dir(davinci))
    for name in davinci.__all__:
        assert getattr(davinci, name).__module__.startswith("davinci.")
    assert issubclass(davinci.DeviceFault, davinci.DavinciError)
    with pytest.raises(AttributeError, match="has no attribute 'compil'"):
        davinci.compil  # noqa: B018


def test_import_is_light() -> None:
    program = "import davinci, sys; print([m for m in sys.modules if m in ('numpy', 'torch_mlir')])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_what_is_shown_of_it() -> None:
    exe = davinci.compile(SUBTRACT, machine="ascend310")
    assert repr(exe).splitlines() == [
        "<davinci.Executable MLIR text",
        "  machine   ascend310, 2 cores, mixed",
        f"  inputs    {INPUTS}",
        "  outputs   out0: float32[2, 3], out1: int32[4]",
        "  last run  none yet>",
    ]
    assert "none yet" in exe._repr_html_()
    exe.run(X, Y, N)
    cycles = f"{exe.profile['total_cycles']:,} cycles"
    assert cycles in repr(exe) and "operators" in repr(exe)
    page = exe._repr_html_()
    ElementTree.fromstring(page)  # well formed
    assert cycles in page and exe.profile["kernels"][0]["name"] in page


def test_many_inputs_and_odd_names_are_shown() -> None:
    names = ["<b>", "&", *"cdefgh"]
    arguments = ", ".join(
        f'%a{i}: tensor<2xf32> {{ascend.name = "{n}"}}' for i, n in enumerate(names)
    )
    exe = davinci.compile(
        f"func.func @main({arguments}) -> tensor<2xf32> {{ return %a0 : tensor<2xf32> }}"
    )
    assert "f: float32[2] and 2 more" in repr(exe)
    assert "&lt;b&gt;: float32[2], &amp;: float32[2]" in exe._repr_html_()
