"""Scalar kernels that upstream MLIR gives constant arrays, or that work on unsigned integers."""

from __future__ import annotations

import numpy as np
import pytest

import davinci
from davinci.errors import CompileError

UNSIGNED = """
func.func @main(%a: tensor<40xui8>, %b: tensor<40xui8>, %c: tensor<4x10xui16>)
    -> (tensor<40xui8>, tensor<40xf32>, tensor<10x4xui16>, tensor<40xui8>, tensor<40xi1>,
        tensor<44xui8>) {
  %k = stablehlo.constant dense<200> : tensor<40xui8>
  %p = stablehlo.constant dense<250> : tensor<ui8>
  %0 = stablehlo.maximum %a, %b : tensor<40xui8>
  %1 = stablehlo.convert %0 : (tensor<40xui8>) -> tensor<40xf32>
  %2 = stablehlo.transpose %c, dims = [1, 0] : (tensor<4x10xui16>) -> tensor<10x4xui16>
  %3 = stablehlo.divide %a, %k : tensor<40xui8>
  %4 = stablehlo.compare LT, %a, %b : (tensor<40xui8>, tensor<40xui8>) -> tensor<40xi1>
  %5 = stablehlo.pad %a, %p, low = [2], high = [2], interior = [0]
      : (tensor<40xui8>, tensor<ui8>) -> tensor<44xui8>
  return %0, %1, %2, %3, %4, %5 : tensor<40xui8>, tensor<40xf32>, tensor<10x4xui16>,
      tensor<40xui8>, tensor<40xi1>, tensor<44xui8>
}
"""

WINDOW = """
func.func @main(%x: tensor<1x6xf32>) -> tensor<1x6xf32> {
  %ones = stablehlo.constant dense<1.0> : tensor<1x6xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%ones, %zero) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {window_dimensions = array<i64: 1, 3>, padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>}
      : (tensor<1x6xf32>, tensor<f32>) -> tensor<1x6xf32>
  %1 = stablehlo.divide %x, %0 : tensor<1x6xf32>
  return %1 : tensor<1x6xf32>
}
"""


def test_unsigned_integers() -> None:
    random = np.random.default_rng(0)
    a, b = random.integers(0, 256, (2, 40)).astype(np.uint8)
    c = random.integers(0, 1 << 16, (4, 10)).astype(np.uint16)
    found = davinci.compile(UNSIGNED).run({"arg0": a, "arg1": b, "arg2": c}).values()
    largest = np.maximum(a, b)
    padded = np.pad(a, 2, constant_values=250)
    wanted = [largest, largest.astype(np.float32), c.T, a // 200, a < b, padded]
    for result, array in zip(found, wanted, strict=True):
        assert result.dtype == array.dtype
        np.testing.assert_array_equal(result, array)


def test_constant_array_inside_a_kernel() -> None:
    x = np.arange(6, dtype=np.float32)[None]
    (found,) = davinci.compile(WINDOW).run({"arg0": x}).values()
    np.testing.assert_allclose(found, x / [[2, 3, 3, 3, 3, 2]], rtol=1e-6)


UPDATE = """
func.func @main(%x: tensor<4xf32>, %y: tensor<2xf32>, %i: tensor<i32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.negate %x : tensor<4xf32>
  %1 = stablehlo.dynamic_update_slice %0, %y, %i
      : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32>
  %c = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %2 = stablehlo.dynamic_update_slice %c, %y, %i
      : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
"""


def test_operands_of_an_update_stay_as_they_are() -> None:
    x, y = np.array([5, 6, 7, 8], np.float32), np.array([10, 20], np.float32)
    executable = davinci.compile(UPDATE)
    for start in (0, 2):
        inputs = {"arg0": x, "arg1": y, "arg2": np.array(start, np.int32)}
        negated, updated, constant = executable.run(inputs).values()
        changed = np.isin(np.arange(4), (start, start + 1))
        np.testing.assert_array_equal(negated, -x)
        np.testing.assert_array_equal(updated, np.where(changed, np.resize(y, 4), -x))
        np.testing.assert_array_equal(constant, np.where(changed, np.resize(y, 4), [1, 2, 3, 4]))


DIAGONAL = """
func.func @main(%x: tensor<4x4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.unary_einsum %x, config = "ii->i" : (tensor<4x4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def test_an_operator_without_loops_is_named_with_its_form() -> None:
    with pytest.raises(CompileError) as caught:
        davinci.compile(DIAGONAL)
    text = str(caught.value)
    assert text.startswith("-:3:8: 'stablehlo.unary_einsum' op is not supported in this form: ")
    assert "found operands (tensor<4x4xf32>), " in text
    assert 'einsum_config = "ii->i"' in text
    assert text.endswith("replace it in the model")
