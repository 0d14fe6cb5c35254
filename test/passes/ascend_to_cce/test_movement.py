"""Operators that move data, against NumPy: aligned, ragged and tiny runs, every element width."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import davinci
from davinci import machine as machines
from operator_support import run_operator
from support import run_text

Array = npt.NDArray[Any]

TYPES = [np.float32, np.float16, np.int8, np.int32]


def array(values: Sequence[int]) -> str:
    return f"array<i64{': ' if values else ''}{', '.join(map(str, values))}>"


def counting(shape: Sequence[int], dtype: Any) -> Array:
    """Different values, as far as the type has them."""
    numbers = np.arange(int(np.prod(shape))) % 2039
    return numbers.astype(dtype).reshape(shape)


@pytest.mark.parametrize("shape", [(1,), (15,), (16,), (17,), (2, 3, 5, 7, 3), (70_001,)])
@pytest.mark.parametrize("dtype", [*TYPES, np.int64])
def test_copy(shape: tuple[int, ...], dtype: Any) -> None:
    x = counting(shape, dtype)
    found = run_operator("copy", [x], shape, dtype).outputs[0]
    np.testing.assert_array_equal(found, x)


@pytest.mark.parametrize(
    ("shape", "permutation"),
    [
        ((1, 128, 12, 64), (0, 2, 1, 3)),
        ((3, 5, 7, 16), (0, 2, 1, 3)),
        ((3, 5, 7, 19), (2, 0, 1, 3)),
        ((17, 5, 3), (1, 0, 2)),
        ((2, 3, 4, 5, 33), (3, 1, 2, 0, 4)),
        ((40, 17), (1, 0)),
        ((64, 48), (1, 0)),
        ((128, 128), (1, 0)),
        ((3, 131, 17), (0, 2, 1)),
        ((2, 128, 3, 64), (0, 2, 3, 1)),
        ((1, 7), (1, 0)),
        ((6, 5, 4), (2, 1, 0)),
        ((33, 2, 40), (2, 1, 0)),
        ((4, 9), (0, 1)),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
def test_transpose(shape: tuple[int, ...], permutation: tuple[int, ...], dtype: Any) -> None:
    x = counting(shape, dtype)
    expected = x.transpose(permutation)
    attributes = f"permutation = {array(permutation)}"
    found = run_operator("transpose", [x], expected.shape, dtype, attributes).outputs[0]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("shape", "permutation"),
    [((40, 17), (1, 0)), ((128, 112), (1, 0)), ((3, 67, 33), (0, 2, 1)), ((33, 2, 40), (2, 1, 0))],
)
def test_transpose_of_64_bits(shape: tuple[int, ...], permutation: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(-(2**62), 2**62, shape)
    expected = x.transpose(permutation)
    attributes = f"permutation = {array(permutation)}"
    found = run_operator("transpose", [x], expected.shape, np.int64, attributes)
    np.testing.assert_array_equal(found.outputs[0], expected)


@pytest.mark.parametrize(
    ("shape", "result", "dims"),
    [
        ((), (5,), ()),
        ((), (3, 4099), ()),
        ((1,), (17, 16), (1,)),
        ((768,), (128, 768), (1,)),
        ((17,), (3, 17), (1,)),
        ((5,), (3, 5), (1,)),
        ((5,), (70_000, 5), (1,)),
        ((128,), (128, 768), (0,)),
        ((31,), (31, 17), (0,)),
        ((31,), (31, 3), (0,)),
        ((3, 1, 17), (3, 5, 17), (0, 1, 2)),
        ((3, 1, 16), (3, 5, 16), (0, 1, 2)),
        ((3, 1, 4), (3, 5, 4), (0, 1, 2)),
        ((1, 12, 1, 1), (2, 12, 3, 40), (0, 1, 2, 3)),
        ((2, 5, 1), (2, 5, 33), (0, 1, 2)),
        ((1, 1, 1, 128), (1, 12, 128, 128), (0, 1, 2, 3)),
        ((2, 1), (2, 70_001), (0, 1)),
        ((4, 7), (4, 7), (0, 1)),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
def test_broadcast(
    shape: tuple[int, ...], result: tuple[int, ...], dims: tuple[int, ...], dtype: Any
) -> None:
    x = counting(shape, dtype)
    shaped = [1] * len(result)
    for size, dim in zip(shape, dims, strict=True):
        shaped[dim] = size
    found = run_operator("broadcast", [x], result, dtype, f"dims = {array(dims)}").outputs[0]
    np.testing.assert_array_equal(found, np.broadcast_to(x.reshape(shaped), result))


@pytest.mark.parametrize(
    ("shape", "starts", "limits", "strides"),
    [
        ((100,), (3,), (97,), (1,)),
        ((100,), (3,), (7,), (1,)),
        ((100,), (0,), (100,), (3,)),
        ((64, 48), (8, 16), (40, 48), (1, 1)),
        ((64, 48), (8, 3), (40, 22), (2, 1)),
        ((7, 11, 13), (1, 2, 3), (6, 9, 12), (2, 3, 4)),
        ((1, 128, 768), (0, 0, 0), (1, 1, 768), (1, 1, 1)),
        ((2, 9, 32), (0, 8, 0), (2, 9, 32), (1, 1, 1)),
    ],
)
@pytest.mark.parametrize("dtype", TYPES)
def test_slice(
    shape: tuple[int, ...],
    starts: tuple[int, ...],
    limits: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: Any,
) -> None:
    x = counting(shape, dtype)
    expected = x[tuple(slice(*s) for s in zip(starts, limits, strides, strict=True))]
    attributes = f"starts = {array(starts)}, limits = {array(limits)}, strides = {array(strides)}"
    found = run_operator("slice", [x], expected.shape, dtype, attributes).outputs[0]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("a", "b", "dim"),
    [
        ((5,), (3,), 0),
        ((100,), (33,), 0),
        ((4, 16), (4, 32), 1),
        ((4, 17), (4, 3), 1),
        ((4, 33), (4, 35), 1),
        ((3, 5, 7), (3, 2, 7), 1),
        ((1000, 64), (24, 64), 0),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64])
def test_concat(a: tuple[int, ...], b: tuple[int, ...], dim: int, dtype: Any) -> None:
    x, y = counting(a, dtype), counting(b, dtype)[::-1].copy()
    expected = np.concatenate([x, y], axis=dim)
    found = run_operator("concat", [x, y], expected.shape, dtype, f"dim = {dim}").outputs[0]
    np.testing.assert_array_equal(found, expected)


def test_pieces_share_the_cores() -> None:
    """A core moves a large part of one of eight arrays, not a small one of each."""
    pieces = [counting((256, 1, 128), np.float32) + n for n in range(8)]
    types, names = ", ".join(["tensor<256x1x128xf32>"] * 8), [f"%x{n}" for n in range(8)]
    signature = ", ".join(f"{name}: tensor<256x1x128xf32>" for name in names)
    executable = davinci.compile(
        f"""func.func @main({signature}) -> tensor<256x8x128xf32> {{
          %r = stablehlo.concatenate {", ".join(names)}, dim = 1
            : ({types}) -> tensor<256x8x128xf32>
          return %r : tensor<256x8x128xf32> }}""",
        core_choice="all",
    )
    (found,) = executable.run(*pieces).values()
    np.testing.assert_array_equal(found, np.concatenate(pieces, axis=1))
    (kernel,) = executable.profile["kernels"]
    assert kernel["schedule"] == "runs of 128, 64 a tile; 32 cores"


@pytest.mark.parametrize(
    ("shape", "low", "high", "interior"),
    [
        ((5,), (2,), (3,), (0,)),
        ((16, 16), (1, 16), (1, 0), (0, 0)),
        ((5, 17), (1, 2), (2, 3), (0, 0)),
        ((5, 7), (0, 1), (0, 0), (1, 2)),
        ((9, 40), (-2, 3), (1, -5), (0, 0)),
        ((9, 11), (-4, -3), (-1, 2), (2, 1)),
        ((3, 3), (-5, 0), (5, 0), (0, 0)),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int8])
def test_pad(
    shape: tuple[int, ...],
    low: tuple[int, ...],
    high: tuple[int, ...],
    interior: tuple[int, ...],
    dtype: Any,
) -> None:
    x = counting(shape, dtype)
    expected = padded(x, 77, low, high, interior)
    attributes = f"low = {array(low)}, high = {array(high)}, interior = {array(interior)}"
    value = np.array(77, dtype)
    buffer = run_operator("pad", [x, value], expected.shape, dtype, attributes)
    np.testing.assert_array_equal(buffer.outputs[0], expected)
    text = {"float32": "77.0 : f32", "int32": "77 : i32", "int8": "77 : i8"}[np.dtype(dtype).name]
    constant = run_operator("pad", [x, value], expected.shape, dtype, attributes, full={1: text})
    np.testing.assert_array_equal(constant.outputs[0], expected)


def padded(
    x: Array, value: int, low: Sequence[int], high: Sequence[int], interior: Sequence[int]
) -> Array:
    """StableHLO's pad, dimension by dimension."""
    for dim, (before, after, between) in enumerate(zip(low, high, interior, strict=True)):
        x = np.moveaxis(x, dim, 0)
        spread = np.full((len(x) + between * max(len(x) - 1, 0), *x.shape[1:]), value, x.dtype)
        spread[:: between + 1] = x
        pads = [(max(before, 0), max(after, 0)), *[(0, 0)] * (x.ndim - 1)]
        grown = np.pad(spread, pads, constant_values=value)
        x = np.moveaxis(grown[max(-before, 0) : len(grown) - max(-after, 0)], 0, dim)
    return x


