"""Padded arrays whose rows are filled with a number before elements are stored over it."""

from __future__ import annotations

import random

import numpy as np
import pytest

import davinci

SIZES = (2, 3, 5, 16, 31, 64, 130)
DTYPES = {"f16": np.float16, "f32": np.float32, "i8": np.int8, "i32": np.int32, "i64": np.int64}
MACHINES = ("ascend910", "ascend910b", "ascend310p")


@pytest.mark.parametrize("seed", range(30))
def test_random_pads(seed: int) -> None:
    choice = random.Random(seed)
    element, rank = choice.choice(list(DTYPES)), choice.choice((2, 3, 4))
    shape = [choice.choice(SIZES) for _ in range(rank)]
    while np.prod(shape) > 40_000:
        shape[choice.randrange(rank)] = choice.choice(SIZES[:4])
    low, high = ([choice.choice((0, 0, 1, 2, 3, 40)) for _ in shape] for _ in range(2))
    between = [choice.choice((0, 0, 0, 1, 2)) for _ in shape]
    sizes = [n + (n - 1) * k for n, k in zip(shape, between, strict=True)]
    result = [a + n + b for a, n, b in zip(low, sizes, high, strict=True)]
    source, padded = ("x".join(map(str, [*s, element])) for s in (shape, result))
    number = "3.5" if element[0] == "f" else "7"
    text = f"""
      func.func @main(%a: tensor<{source}>) -> tensor<{padded}> {{
        %n = stablehlo.constant dense<{number}> : tensor<{element}>
        %r = stablehlo.pad %a, %n, low = {low}, high = {high}, interior = {between}
          : (tensor<{source}>, tensor<{element}>) -> tensor<{padded}>
        return %r : tensor<{padded}>
      }}"""
    x = np.random.default_rng(seed).integers(-99, 99, shape).astype(DTYPES[element])
    expected = np.full(result, float(number), x.dtype)
    every = zip(low, sizes, between, strict=True)
    expected[tuple(slice(a, a + n, k + 1) for a, n, k in every)] = x
    executable = davinci.compile(text, machine=MACHINES[seed % len(MACHINES)])
    (found,) = executable.run({"arg0": x}).values()
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("shape", "low", "high", "between", "blocks"),
    [
        ([64, 1000], [3, 1], [1, 1], [1, 0], 6),
        ([64, 1000], [0, 0], [0, 1], [1, 0], 6),
        ([2, 512, 56], [2, 3, 3], [1, 0, 1], [0, 0, 0], 6),
        ([3, 65, 48, 64], [1, 2, 0, 1], [1, 2, 1, 2], [0, 0, 0, 0], 6),
    ],
)
def test_cores_share_rows(
    shape: list[int], low: list[int], high: list[int], between: list[int], blocks: int
) -> None:
    every = zip(shape, low, high, between, strict=True)
    result = [a + n + (n - 1) * k + b for n, a, b, k in every]
    source, padded = ("x".join(map(str, [*s, "i32"])) for s in (shape, result))
    text = f"""
      func.func @main(%a: tensor<{source}>) -> tensor<{padded}> {{
        %n = stablehlo.constant dense<7> : tensor<i32>
        %r = stablehlo.pad %a, %n, low = {low}, high = {high}, interior = {between}
          : (tensor<{source}>, tensor<i32>) -> tensor<{padded}>
        return %r : tensor<{padded}>
      }}"""
    x = np.random.default_rng(0).integers(-99, 99, shape).astype(np.int32)
    expected = np.full(result, 7, x.dtype)
    steps = zip(low, shape, between, strict=True)
    expected[tuple(slice(a, a + n + (n - 1) * k, k + 1) for a, n, k in steps)] = x
    executable = davinci.compile(text, machine="ascend910b", rewrites="all,-split-moves")
    (found,) = executable.run({"arg0": x}).values()
    np.testing.assert_array_equal(found, expected)
    assert all(kernel["blocks"] >= blocks for kernel in executable.profile["kernels"])
