"""Groups that would wait for each other are not made."""

from __future__ import annotations

import numpy as np

from support import run_text

TEXT = """
func.func @main(%x: tensor<32x32xf16>, %v: tensor<32x32xf16>, %w: tensor<32x32xf16>)
    -> (tensor<32x32xf16>, tensor<32x32xf16>) {
  %a = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0]
     : (tensor<32x32xf16>, tensor<32x32xf16>) -> tensor<32x32xf16>
  %d = stablehlo.reverse %a, dims = [1] : tensor<32x32xf16>
  %c = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
     : (tensor<32x32xf16>, tensor<32x32xf16>) -> tensor<32x32xf16>
  %f = stablehlo.add %a, %c : tensor<32x32xf16>
  %e = stablehlo.subtract %c, %d : tensor<32x32xf16>
  return %f, %e : tensor<32x32xf16>, tensor<32x32xf16>
}"""


def test_a_product_whose_follower_waits_for_another_group() -> None:
    """a with f waits for c; so c does not take e in, which waits for a by way of d."""
    x, v, w = (
        np.random.default_rng(n).integers(-2, 3, (32, 32)).astype(np.float16) for n in range(3)
    )
    a, c = x @ v, x @ w
    found = run_text(TEXT, x, v, w)
    for result, wanted in zip(found, (a + c, c - a[:, ::-1]), strict=True):
        np.testing.assert_array_equal(result, wanted)
