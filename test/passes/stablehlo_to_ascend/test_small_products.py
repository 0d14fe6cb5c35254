"""Products of many small matrices, which the vector unit computes."""

from __future__ import annotations

import numpy as np
import pytest

import davinci
from davinci import zoo

TEXT = """
func.func @main(%a: tensor<{b}x1x{k}x{t}>, %b: tensor<{b}x{k}x{n}x{t}>) -> tensor<{b}x1x{n}x{t}> {{
  %c = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1]
    : (tensor<{b}x1x{k}x{t}>, tensor<{b}x{k}x{n}x{t}>) -> tensor<{b}x1x{n}x{t}>
  return %c : tensor<{b}x1x{n}x{t}>
}}
"""


@pytest.mark.parametrize(
    ("batch", "k", "n", "element", "unit"),
    [
        (64, 8, 128, "f32", "vector"),
        (70, 15, 16, "f32", "vector"),
        (97, 3, 17, "f16", "vector"),
        (64, 16, 16, "f32", "cube"),  # a whole fractal of k
        (63, 8, 32, "f32", "cube"),
    ],
)
def test_one_row_of_less_than_a_fractal(
    batch: int, k: int, n: int, element: str, unit: str
) -> None:
    """Weights of a few vectors, as a mixture of experts has them."""
    rng = np.random.default_rng(batch)
    kind = {"f16": np.float16, "f32": np.float32}[element]
    a, b = (rng.standard_normal(shape).astype(kind) for shape in ((batch, 1, k), (batch, k, n)))
    executable = davinci.compile(TEXT.format(b=batch, k=k, n=n, t=element))
    (found,) = executable.run({"arg0": a, "arg1": b}).values()
    np.testing.assert_allclose(found, a.astype(np.float32) @ b, rtol=2e-2, atol=2e-2)
    assert (executable.profile["ops"]["cube"] > 0) == (unit == "cube")


def test_mixture_of_experts_is_one_launch() -> None:
    """No scalar unit loads from global memory, which would begin another launch."""
    executable = davinci.compile(
        zoo.find("mmoe,batch=64,features=64,made=32,hidden=64"), launches="joined", timing_only=True
    )
    executable.run()
    assert executable.profile["launches"] == 1
