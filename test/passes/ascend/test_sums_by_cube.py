"""Sums over the rows of matrices in fractals, as products with a row of ones."""

from __future__ import annotations

import numpy as np
import pytest

import davinci
from davinci.operators.fractals import to_nz

TEXT = """
func.func @main(%x: tensor<{shape}xf16, #ascend.layout<"nz">>) -> tensor<{left}x{kind}> {{
  %0 = "ascend.cast"(%x) : (tensor<{shape}xf16, #ascend.layout<"nz">>)
      -> tensor<{shape}xf32, #ascend.layout<"nz">>
  %1 = "ascend.reduce"(%0) {{kind = "add", dims = array<i64: {dim}>}}
      : (tensor<{shape}xf32, #ascend.layout<"nz">>) -> tensor<{left}xf32>
  %n = "ascend.full"() {{value = {rows}.0 : f32}} : () -> tensor<{left}xf32>
  %2 = "ascend.div"(%1, %n) : (tensor<{left}xf32>, tensor<{left}xf32>) -> tensor<{left}xf32>
  {end}
}}
"""

MEAN = "return %2 : tensor<{left}xf32>"
BYTES = """%3 = "ascend.quantize"(%2) {{zero = 3 : i64}} : (tensor<{left}xf32>) -> tensor<{left}xi8>
  return %3 : tensor<{left}xi8>"""


def text_of(shape: tuple[int, ...], end: str, kind: str) -> str:
    *outer, rows, columns = shape
    sizes = {"shape": "x".join(map(str, shape)), "left": "x".join(map(str, (*outer, columns)))}
    return TEXT.format(**sizes, end=end.format(**sizes), kind=kind, rows=rows, dim=len(outer))


@pytest.mark.parametrize(
    ("shape", "kernel"), [((196, 700), "matmul_div"), ((3, 200, 96), "batch_matmul_div")]
)
def test_means(shape: tuple[int, ...], kernel: str) -> None:
    """What is not finite stays in its column."""
    x = np.random.default_rng(0).integers(-2048, 2048, shape).astype(np.float16)
    x[..., 5, 7], x[..., 9, 11] = np.inf, np.nan
    text = text_of(shape, MEAN, "f32")
    executable = davinci.compile(
        text,
        machine="ascend310",
        rewrites="all,-divisions-to-products",  # those round otherwise
    )
    (found,) = executable.run({"arg0": to_nz(x, 16)}).values()
    np.testing.assert_array_equal(found, x.astype(np.float32).sum(-2) / np.float32(shape[-2]))
    assert [k["op"] for k in executable.profile["kernels"]] == [kernel]


def test_bytes_leave_at_once() -> None:
    shape = (2, 196, 96)
    x = np.random.default_rng(1).integers(-100, 100, shape).astype(np.float16)
    executable = davinci.compile(text_of(shape, BYTES, "i8"), machine="ascend310")
    (found,) = executable.run({"arg0": to_nz(x, 16)}).values()
    mean = x.astype(np.float32).sum(-2) / np.float32(196)
    np.testing.assert_array_equal(found, np.rint(mean) + 3)
    assert [k["op"] for k in executable.profile["kernels"]] == ["batch_matmul_div_quantize"]
