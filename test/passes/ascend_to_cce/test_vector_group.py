"""Kernels of groups whose tiles do not divide their arrays, or lie in fractals."""

from __future__ import annotations

import numpy as np
import pytest

from support import run_text


@pytest.mark.parametrize("cores", [2, 3, 5, 7])
@pytest.mark.parametrize("size", [77, 333, 578, 1000])
def test_a_tile_that_overlaps_is_one_block_s(size: int, cores: int) -> None:
    """Other blocks have as many tiles, but not this one."""
    kind = f"tensor<{size}xf32>"
    text = f"""func.func @main(%x: {kind}) -> {kind} {{
      %0 = "ascend.relu"(%x) : ({kind}) -> {kind}
      return %0 : {kind}
    }}"""
    x = np.arange(size, dtype=np.float32) - size // 2
    np.testing.assert_array_equal(run_text(text, x, cores=cores)[0], np.maximum(x, 0))
