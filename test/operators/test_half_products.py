"""A product of two values of f16 that is rounded to f16 is computed in f16: f32 holds it to all its
digits, so both round once."""

from __future__ import annotations

import numpy as np
import pytest

import davinci

TEXT = """func.func @main(%x: tensor<64x128xf16>, %y: tensor<64x128xf16>) -> tensor<64x128xf16> {
  %0 = stablehlo.multiply %x, %y : tensor<64x128xf16>
  return %0 : tensor<64x128xf16> }"""


@pytest.mark.parametrize("machine", ["ascend910", "ascend910b"])
def test_all_bits_are_those_of_a_product_in_f32(machine: str) -> None:
    random = np.random.default_rng(0)
    x, y = (random.integers(0, 1 << 16, (64, 128), np.uint16).view(np.float16) for _ in range(2))
    x[0, :4], y[0, :4] = [65504.0, 2.0**-24, -0.0, np.inf], [2.0, 0.5, 3.0, 0.0]
    executable = davinci.compile(TEXT, machine=machine)
    (found,) = executable.run(x, y).values()
    with np.errstate(all="ignore"):
        wanted = (x.astype(np.float32) * y.astype(np.float32)).astype(np.float16)
    np.testing.assert_array_equal(found, wanted)
    (launch,) = executable.launches
    assert "vmul.f16" in launch.instructions
    assert not any("vconv" in name for name in launch.instructions)
    assert executable.profile["range"]["overflows"] > 0
