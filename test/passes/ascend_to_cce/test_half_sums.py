"""Sums and products of f16 are accumulated in f32, by every unit and under every policy."""

from __future__ import annotations

import numpy as np
import pytest

from pairs import all_pairs
from support import run_text

SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((4096,), (0,)),
    ((3, 5), (1,)),
    ((40, 300), (1,)),
    ((300, 40), (0,)),
    ((64, 17), (1,)),
    ((7, 50, 33), (0, 2)),
    ((5, 64, 48), (0, 1)),
    ((2, 20000), (1,)),
    ((6000, 16), (0,)),
    ((1, 1), (0,)),
]
BODIES = {"add": ("0.0", np.sum), "multiply": ("1.0", np.prod)}


def tensor(shape: tuple[int, ...]) -> str:
    return f"tensor<{'x'.join(map(str, (*shape, 'f16')))}>"


def reduction(shape: tuple[int, ...], dims: tuple[int, ...], body: str) -> str:
    source = tensor(shape)
    result = tensor(tuple(n for i, n in enumerate(shape) if i not in dims))
    return f"""func.func @main(%x: {source}) -> {result} {{
      %c = stablehlo.constant dense<{BODIES[body][0]}> : tensor<f16>
      %0 = stablehlo.reduce(%x init: %c) applies stablehlo.{body}
        across dimensions = {list(dims)} : ({source}, tensor<f16>) -> {result}
      return %0 : {result}
    }}"""


@pytest.mark.parametrize(
    ("case", "body", "precision"), all_pairs(SHAPES, BODIES, ["mixed", "fp16"])
)
def test_reductions_round_once(
    case: tuple[tuple[int, ...], tuple[int, ...]], body: str, precision: str
) -> None:
    """Near 1 a product of f16 loses a digit in every step, and a sum stops growing at 2,048."""
    shape, dims = case
    x = np.random.default_rng(1).uniform(0.999, 1.001, shape).astype(np.float16)
    (found,) = run_text(reduction(shape, dims, body), x, precision=precision)
    wanted = BODIES[body][1](x.astype(np.float64), axis=dims).astype(np.float16)
    np.testing.assert_allclose(found.astype(float), wanted.astype(float), rtol=2**-10)


def window(inner: str) -> str:
    return f"""func.func @main(%x: tensor<1x64x64xf16>) -> tensor<1x1x1xf16> {{
      %c = stablehlo.constant dense<0.0> : tensor<f16>
      %0 = "stablehlo.reduce_window"(%x, %c) ({{
      ^bb0(%a: tensor<f16>, %b: tensor<f16>):
        %s = stablehlo.add %a, %b : tensor<f16>
        stablehlo.return %s : tensor<f16>
      }}) {{window_dimensions = array<i64: 1, 64, 64>}} :
        (tensor<1x64x64xf16>, tensor<f16>) -> tensor<1x1x1xf16>
      {inner}
    }}"""


CONVOLUTION = """func.func @main(%x: tensor<1x1x4096xf16>) -> tensor<1x1x1xf16> {
  %w = stablehlo.constant dense<1.0> : tensor<1x1x4096xf16>
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0],
    window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} :
    (tensor<1x1x4096xf16>, tensor<1x1x4096xf16>) -> tensor<1x1x1xf16>
  return %0 : tensor<1x1x1xf16>
}"""


@pytest.mark.parametrize("precision", ["mixed", "fp16"])
@pytest.mark.parametrize("text", [window("return %0 : tensor<1x1x1xf16>"), CONVOLUTION])
def test_sums_of_the_scalar_unit(text: str, precision: str) -> None:
    shape = (1, 64, 64) if "reduce_window" in text else (1, 1, 4096)
    (found,) = run_text(text, np.ones(shape, np.float16), precision=precision)
    assert found.ravel().tolist() == [4096]


def test_what_leaves_the_range_between_a_sum_and_a_root_comes_back() -> None:
    x = np.full(4096, 300, np.float16)
    text = """func.func @main(%x: tensor<4096xf16>) -> tensor<f16> {
      %c = stablehlo.constant dense<0.0> : tensor<f16>
      %n = stablehlo.constant dense<4096.0> : tensor<f16>
      %0 = stablehlo.multiply %x, %x : tensor<4096xf16>
      %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0]
        : (tensor<4096xf16>, tensor<f16>) -> tensor<f16>
      %2 = stablehlo.divide %1, %n : tensor<f16>
      %3 = stablehlo.sqrt %2 : tensor<f16>
      return %3 : tensor<f16>
    }"""
    (found,) = run_text(text, x)
    assert found == 300


def test_an_average_pool_of_large_halves() -> None:
    inner = """%n = stablehlo.constant dense<4096.0> : tensor<1x1x1xf16>
      %1 = stablehlo.divide %0, %n : tensor<1x1x1xf16>
      return %1 : tensor<1x1x1xf16>"""
    (found,) = run_text(window(inner), np.full((1, 64, 64), 2000, np.float16))
    assert found.ravel().tolist() == [2000]
