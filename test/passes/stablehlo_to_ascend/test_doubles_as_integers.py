"""f64 off the scalar unit against NumPy, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import davinci

Array = npt.NDArray[Any]

ODD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 5e-324, -5e-324, 1.0])


def doubles(shape: tuple[int, ...], seed: int = 0) -> Array:
    """Numbers of all exponents, a third of them zeros, infinities, NaN and denormals."""
    rng = np.random.default_rng(seed)
    numbers = rng.standard_normal(shape) * 10.0 ** rng.integers(-300, 300, shape)
    return np.where(rng.random(shape) < 0.3, rng.choice(ODD, shape), numbers)


def same_bits(found: Array, wanted: Array) -> bool:
    return found.dtype == np.float64 and np.array_equal(found.view("i8"), wanted.view("i8"))


MOVES = """func.func @main(%x: tensor<7x9xf64>, %i: tensor<4xi32>, %m: tensor<9x7xi1>)
    -> (tensor<9x7xf64>, tensor<4x9xf64>, tensor<9x7xf64>, tensor<7x9xf64>) {
  %big = stablehlo.constant dense<0xFFF8000000000123> : tensor<f64>
  %fill = stablehlo.broadcast_in_dim %big, dims = [] : (tensor<f64>) -> tensor<9x7xf64>
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<7x9xf64>) -> tensor<9x7xf64>
  %r = stablehlo.reverse %t, dims = [0] : tensor<9x7xf64>
  %rows = "stablehlo.gather"(%x, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 9>} : (tensor<7x9xf64>, tensor<4xi32>) -> tensor<4x9xf64>
  %chosen = stablehlo.select %m, %t, %fill : tensor<9x7xi1>, tensor<9x7xf64>
  return %r, %rows, %chosen, %x : tensor<9x7xf64>, tensor<4x9xf64>, tensor<9x7xf64>, tensor<7x9xf64>
}"""


@pytest.mark.parametrize("machine", ["ascend910", "ascend910b", "ascend310"])
def test_moves(machine: str) -> None:
    """NaN keeps its sign and what it carries; an argument that is returned is copied."""
    x, mask = doubles((7, 9)), np.random.default_rng(1).random((9, 7)) < 0.5
    indices = np.array([6, 0, 3, 3], np.int32)
    executable = davinci.compile(MOVES, machine=machine, cores=2)
    fill = np.array(0xFFF8000000000123, "u8").view("f8")
    wanted = [x.T[::-1], x[indices], np.where(mask, x.T, fill), x]
    for found, each in zip(executable.run(x, indices, mask).values(), wanted, strict=True):
        assert same_bits(found, np.ascontiguousarray(each))
    assert {kernel["unit"] for kernel in executable.profile["kernels"]} == {"vector"}
