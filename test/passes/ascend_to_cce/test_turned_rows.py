"""Groups along short rows, whose rows are lanes: results against NumPy, and what that takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import davinci

NUMPY: dict[str, Any] = {"f16": np.float16, "f32": np.float32}


def normalised(shape: tuple[int, ...], element: str, machine: str) -> Any:
    """Checks (x + bias - mean) / deviation * factor along the last dimension, bias repeated along
    the first one, factors along all others; returns the profile."""
    *outer, length = shape
    rows = "x".join(map(str, outer))
    x, bias, factor, sums = (
        f"tensor<{text}x{element}>"
        for text in (f"{rows}x{length}", f"{rows.partition('x')[2]}x{length}", length, rows)
    )
    kept, last = [*range(len(outer))], len(outer)
    text = f"""
    func.func @main(%x: {x}, %bias: {bias}, %factor: {factor}) -> {x} {{
      %zero = stablehlo.constant dense<0.0> : tensor<{element}>
      %length = stablehlo.constant dense<{length}.0> : {sums}
      %small = stablehlo.constant dense<1.0e-3> : {sums}
      %biases = stablehlo.broadcast_in_dim %bias, dims = {[*kept[1:], last]} : ({bias}) -> {x}
      %shifted = stablehlo.add %x, %biases : {x}
      %sum = stablehlo.reduce(%shifted init: %zero) applies stablehlo.add
        across dimensions = [{last}] : ({x}, tensor<{element}>) -> {sums}
      %mean = stablehlo.divide %sum, %length : {sums}
      %means = stablehlo.broadcast_in_dim %mean, dims = {kept} : ({sums}) -> {x}
      %rest = stablehlo.subtract %shifted, %means : {x}
      %square = stablehlo.multiply %rest, %rest : {x}
      %total = stablehlo.reduce(%square init: %zero) applies stablehlo.add
        across dimensions = [{last}] : ({x}, tensor<{element}>) -> {sums}
      %variance = stablehlo.divide %total, %length : {sums}
      %more = stablehlo.add %variance, %small : {sums}
      %root = stablehlo.rsqrt %more : {sums}
      %roots = stablehlo.broadcast_in_dim %root, dims = {kept} : ({sums}) -> {x}
      %scaled = stablehlo.multiply %rest, %roots : {x}
      %factors = stablehlo.broadcast_in_dim %factor, dims = [{last}] : ({factor}) -> {x}
      %y = stablehlo.multiply %scaled, %factors : {x}
      return %y : {x}
    }}"""
    precision = "fp32" if element == "f32" else "mixed"
    executable = davinci.compile(text, machine=machine, precision=precision)
    rng = np.random.default_rng(sum(shape))
    sizes = (shape, shape[1:], (length,))
    inputs = [rng.standard_normal(size).astype(NUMPY[element]) for size in sizes]
    (found,) = executable.run({f"arg{i}": value for i, value in enumerate(inputs)}).values()
    values, biases, factors = (value.astype(np.float64) for value in inputs)
    values += biases
    rest = values - values.mean(-1, keepdims=True)
    expected = rest / np.sqrt(values.var(-1, keepdims=True) + 1e-3) * factors
    error = 2e-6 if element == "f32" else 3e-3
    np.testing.assert_allclose(found, expected, atol=error * np.abs(expected).max())
    return executable.profile


@pytest.mark.parametrize(
    ("shape", "element", "machine"),
    [
        ((2, 1501, 12), "f16", "ascend910"),
        ((2, 1501, 12), "f32", "ascend310p"),
        ((3, 640, 5), "f32", "ascend910b"),
        ((4, 128, 3), "f16", "ascend310p"),
        ((5, 257, 9), "f32", "ascend910"),
        ((2, 7, 96, 6), "f16", "ascend910b"),
        ((2, 4096, 31), "f16", "ascend910"),
        ((3, 16, 4), "f32", "ascend910"),
        ((2, 37, 2), "f16", "ascend910"),
    ],
)
def test_norms_of_short_rows(shape: tuple[int, ...], element: str, machine: str) -> None:
    normalised(shape, element, machine)


@pytest.mark.parametrize(
    ("machine", "element", "most"),
    [
        ("ascend910", "f16", 6_000),
        ("ascend910", "f32", 6_000),
        ("ascend310p", "f16", 11_000),
        ("ascend910b", "f16", 5_000),
        ("ascend910b", "f32", 7_000),
    ],
)
def test_rows_are_lanes_where_that_takes_less_time(machine: str, element: str, most: int) -> None:
    """Along the rows as they lie it takes 18,403, 12,620, 67,743, 18,917 and 10,260 cycles."""
    profile = normalised((1, 12_000, 9), element, machine)
    assert profile["total_cycles"] < most


@pytest.mark.parametrize("shape", [(1, 2000, 5), (4, 512, 11), (1, 1001, 3), (30, 33, 7)])
def test_integers_less_the_largest_of_their_row(shape: tuple[int, int, int]) -> None:
    count, rows, length = shape
    x, largest = f"tensor<{count}x{rows}x{length}xi32>", f"tensor<{count}x{rows}xi32>"
    text = f"""
    func.func @main(%x: {x}) -> {x} {{
      %least = stablehlo.constant dense<-2147483648> : tensor<i32>
      %largest = stablehlo.reduce(%x init: %least) applies stablehlo.maximum
        across dimensions = [2] : ({x}, tensor<i32>) -> {largest}
      %all = stablehlo.broadcast_in_dim %largest, dims = [0, 1] : ({largest}) -> {x}
      %y = stablehlo.subtract %x, %all : {x}
      return %y : {x}
    }}"""
    value = np.random.default_rng(0).integers(-(2**30), 2**30, shape).astype(np.int32)
    (found,) = davinci.compile(text).run({"arg0": value}).values()
    np.testing.assert_array_equal(found, value - value.max(-1, keepdims=True))
