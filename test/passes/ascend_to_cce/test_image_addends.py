"""Convolutions whose images each add a row of channels of their own."""

from __future__ import annotations

import numpy as np
import pytest

from support import run_text


@pytest.mark.parametrize("images", [1, 2, 3])
@pytest.mark.parametrize("cores", [1, 2])
def test_a_row_of_each_image(images: int, cores: int) -> None:
    """Small images, several of which a core computes; weights are the same matrix for all."""
    x_type, y_type = f"tensor<{images}x2x2x8xf32>", f"tensor<{images}x2x2x16xf32>"
    t_type, w_type = f"tensor<{images}x16xf32>", "tensor<1x1x8x16xf32>"
    text = f"""func.func @main(%x: {x_type}, %w: {w_type}, %t: {t_type}) -> {y_type} {{
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {{stride = [1, 1]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
        : ({x_type}, {w_type}) -> {y_type}
      %1 = stablehlo.broadcast_in_dim %t, dims = [0, 3] : ({t_type}) -> {y_type}
      %2 = stablehlo.add %0, %1 : {y_type}
      return %2 : {y_type}
    }}"""
    rng = np.random.default_rng(images)
    x, w, t = (
        rng.standard_normal(shape).astype(np.float32)
        for shape in ((images, 2, 2, 8), (1, 1, 8, 16), (images, 16))
    )
    (found,) = run_text(text, x, w, t, cores=cores)
    np.testing.assert_allclose(found, x @ w[0, 0] + t[:, None, None], atol=2e-2)
