"""Images of one row of pixels, as rows or as columns."""

from __future__ import annotations

import numpy as np
import pytest

import davinci
from davinci import machine as machines
from davinci.operators.conv import Geometry
from davinci.schedule.products.image import Image
from davinci.schedule.products.one_row import faster_way_round, upright
from davinci.schedule.products.product import Product, ProductOperand, ProductResult

MACHINES = ("ascend310", "ascend910", "ascend910b")


def row_of(pixels: int, channels: int, kernel: int, direct: bool) -> Product:
    """A convolution of one row of pixels that leaves as many, in fractals of f16.

    Args:
        direct: whether the cores have no vector unit.
    """
    half = kernel // 2
    geometry = Geometry((1, pixels), (1, kernel), (1, 1), (1, 1), (0, 0, half, half))
    a, b = (ProductOperand(True, 2, k_rows, direct) for k_rows in (False, True))
    return Product(
        1,
        pixels,
        channels * kernel,
        channels,
        a,
        b,
        ProductResult(nz=True, itemsize=2),
        image=Image(geometry, channels // 16),
        matrices=1,
    )


@pytest.mark.parametrize("machine", ("ascend910", "ascend910b"))
def test_long_rows_are_columns_and_short_ones_rows(machine: str) -> None:
    chip = machines.load(machine)
    for pixels, turned in ((48, False), (4000, True)):
        product = row_of(pixels, 256, 5, chip.split)
        found = faster_way_round(product, chip)
        assert found.image is not None and product.image is not None
        assert found.image == (upright(product.image) if turned else product.image)
        assert found.image.geometry.windows == ((pixels, 1) if turned else (1, pixels))


@pytest.mark.parametrize("machine", MACHINES)
def test_a_long_row_against_numpy(machine: str) -> None:
    """With a stride, a dilation and another number of zeros on either side."""
    pixels, channels, stride, dilation = 3001, 32, 2, 3
    windows = (pixels + 5 - 2 * dilation - 1) // stride + 1
    text = f"""
      func.func @main(%x: tensor<1x{pixels}x{channels}xf16>, %w: tensor<3x{channels}x16xf16>)
          -> tensor<1x{windows}x16xf32> {{
        %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
            window = {{stride = [{stride}], pad = [[1, 4]], rhs_dilate = [{dilation}]}}
            {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
            : (tensor<1x{pixels}x{channels}xf16>, tensor<3x{channels}x16xf16>)
            -> tensor<1x{windows}x16xf32>
        return %y : tensor<1x{windows}x16xf32>
      }}
    """
    executable = davinci.compile(text, machine=machine)
    random = np.random.default_rng(0)
    x = random.standard_normal((1, pixels, channels)).astype(np.float16)
    w = (random.standard_normal((3, channels, 16)) / 8).astype(np.float16)
    (found,) = executable.run(x, w).values()
    padded = np.pad(x[0].astype(np.float64), ((1, 4), (0, 0)))
    starts = np.arange(windows) * stride
    wanted = sum(padded[starts + dilation * i] @ w[i].astype(np.float64) for i in range(3))
    np.testing.assert_allclose(found[0], wanted, atol=0.01)
