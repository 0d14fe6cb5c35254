"""What reads values that are stored as f16 for a product, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from support import run_text


@pytest.mark.parametrize(("kind", "place"), [("min", np.argmin), ("max", np.argmax)])
def test_a_place_is_looked_for_among_the_numbers_of_which_the_extreme_is_one(
    kind: str, place: Callable[..., Any]
) -> None:
    """The product reads f16; were the extreme of these, no number would equal it."""
    text = f"""
    func.func @main(%x: tensor<3x5xf32>, %w: tensor<5x4xf32>, %i: tensor<3x5xi32>)
        -> (tensor<5xi32>, tensor<3x4xf32>) {{
      %y = "ascend.tanh"(%x) : (tensor<3x5xf32>) -> tensor<3x5xf32>
      %p = "ascend.matmul"(%y, %w) : (tensor<3x5xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>
      %m = "ascend.reduce"(%y) {{dims = array<i64: 0>, kind = "{kind}"}} :
        (tensor<3x5xf32>) -> tensor<5xf32>
      %r = "ascend.reshape"(%m) : (tensor<5xf32>) -> tensor<1x5xf32>
      %b = "ascend.broadcast"(%r) {{dims = array<i64: 0, 1>}} :
        (tensor<1x5xf32>) -> tensor<3x5xf32>
      %e = "ascend.compare"(%y, %b) {{predicate = "EQ"}} :
        (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xi1>
      %n = "ascend.full"() {{value = 3 : i32}} : () -> tensor<3x5xi32>
      %s = "ascend.select"(%e, %i, %n) :
        (tensor<3x5xi1>, tensor<3x5xi32>, tensor<3x5xi32>) -> tensor<3x5xi32>
      %f = "ascend.reduce"(%s) {{dims = array<i64: 0>, kind = "min"}} :
        (tensor<3x5xi32>) -> tensor<5xi32>
      return %f, %p : tensor<5xi32>, tensor<3x4xf32>
    }}"""
    rng = np.random.default_rng(0)
    x, w = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((3, 5), (5, 4)))
    places = np.repeat(np.arange(3, dtype=np.int32)[:, None], 5, axis=1)
    found, product = run_text(text, x, w, places)
    np.testing.assert_array_equal(found, place(np.tanh(x), axis=0))
    np.testing.assert_allclose(product, np.tanh(x) @ w, atol=5e-3)
