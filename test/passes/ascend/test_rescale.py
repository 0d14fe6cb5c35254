"""Constant matrices beyond the range of f16 are scaled where that is exact, others are reported."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from davinci.report.value_range import range_summary
from support import compile_text

RANDOM = np.random.default_rng(3)
WEIGHT = RANDOM.standard_normal((32, 8)).astype(np.float32)
X = RANDOM.standard_normal((4, 32)).astype(np.float32)


def run(weight: npt.NDArray[np.float32], precision: str, transposed: bool) -> tuple[Any, Any]:
    given = weight.T if transposed else weight
    kind = f"tensor<{given.shape[0]}x{given.shape[1]}xf32>"
    turned = "%w = stablehlo.transpose %v, dims = [1, 0] : (tensor<8x32xf32>) -> tensor<32x8xf32>"
    text = f"""func.func @main(%x: tensor<4x32xf32>) -> tensor<4x8xf32> {{
      {"%v" if transposed else "%w"} = stablehlo.constant dense<{given.tolist()}> : {kind}
      {turned if transposed else ""}
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<4x32xf32>, tensor<32x8xf32>) -> tensor<4x8xf32>
      return %0 : tensor<4x8xf32>
    }}"""
    executable = compile_text(text, precision=precision)
    (found,) = executable.run(X).values()
    return found, executable


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("factor", [2.0**20, 2.0**-20, 2.0**-120, 2.0**100, 1.0])
def test_powers_of_two_change_nothing(factor: float, transposed: bool) -> None:
    """The product with a scaled matrix has the very digits of the one with the matrix."""
    plain, _ = run(WEIGHT, "mixed", transposed)
    found, executable = run(WEIGHT * np.float32(factor), "mixed", transposed)
    np.testing.assert_array_equal(found, plain * np.float32(factor))
    assert range_summary(executable.profile) == ""


def test_columns_have_scales_of_their_own() -> None:
    """A large column does not make small ones zero."""
    factors = np.float32(2) ** np.array([0, 30, -30, 100, 0, 0, -100, 3], np.float32)
    plain, _ = run(WEIGHT, "mixed", False)
    found, executable = run(WEIGHT * factors, "mixed", False)
    np.testing.assert_array_equal(found, plain * factors)
    assert range_summary(executable.profile) == ""


def test_what_f16_holds_is_not_scaled() -> None:
    _, executable = run(WEIGHT, "mixed", False)
    assert not any(launch.name.startswith("mul") for launch in executable.launches)


def test_under_fp16_only_the_result_is_rounded() -> None:
    found, executable = run(WEIGHT * np.float32(2.0**-20), "fp16", False)
    exact = X.astype(np.float64) @ WEIGHT.astype(np.float64) * 2.0**-20
    np.testing.assert_allclose(found, exact, rtol=0.01, atol=2.0**-24)
    found, executable = run(WEIGHT * np.float32(2.0**20), "fp16", False)
    assert np.isinf(found).sum() == executable.profile["range"]["overflows"] > 0


BIAS = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %b = stablehlo.constant dense<[1.0, -1.0e9, 1.0e-9, 1.0e5]> : tensor<4xf32>
  %0 = stablehlo.add %x, %b : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""


def test_constants_that_are_lost_at_compile_time_are_reported() -> None:
    executable = compile_text(BIAS, precision="fp16")
    executable.run(np.zeros(4, np.float32))
    (row,) = executable.profile["range_of_constants"]
    assert (row["overflows"], row["underflows"]) == (2, 1)
    line = range_summary(executable.profile)
    assert "2 values became infinite in" in line
    assert row["name"] in line


def test_constants_that_stay_f32_lose_nothing() -> None:
    executable = compile_text(BIAS)
    executable.run(np.zeros(4, np.float32))
    assert executable.profile["range_of_constants"] == []


def test_a_small_value_beside_large_ones_is_lost_and_counted() -> None:
    weight = WEIGHT.copy()
    weight[0, 0] = 1e-12
    _, executable = run(weight, "mixed", False)
    (row,) = executable.profile["range_of_constants"]
    assert (row["overflows"], row["underflows"], row["converted"]) == (0, 1, weight.size)
