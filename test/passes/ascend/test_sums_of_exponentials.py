"""Softmax and logarithms of sums of rows that cores share in parts, with infinite numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import davinci

EQUAL, RAGGED, LONG = (2, 65536), (2, 65537), (2, 262147)
MANY = (2, 393216)
"""Rows of even, and of prime numbers of elements."""

SOFTMAX, LOG_SOFTMAX, LOG_OF_SUM = "softmax", "log softmax", "log of sum"


def text(shape: tuple[int, int], what: str) -> str:
    """A softmax of rows, its logarithm, or that of their sums of exponentials, in StableHLO."""
    rows, lanes = shape
    wide, narrow = f"tensor<{rows}x{lanes}xf32>", f"tensor<{rows}xf32>"
    spread = f"dims = [0] : ({narrow}) -> {wide}"
    end = f"""
    %l = stablehlo.log %s : {narrow}
    %c = stablehlo.broadcast_in_dim %l, {spread}
    %y = stablehlo.subtract %d, %c : {wide}"""
    if what == SOFTMAX:
        end = f"""
    %c = stablehlo.broadcast_in_dim %s, {spread}
    %y = stablehlo.divide %e, %c : {wide}"""
    if what == LOG_OF_SUM:
        end = f"""
    %l = stablehlo.log %s : {narrow}
    %y = stablehlo.add %l, %m : {narrow}"""
    result = narrow if what == LOG_OF_SUM else wide
    return f"""
    func.func @main(%x: {wide}) -> {result} {{
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1]
        : ({wide}, tensor<f32>) -> {narrow}
    %b = stablehlo.broadcast_in_dim %m, {spread}
    %d = stablehlo.subtract %x, %b : {wide}
    %e = stablehlo.exponential %d : {wide}
    %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
        : ({wide}, tensor<f32>) -> {narrow}
    {end}
    return %y : {result}
    }}"""


def expected(x: Any, what: str) -> Any:
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        less = wide - wide.max(axis=1, keepdims=True)
        total = np.exp(less).sum(axis=1, keepdims=True)
        if what == LOG_OF_SUM:
            return (np.log(total) + wide.max(axis=1, keepdims=True))[:, 0]
        return less - np.log(total) if what == LOG_SOFTMAX else np.exp(less) / total


@pytest.mark.parametrize(
    ("what", "shape", "cores", "kernels"),
    [
        (SOFTMAX, MANY, 3, 3),
        (LOG_OF_SUM, LONG, 3, 2),
        (SOFTMAX, EQUAL, 32, 1),
        (LOG_SOFTMAX, RAGGED, 32, 1),
        (SOFTMAX, LONG, 32, 1),
    ],
)
def test_rows_in_parts(what: str, shape: tuple[int, int], cores: int, kernels: int) -> None:
    """Two rows that three cores share are parted; of 32 those of a row meet in one kernel."""
    executable = davinci.compile(text(shape, what), cores=cores)
    x = np.random.default_rng(0).normal(scale=10, size=shape).astype(np.float32)
    half = shape[1] // 2
    cases = [x.copy() for _ in range(8)]
    cases[1][0] = -np.inf  # a row
    cases[2][1, :half] = -np.inf  # parts of one
    cases[3][0, 5] = np.inf
    cases[4][1, half] = np.nan
    cases[5][0, 1], cases[5][0, -1] = 1.7e38, -1.7e38
    cases[6][0, -1], cases[6][1, -1] = 60, np.inf  # in the rest of a row
    cases[7][0, -1], cases[7][1, -300:] = np.nan, 50
    for case in cases:
        (found,) = executable.run(case).values()
        np.testing.assert_allclose(found, expected(case, what), rtol=1e-5, atol=3e-6)
    assert len(executable.profile["kernels"]) == kernels
    assert executable.profile["launches"] == 1


def test_exponentials_that_are_results_are_not_parted() -> None:
    """Nothing reads them but the end of the function."""
    wide, narrow = f"tensor<{EQUAL[0]}x{EQUAL[1]}xf32>", f"tensor<{EQUAL[0]}xf32>"
    whole = text(EQUAL, SOFTMAX).replace(f"-> {wide} {{", f"-> ({wide}, {narrow}) {{")
    executable = davinci.compile(
        whole.replace(f"return %y : {wide}", f"return %e, %s : {wide}, {narrow}")
    )
    x = np.random.default_rng(0).normal(size=EQUAL).astype(np.float32)
    found, total = executable.run(x).values()
    powers = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(found, powers, rtol=1e-5)
    np.testing.assert_allclose(total, powers.sum(1), rtol=1e-5)