@pytest.mark.parametrize("row", [(64,), (17,), (3,), (4, 16), ()])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_gather(row: tuple[int, ...], dtype: Any, index: Any) -> None:
    table = counting((50, *row), dtype)
    indices = np.random.default_rng(0).integers(-3, 60, 37).astype(index)
    run = run_operator("gather", [table, indices], (37, *row), dtype)
    np.testing.assert_array_equal(run.outputs[0], table[np.clip(indices, 0, 49)])


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("kind", ["f32", "i32", "i64", "i8"])
def test_iota(dim: int, kind: str) -> None:
    """A constant along its dimension; the rest repeats."""
    shape = (3, 170, 4500)
    text = f"""func.func @main() -> tensor<3x170x4500x{kind}> {{
      %0 = stablehlo.iota dim = {dim} : tensor<3x170x4500x{kind}>
      return %0 : tensor<3x170x4500x{kind}> }}"""
    (found,) = run_text(text)
    shaped = [1, 1, 1]
    shaped[dim] = shape[dim]
    expected = np.broadcast_to(np.arange(shape[dim]).reshape(shaped), shape).astype(found.dtype)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("cores", [1, 2, 6])
def test_fills_beside_each_other_in_little_room(cores: int, tmp_path: Path) -> None:
    """Rows in front of all others and what lies beside rows are filled by buffers that stay."""
    text = (machines.DIRECTORY / "ascend910.toml").read_text()
    small = tmp_path / "small.toml"
    small.write_text(re.sub(r"(UB *= *{ *bytes *= *)\d+", r"\g<1>65536", text))
    module = """func.func @main(%x: tensor<31x257xf32>) -> tensor<34x259xf32> {
      %c = stablehlo.constant dense<0.5> : tensor<f32>
      %y = stablehlo.pad %x, %c, low = [3, 1], high = [0, 1], interior = [0, 0]
        : (tensor<31x257xf32>, tensor<f32>) -> tensor<34x259xf32>
      return %y : tensor<34x259xf32>
    }"""
    executable = davinci.compile(module, machine=str(small), cores=cores, core_choice="all")
    x = np.random.default_rng(0).standard_normal((31, 257), np.float32)
    (found,) = executable.run(x).values()
    assert np.array_equal(found, np.pad(x, ((3, 0), (1, 1)), constant_values=0.5))
