"""Arrays that are the same number everywhere are numbers, whatever is done to them."""

from __future__ import annotations

import numpy as np
import pytest

from support import run_text

SIZE = 1100
"""A matrix of it is larger than constants that are computed with at once."""


def test_a_part_of_a_large_number() -> None:
    text = f"""
    func.func @main(%x: tensor<4x{SIZE - 1}xf32>) -> tensor<4x{SIZE - 1}xf32> {{
      %c = stablehlo.constant dense<1.5> : tensor<{SIZE}x{SIZE}xf32>
      %s = stablehlo.slice %c [0:{SIZE}, 1:{SIZE}] : (tensor<{SIZE}x{SIZE}xf32>) -> \
tensor<{SIZE}x{SIZE - 1}xf32>
      %t = stablehlo.slice %s [4:8, 0:{SIZE - 1}] : (tensor<{SIZE}x{SIZE - 1}xf32>) -> \
tensor<4x{SIZE - 1}xf32>
      %r = stablehlo.add %x, %t : tensor<4x{SIZE - 1}xf32>
      return %r : tensor<4x{SIZE - 1}xf32>
    }}
    """
    x = np.random.default_rng(1).standard_normal((4, SIZE - 1)).astype(np.float32)
    (found,) = run_text(text, x, cores=1)
    np.testing.assert_allclose(found, x + 1.5, rtol=1e-6)


KERNEL = """
func.func @main(%y: memref<64x48xf32> {{ascend.name = "y", ascend.output}})
    attributes {{ascend.entry}} {{
  call @k_0(%y) {{ascend.blocks = 1 : i64}} : (memref<64x48xf32>) -> ()
  return
}}
func.func private @k_0(memref<64x48xf32>) attributes {{ascend.launch = @kernels::@k_0}}
module @kernels {{
  func.func @k_0(%y: memref<64x48xf32>) attributes {{ascend.kernel}} {{
    %c = "ascend.full"() {{value = 2.5 : f32}} : () -> tensor<{shape}xf32>
    %0 = "ascend.{op}"(%c) {{{attributes}}} : (tensor<{shape}xf32>) -> tensor<64x48xf32>
    bufferization.materialize_in_destination %0 in restrict writable %y
      : (tensor<64x48xf32>, memref<64x48xf32>) -> ()
    return
  }}
}}
"""


@pytest.mark.parametrize(
    ("op", "shape", "attributes"),
    [
        ("broadcast", "48", "dims = array<i64: 1>"),
        ("reshape", "48x64", ""),
        ("transpose", "48x64", "permutation = array<i64: 1, 0>"),
        ("copy", "64x48", ""),
        ("abs", "64x48", ""),
    ],
)
def test_a_kernel_that_stores_a_number(op: str, shape: str, attributes: str) -> None:
    text = KERNEL.format(op=op, shape=shape, attributes=attributes)
    (found,) = run_text(text, cores=1)
    np.testing.assert_array_equal(found, np.full((64, 48), 2.5, np.float32))
