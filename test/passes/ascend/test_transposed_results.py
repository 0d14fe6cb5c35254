"""Transposed results of products, as products of exchanged factors, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support import compile_text

ROWS = {"mlp of tokens": (49, 64, 33), "odd": (17, 15, 31), "one row": (1, 32, 20)}


def transposed(m: int, k: int, n: int, turned: bool) -> str:
    """max((x w + row) 2, 0) transposed, and its columns in front of it, split."""
    w = f"tensor<{n}x{k}xf32>" if turned else f"tensor<{k}x{n}xf32>"
    side = 1 if turned else 0
    c, t = f"tensor<1x{m}x{n}xf32>", f"tensor<1x{n}x{m}xf32>"
    return f"""
    func.func @main(%x: tensor<1x{m}x{k}xf32>, %w: {w}, %row: tensor<{n}xf32>) -> {t} {{
      %two = stablehlo.constant dense<2.0> : {c}
      %zero = stablehlo.constant dense<0.0> : {c}
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [2] x [{side}]
        : (tensor<1x{m}x{k}xf32>, {w}) -> {c}
      %1 = stablehlo.broadcast_in_dim %row, dims = [2] : (tensor<{n}xf32>) -> {c}
      %2 = stablehlo.add %0, %1 : {c}
      %3 = stablehlo.multiply %2, %two : {c}
      %4 = stablehlo.maximum %3, %zero : {c}
      %5 = stablehlo.transpose %4, dims = [0, 2, 1] : ({c}) -> {t}
      return %5 : {t}
    }}"""


@pytest.mark.parametrize("machine", ["ascend910", "ascend910b"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("name", ROWS)
def test_values(name: str, turned: bool, machine: str) -> None:
    m, k, n = ROWS[name]
    random = np.random.default_rng(m)
    x = random.integers(-3, 4, (1, m, k)).astype(np.float32)
    w = random.integers(-3, 4, (n, k) if turned else (k, n)).astype(np.float32)
    row = random.integers(-9, 10, n).astype(np.float32)
    executable = compile_text(transposed(m, k, n, turned), machine=machine)
    (found,) = executable.run({"arg0": x, "arg1": w, "arg2": row}).values()
    wanted = np.maximum((x @ (w.T if turned else w) + row) * 2, 0).swapaxes(1, 2)
    np.testing.assert_array_equal(found, wanted)
    assert not transposes(executable) or m == 1


def transposes(executable: Any) -> list[str]:
    """Kernels that transpose."""
    kernels = [one["kernel"] for one in executable.profile["launches_list"]]
    return [name for name in kernels if "transpose" in name]
