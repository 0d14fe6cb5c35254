"""Sums that leave f16 before they are divided: policy `fp16` gives what f32 does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import davinci
from pairs import all_pairs

MEAN = """
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %n = stablehlo.constant dense<{n}.0> : tensor<4xf32>
    %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<4x{n}xf32>, tensor<f32>) -> tensor<4xf32>
    %m = stablehlo.divide %s, %n : tensor<4xf32>
    %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>) -> tensor<4x{n}xf32>
    %c = stablehlo.subtract %x, %mb : tensor<4x{n}xf32>"""

SQUARES = """
    %q = stablehlo.multiply %c, %c : tensor<4x{n}xf32>
    %t = stablehlo.reduce(%q init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<4x{n}xf32>, tensor<f32>) -> tensor<4xf32>"""

LAYER_NORM = """
    %v = stablehlo.divide %t, %n : tensor<4xf32>
    %r0 = stablehlo.rsqrt %v : tensor<4xf32>
    %rb = stablehlo.broadcast_in_dim %r0, dims = [0] : (tensor<4xf32>) -> tensor<4x{n}xf32>
    %r = stablehlo.multiply %c, %rb : tensor<4x{n}xf32>"""

LENGTH_NORM = """
    %v = stablehlo.sqrt %t : tensor<4xf32>
    %rb = stablehlo.broadcast_in_dim %v, dims = [0] : (tensor<4xf32>) -> tensor<4x{n}xf32>
    %r = stablehlo.divide %c, %rb : tensor<4x{n}xf32>"""

SHARE = """
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %a = stablehlo.abs %x : tensor<4x{n}xf32>
    %s = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<4x{n}xf32>, tensor<f32>) -> tensor<4xf32>
    %b = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<4xf32>) -> tensor<4x{n}xf32>
    %r = stablehlo.divide %a, %b : tensor<4x{n}xf32>"""


def layer_norm(x: Any) -> Any:
    centred = x - x.mean(1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(1, keepdims=True))


def length_norm(x: Any) -> Any:
    centred = x - x.mean(1, keepdims=True)
    return centred / np.linalg.norm(centred, axis=1, keepdims=True)


def share(x: Any) -> Any:
    return np.abs(x) / np.abs(x).sum(1, keepdims=True)


NETWORKS = {
    layer_norm: MEAN + SQUARES + LAYER_NORM,
    length_norm: MEAN + SQUARES + LENGTH_NORM,
    share: SHARE,
}


@pytest.mark.parametrize(
    ("network", "n", "deviation", "machine", "fusion"),
    all_pairs(
        list(NETWORKS),
        [768, 4096],
        [1, 12, 100],
        ["ascend910", "ascend310", "ascend310p"],
        ["all", "none"],
    ),
)
def test_sums_that_are_divided(
    network: Any, n: int, deviation: float, machine: str, fusion: str
) -> None:
    text = (
        f"func.func @main(%x: tensor<4x{n}xf32>) -> tensor<4x{n}xf32> {{\n"
        + NETWORKS[network].format(n=n)
        + f"\n    return %r : tensor<4x{n}xf32>\n}}"
    )
    x = np.random.default_rng(0).normal(0, deviation, (4, n)).astype(np.float32)
    options = {"machine": machine, "fusion": fusion, "cores": 2}
    found = davinci.compile(text, precision="fp16", **options).run({"arg0": x})["out0"]
    wanted = network(x.astype(np.float64))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=4e-3 * np.abs(wanted).max())


ROOTS = {
    "rsqrt": """
    %r0 = stablehlo.rsqrt %e : tensor<4xf32>
    %rb = stablehlo.broadcast_in_dim %r0, dims = [0] : (tensor<4xf32>) -> tensor<4x{n}xf32>
    %r = stablehlo.multiply %c, %rb : tensor<4x{n}xf32>""",
    "sqrt": """
    %r0 = stablehlo.sqrt %e : tensor<4xf32>
    %rb = stablehlo.broadcast_in_dim %r0, dims = [0] : (tensor<4xf32>) -> tensor<4x{n}xf32>
    %r = stablehlo.divide %c, %rb : tensor<4x{n}xf32>""",
}


@pytest.mark.parametrize("fusion", ["all", "none"])
@pytest.mark.parametrize("epsilon", ["1.0e-12", "1.0e-5"])
@pytest.mark.parametrize("root", ROOTS)
def test_rows_of_equal_values(root: str, epsilon: str, fusion: str) -> None:
    """Their deviation is 0, and what is added to it may be beyond what f16 holds."""
    n = 64
    added = f"""
    %v = stablehlo.divide %t, %n : tensor<4xf32>
    %p = stablehlo.constant dense<{epsilon}> : tensor<4xf32>
    %e = stablehlo.add %v, %p : tensor<4xf32>"""
    text = (
        f"func.func @main(%x: tensor<4x{n}xf32>) -> tensor<4x{n}xf32> {{\n"
        + (MEAN + SQUARES + added + ROOTS[root]).format(n=n)
        + f"\n    return %r : tensor<4x{n}xf32>\n}}"
    )
    x = np.random.default_rng(0).normal(0, 1, (4, n)).astype(np.float32)
    x[0], x[2] = 0, 1.5
    found = davinci.compile(text, precision="fp16", fusion=fusion, cores=2).run({"arg0": x})["out0"]
    centred = x - x.mean(1, keepdims=True)
    wanted = centred / np.sqrt((centred**2).mean(1, keepdims=True) + float(epsilon))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=4e-3 * np.abs(wanted).max())
