"""Models run on the simulated NPU: queue, results, shapes, profile, and what is refused."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from davinci import gdp
from davinci.errors import InputError

STABLEHLO = """
func.func @main(%x: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %0 = stablehlo.add %x, %x : tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}
"""


def brighter(img: gdp.Array) -> gdp.Array:
    """Where a pixel is brighter than the one above."""
    i, j = gdp.indices()
    return gdp.where(img[i, j] > img[i - 1, j], 2.0, 1.0)


def expected(img: Any) -> Any:
    above = np.pad(img, ((1, 0), (0, 0)))[:-1]
    return np.where(img > above, 2, 1).astype(np.float32)


@pytest.fixture(scope="module")
def model() -> gdp.Model:
    return gdp.compile(brighter)


@pytest.mark.parametrize("shape", [(1, 1), (1, 17), (13, 31)], ids=str)
def test_a_function_is_compiled_once_for_each_shape(
    model: gdp.Model, shape: tuple[int, int]
) -> None:
    """Runs overlap with the caller, in order; inputs may change once they are queued."""
    img = np.random.default_rng(0).integers(0, 9, shape).astype(np.float32)
    wanted, out = expected(img), np.zeros(shape, np.float32)
    start = time.perf_counter()
    first = gdp.run_async(model, {"img": img}, {"out0": out})
    img[:] = 0
    second = gdp.run_async(model, {"img": img}, profile=True)
    gdp.sync()
    assert first.done and second.done
    np.testing.assert_array_equal(out, wanted)
    np.testing.assert_array_equal(second.result()["out0"], expected(img))
    assert len([key for key in model.executables if key[0][2] == shape]) == 1
    assert second.profile.record["total_cycles"] > 0
    assert 0 < second.host_seconds <= time.perf_counter() - start
    with pytest.raises(InputError, match="no profile of this run"):
        _ = first.profile


def test_symbols_and_outputs_by_name() -> None:
    """`compile([inputs], [outputs])` compiles at once, and again for other sizes."""
    x, y = gdp.input("x", (3, 4), np.float32), gdp.input("y", (4,), np.float32)
    model = gdp.compile([x, y], {"sum": x + y, "largest": gdp.max(x)}, name="sums")
    assert len(model.executables) == 1
    for rows in (3, 5):
        a = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)
        b = np.arange(4, dtype=np.float32)
        made = gdp.run_async(model, {"x": a, "y": b}).result()
        np.testing.assert_array_equal(made["sum"], a + b)
        assert made["largest"] == a.max()
    assert len(model.executables) == 2


def test_stablehlo_is_taken() -> None:
    model = gdp.compile(STABLEHLO)
    x = np.ones((4, 5), np.float32)
    (made,) = gdp.run_async(model, {"arg0": x}).result().values()
    np.testing.assert_array_equal(made, x + x)


def test_what_does_not_fit_is_refused_at_the_call(model: gdp.Model) -> None:
    x = gdp.input("x", (3,), np.float32)
    other = gdp.input("y", (3,), np.float32)
    img = np.zeros((1, 1), np.float32)
    calls: list[tuple[str, Any]] = [
        ("wrong input names", lambda: gdp.run_async(model, {"image": img})),
        ("inputs are arrays by name", lambda: gdp.run_async(model, img)),  # type: ignore[arg-type]
        ("no such output", lambda: gdp.run_async(model, {"img": img}, {"out1": img})),
        ("does not fit", lambda: gdp.run_async(model, {"img": img}, {"out0": np.zeros(2)})),
        ("more indices than dimensions", lambda: gdp.run_async(model, {"img": img[0]})),
        ("not listed", lambda: gdp.compile([x], [x + other])),
        ("two inputs of one name", lambda: gdp.compile([x, x], [x + 1])),
        ("not an input", lambda: gdp.compile([x + 1], [x + 2])),
        ("no symbolic array", lambda: gdp.compile([x], [np.zeros(3)])),
        ("no outputs", lambda: gdp.compile([x])),
        ("no outputs", lambda: gdp.compile([x], [])),
        ("precision", lambda: gdp.compile([x], [x + 1], precision="half")),
    ]
    for text, call in calls:
        with pytest.raises(InputError, match=text):
            call()
