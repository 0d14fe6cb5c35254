"""Pads between elements: by the vector unit whatever lies behind an element, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import davinci

Numbers = tuple[int, ...]

CASES: dict[str, tuple[Numbers, str, Numbers, Numbers, Numbers]] = {
    "last": ((5, 7), "f32", (0, 0), (0, 0), (0, 1)),
    "both": ((32, 33), "f32", (0, 1), (0, 0), (1, 1)),
    "more in front than between": ((4, 9), "f32", (2, 5), (1, 0), (0, 2)),
    "cut off": ((3, 17), "f16", (-1, -4), (2, -3), (1, 3)),
    "cut off behind all": ((2, 2), "f32", (0, -3), (0, 5), (0, 1)),
    "pixels of three channels": ((2, 6, 5, 3), "f32", (0, 1, 1, 0), (0, 1, 0, 1), (0, 1, 2, 0)),
    "pixels of whole blocks": ((1, 6, 5, 16), "f32", (0, 1, 0, 0), (0, 0, 1, 0), (0, 1, 2, 0)),
    "channels too": ((3, 4, 6), "f32", (0, 1, 2), (1, 0, 0), (1, 2, 1)),
    "bytes": ((6, 19), "i8", (0, 3), (0, 1), (2, 1)),
    "long": ((3, 11), "i64", (0, 1), (0, 1), (1, 1)),
    "one element": ((1, 1), "f32", (2, 0), (0, 1), (5, 5)),
    "empty": ((0, 4), "f32", (1, 0), (1, 0), (3, 1)),
}
"""Shape and type; values before, behind and between the elements of each dimension."""


def opened(x: np.ndarray, value: float, low: Numbers, high: Numbers, between: Numbers) -> object:
    """A padded array, each element put to its place by itself."""
    sides = zip(x.shape, low, high, between, strict=True)
    shape = [n + a + b + max(0, n - 1) * i for n, a, b, i in sides]
    result = np.full(shape, value, x.dtype)
    for index, each in np.ndenumerate(x):
        at = tuple(a + i * (n + 1) for a, i, n in zip(low, index, between, strict=True))
        if all(0 <= i < n for i, n in zip(at, shape, strict=True)):
            result[at] = each
    return result


@pytest.mark.parametrize("machine", ["ascend910", "ascend910b"])
@pytest.mark.parametrize("name", CASES)
def test_against_numpy(name: str, machine: str) -> None:
    shape, element, low, high, between = CASES[name]
    dtype = {"f32": "f4", "f16": "f2", "i8": "i1", "i64": "i8"}[element]
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(dtype)
    wanted = np.asarray(opened(x, 5, low, high, between))
    given, made = (f"tensor<{'x'.join([*map(str, s), element])}>" for s in (shape, wanted.shape))
    number = "5.0" if element[0] == "f" else "5"
    places = f"low = {[*low]}, high = {[*high]}, interior = {[*between]}"
    text = f"""func.func @main(%x: {given}) -> {made} {{
      %v = stablehlo.constant dense<{number}> : tensor<{element}>
      %0 = stablehlo.pad %x, %v, {places} : ({given}, tensor<{element}>) -> {made}
      return %0 : {made}
    }}"""
    model = davinci.compile(text, machine=machine, cores=4)
    (found,) = model.run(x).values()
    np.testing.assert_array_equal(found, wanted)
    units = {kernel["unit"] for kernel in model.profile["kernels"]}
    assert "scalar" not in units or element == "i64"
