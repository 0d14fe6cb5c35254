"""Convolutions whose windows load3d cannot reach, and groups of the batch: cube, never scalar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import davinci
from operator_cases import Array
from support import run_text

RANDOM = np.random.default_rng(400)


@dataclass(frozen=True)
class Case:
    """Shapes of image and weights, a window, and numbers of groups."""

    x: str
    w: str
    window: dict[str, Any] = field(default_factory=dict)
    groups: int = 1
    batch_groups: int = 1


CASES = {
    "kernel of 256": Case("1x3x300", "8x3x256", {"stride": 3, "pad": [5, 7]}),
    "kernel of 300, one channel": Case("1x1x330", "5x1x300"),
    "kernel of 257 in groups": Case("1x4x300", "6x2x257", {"stride": 2, "pad": [-2, 9]}, 2),
    "kernel of 258, apart": Case("1x2x530", "3x2x258", {"dilation": 2}),
    "stride of 64": Case("1x16x300", "8x16x3", {"stride": 64}),
    "stride of 70, wide": Case("2x2x300", "4x2x99", {"stride": 70, "pad": [3, 50]}),
    "stride of 70, apart": Case("1x2x300", "4x2x3", {"stride": 70, "dilation": 2}),
    "stride of 70 in groups": Case("1x4x200", "4x2x5", {"stride": 70, "pad": [1, 1]}, 2),
    "groups of the batch": Case("8x6x20", "8x6x3", {"pad": [1, 1]}, 1, 4),
}


def numbers(shape: str) -> Array:
    """Small whole numbers, which f16 holds and whose sums are exact."""
    return RANDOM.integers(-2, 3, [int(n) for n in shape.split("x")]).astype(np.float32)


def correlated(
    x: Array, w: Array, groups: int, stride: int = 1, dilation: int = 1, pad: Sequence[int] = (0, 0)
) -> Array:
    """The convolution of [n, c, p] by [o, c, k] in groups of channels, negative padding cut off."""
    x = np.pad(x, ((0, 0), (0, 0), [max(0, p) for p in pad]))
    x = x[:, :, max(0, -pad[0]) : x.shape[2] - max(0, -pad[1])]
    reach = (w.shape[2] - 1) * dilation + 1
    windows = np.lib.stride_tricks.sliding_window_view(x, reach, 2)[:, :, ::stride, ::dilation]
    parts = zip(np.split(windows, groups, 1), np.split(w, groups, 0), strict=True)
    return np.concatenate([np.einsum("ncpk,ock->nop", *part) for part in parts], 1)


@pytest.mark.parametrize("name", CASES)
def test_against_numpy(name: str) -> None:
    given = CASES[name]
    x, w = numbers(given.x), numbers(given.w)
    if given.batch_groups > 1:
        parts = zip(np.split(x, given.batch_groups), np.split(w, given.batch_groups), strict=True)
        wanted = np.concatenate([correlated(*part, 1, **given.window) for part in parts], 1)
    else:
        wanted = correlated(x, w, given.groups, **given.window)
    names = {"stride": "stride", "dilation": "rhs_dilate", "pad": "pad"}
    window = ", ".join(f"{names[key]} = [{value}]" for key, value in given.window.items())
    result = "x".join(map(str, wanted.shape))
    operands = f"%x: tensor<{given.x}xf32>, %w: tensor<{given.w}xf32>"
    text = f"""func.func @main({operands}) -> tensor<{result}xf32> {{
      %y = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0],
        window = {{{window}}} {{feature_group_count = {given.groups} : i64,
        batch_group_count = {given.batch_groups} : i64}}
        : (tensor<{given.x}xf32>, tensor<{given.w}xf32>) -> tensor<{result}xf32>
      return %y : tensor<{result}xf32> }}"""
    executable = davinci.compile(text)
    (found,) = executable.run(x, w).values()
    np.testing.assert_array_equal(found, wanted)
    assert "scalar" not in {kernel["unit"] for kernel in executable.profile["kernels"]}


@pytest.mark.parametrize("shape", ((5, 1), (3, 17), (2, 257), (64, 3)))
def test_reverse(shape: tuple[int, int]) -> None:
    shaped = f"tensor<{shape[0]}x{shape[1]}xf32>"
    text = f"""func.func @main(%x: {shaped}) -> {shaped} {{
      %0 = stablehlo.reverse %x, dims = [0, 1] : {shaped}
      return %0 : {shaped} }}"""
    x = RANDOM.standard_normal(shape).astype(np.float32)
    (found,) = run_text(text, x)
    np.testing.assert_array_equal(found, x[::-1, ::-1])
