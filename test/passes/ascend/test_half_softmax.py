"""A softmax between values of f16, computed in f16 but for its sums, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from support import run_text

TEXT = """
func.func @main(%x: tensor<{rows}x{lanes}xf16>) -> tensor<{rows}x{lanes}xf16> {{
  %low = stablehlo.constant dense<0xFC00> : tensor<f16>
  %zero = stablehlo.constant dense<0.0> : tensor<f16>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1]
    : (tensor<{rows}x{lanes}xf16>, tensor<f16>) -> tensor<{rows}xf16>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0]
    : (tensor<{rows}xf16>) -> tensor<{rows}x{lanes}xf16>
  %2 = stablehlo.subtract %x, %1 : tensor<{rows}x{lanes}xf16>
  %3 = stablehlo.exponential %2 : tensor<{rows}x{lanes}xf16>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<{rows}x{lanes}xf16>, tensor<f16>) -> tensor<{rows}xf16>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0]
    : (tensor<{rows}xf16>) -> tensor<{rows}x{lanes}xf16>
  %6 = stablehlo.divide %3, %5 : tensor<{rows}x{lanes}xf16>
  return %6 : tensor<{rows}x{lanes}xf16>
}}
"""


@pytest.mark.parametrize(
    ("machine", "rows", "lanes", "spread"),
    [("ascend910b", 37, 512, 4.0), ("ascend910", 5, 1000, 6.0), ("ascend910b", 3, 17, 1.0)],
)
def test_weights_are_within_the_stated_bound(
    machine: str, rows: int, lanes: int, spread: float
) -> None:
    x = np.random.default_rng(0).normal(0, spread, (rows, lanes)).astype(np.float16)
    x[-1, : lanes // 2] = -np.inf
    (found,) = run_text(TEXT.format(rows=rows, lanes=lanes), x, machine=machine)
    below = x.astype(np.float64).max(1, keepdims=True) - x
    powers = np.exp(-below)
    exact = powers / powers.sum(1, keepdims=True)
    with np.errstate(invalid="ignore"):
        weighted = np.where(np.isinf(below), 0, exact * below)
        off = np.where(np.isinf(below), 0, below) + 3 + weighted.sum(1, keepdims=True) + 1
    bound = exact * off * 2.0**-11 + 2.0**-23
    assert (np.abs(found.astype(np.float64) - exact) <= bound).all()
