"""Slices read by a group: windows of arrays in GM at any offset, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support import compile_text

Cuts = tuple[slice, ...]


def text_of(shape: tuple[int, ...], first: Cuts, second: Cuts, result: tuple[int, ...]) -> str:
    def tensor(sizes: tuple[int, ...]) -> str:
        return f"tensor<{''.join(f'{n}x' for n in sizes)}f32>"

    def sliced(name: str, cuts: Cuts) -> str:
        bounds = ", ".join(f"{c.start}:{c.stop}:{c.step or 1}" for c in cuts)
        return f"{name} = stablehlo.slice %x [{bounds}] : ({tensor(shape)}) -> {tensor(result)}"

    return f"""func.func @main(%x: {tensor(shape)}) -> {tensor(result)} {{
      {sliced("%a", first)}
      {sliced("%b", second)}
      %m = stablehlo.multiply %a, %a : {tensor(result)}
      %r = stablehlo.subtract %m, %b : {tensor(result)}
      return %r : {tensor(result)} }}"""


@pytest.mark.parametrize(
    ("shape", "first", "second", "kernels"),
    [
        ((40, 100), (slice(0, 40), slice(3, 99)), (slice(0, 40), slice(4, 100)), 1),
        ((40, 100), (slice(1, 40, 3), slice(5, 22)), (slice(2, 40, 3), slice(83, 100)), 1),
        (
            (7, 9, 33),
            (slice(1, 6), slice(2, 9, 2), slice(0, 33)),
            (slice(0, 5), slice(1, 8, 2), slice(0, 33)),
            1,
        ),
        ((3, 5000), (slice(0, 3), slice(0, 4999)), (slice(0, 3), slice(1, 5000)), 1),
        ((100_000,), (slice(1, 99_985),), (slice(16, 100_000),), 1),
        ((300, 2048), (slice(0, 299), slice(0, 2048)), (slice(1, 300), slice(0, 2048)), 1),
        ((8,), (slice(0, 7),), (slice(1, 8),), 2),  # would be read with what lies behind it
        ((6, 64), (slice(0, 6), slice(0, 64, 2)), (slice(0, 6), slice(1, 64, 2)), 2),
    ],
    ids=str,
)
@pytest.mark.parametrize("machine", ["ascend910", "ascend310"])
def test_two_windows_of_one_array(
    shape: tuple[int, ...], first: Cuts, second: Cuts, kernels: int, machine: str
) -> None:
    x: Any = np.random.default_rng(5).standard_normal(shape).astype(np.float32)
    wanted = x[first] * x[first] - x[second]
    executable = compile_text(text_of(shape, first, second, wanted.shape), machine=machine)
    (found,) = executable.run({"arg0": x}).values()
    np.testing.assert_array_equal(found, wanted)
    assert len(executable.profile["launches_list"]) == kernels


def test_equal_windows_of_different_arrays() -> None:
    """A group of two windows of one array is no group of windows of two."""
    text = """func.func @main(%x: tensor<6x64xf32>, %y: tensor<6x64xf32>, %z: tensor<9x64xf32>)
        -> (tensor<4x64xf32>, tensor<4x64xf32>, tensor<4x64xf32>) {
      %a = stablehlo.slice %x [0:4, 0:64] : (tensor<6x64xf32>) -> tensor<4x64xf32>
      %b = stablehlo.slice %x [2:6, 0:64] : (tensor<6x64xf32>) -> tensor<4x64xf32>
      %c = stablehlo.slice %y [2:6, 0:64] : (tensor<6x64xf32>) -> tensor<4x64xf32>
      %d = stablehlo.slice %z [2:6, 0:64] : (tensor<9x64xf32>) -> tensor<4x64xf32>
      %0 = stablehlo.subtract %a, %b : tensor<4x64xf32>
      %1 = stablehlo.subtract %a, %c : tensor<4x64xf32>
      %2 = stablehlo.subtract %a, %d : tensor<4x64xf32>
      return %0, %1, %2 : tensor<4x64xf32>, tensor<4x64xf32>, tensor<4x64xf32> }"""
    random = np.random.default_rng(6)
    x, y, z = (random.standard_normal((n, 64)).astype(np.float32) for n in (6, 6, 9))
    found = compile_text(text).run({"arg0": x, "arg1": y, "arg2": z}).values()
    for array, other in zip(found, (x, y, z), strict=True):
        np.testing.assert_array_equal(array, x[:4] - other[2:6])
