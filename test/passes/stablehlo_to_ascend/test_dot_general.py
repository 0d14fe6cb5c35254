"""Products of integers, which must be exact in every precision."""

from __future__ import annotations

import numpy as np
import pytest

import davinci
from pairs import all_pairs

TEXT = """
func.func @main(%a: tensor<{batch}33x{k}xi8>, %b: tensor<{batch}{k}x18xi8>)
    -> tensor<{batch}33x18xi32> {{
  %0 = stablehlo.dot_general %a, %b, {dims} :
      (tensor<{batch}33x{k}xi8>, tensor<{batch}{k}x18xi8>) -> tensor<{batch}33x18xi32>
  return %0 : tensor<{batch}33x18xi32>
}}
"""


@pytest.mark.parametrize(
    ("k", "batch", "precision"), all_pairs([1, 70, 2100], [0, 3], ["mixed", "fp16"])
)
def test_bytes(batch: int, k: int, precision: str) -> None:
    random = np.random.default_rng(0)
    outer = (batch,) if batch else ()
    a = random.integers(-128, 128, (*outer, 33, k)).astype(np.int8)
    b = random.integers(-128, 128, (*outer, k, 18)).astype(np.int8)
    a[..., 0, :] = -128
    b[..., :, 0] = -128
    dims = "contracting_dims = [1] x [0]"
    if batch:
        dims = "batching_dims = [0] x [0], contracting_dims = [2] x [1]"
    text = TEXT.format(batch=f"{batch}x" if batch else "", k=k, dims=dims)
    executable = davinci.compile(text, precision=precision)
    (found,) = executable.run({"arg0": a, "arg1": b}).values()
    np.testing.assert_array_equal(found, a.astype(np.int32) @ b.astype(np.int32))
    assert "cube" in {kernel["unit"] for kernel in executable.profile["kernels"]}


KINDS = {"i8": "int8", "ui8": "uint8", "i16": "int16", "ui16": "uint16", "i32": "int32"}
KINDS |= {"ui32": "uint32", "i64": "int64", "ui64": "uint64"}


@pytest.mark.parametrize(
    ("factor", "result", "m", "k", "n"),
    [
        *((kind, kind, 5, k, 7) for kind in ("i32", "i64") for k in (1, 300, 520)),
        *((kind, kind, 5, k, 16) for kind in ("i32", "i64") for k in (300, 1100)),
        *((kind, kind, 40, 24, 48) for kind in ("i32", "i64")),
        *(("ui8", "ui8", 5, 9, 7), ("ui8", "i32", 5, 530, 7), ("i8", "i8", 5, 40, 7)),
        ("i64", "i64", 2, 16500, 16),
        *(("i16", "i16", 5, 40, 16), ("i16", "i32", 5, 37, 7), ("ui16", "ui32", 5, 37, 7)),
        *(("ui32", "ui32", 5, 5, 7), ("ui64", "ui64", 5, 470, 7)),
    ],
)
def test_integers_wrap_around(factor: str, result: str, m: int, k: int, n: int) -> None:
    """Ends of the range in all places of a row, and of a column; with few products on the vector
    unit, with many as one product of all digits, or of those of each place where results are many
    or columns are no whole fractals."""
    random, kind = np.random.default_rng(k), np.dtype(KINDS[factor])
    limits = np.iinfo(kind)
    a, b = (
        random.integers(limits.min, limits.max, shape, kind, endpoint=True)
        for shape in ((2, m, k), (2, k, n))
    )
    a[0, 0], a[0, 1], b[0, :, 0], b[0, :, -1] = limits.min, limits.max, limits.min, limits.max
    text = f"""func.func @main(%a: tensor<2x{m}x{k}x{factor}>, %b: tensor<2x{k}x{n}x{factor}>)
        -> tensor<2x{m}x{n}x{result}> {{
      %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : (tensor<2x{m}x{k}x{factor}>, tensor<2x{k}x{n}x{factor}>) -> tensor<2x{m}x{n}x{result}>
      return %0 : tensor<2x{m}x{n}x{result}> }}"""
    executable = davinci.compile(text)
    (found,) = executable.run({"arg0": a, "arg1": b}).values()
    wanted = a.astype(np.int64) @ b.astype(np.int64)
    np.testing.assert_array_equal(found, wanted.astype(KINDS[result]))
    assert "scalar" not in {kernel["unit"] for kernel in executable.profile["kernels"]}


def test_turned_weights() -> None:
    """A known weight with an output channel a row is one factor of bytes, however long its rows."""
    random = np.random.default_rng(0)
    a = random.integers(-128, 128, (17, 2112)).astype(np.int8)
    weight = random.integers(-128, 128, (33, 2112)).astype(np.int8)
    text = f"""
func.func @main(%a: tensor<17x2112xi8>) -> tensor<17x33xi32> {{
  %w = stablehlo.constant dense<"0x{weight.tobytes().hex()}"> : tensor<33x2112xi8>
  %t = stablehlo.transpose %w, dims = [1, 0] : (tensor<33x2112xi8>) -> tensor<2112x33xi8>
  %0 = stablehlo.dot_general %a, %t, contracting_dims = [1] x [0] :
      (tensor<17x2112xi8>, tensor<2112x33xi8>) -> tensor<17x33xi32>
  return %0 : tensor<17x33xi32>
}}
"""
    executable = davinci.compile(text)
    (found,) = executable.run({"arg0": a}).values()
    np.testing.assert_array_equal(found, a.astype(np.int32) @ weight.astype(np.int32).T)
    products = [k["op"] for k in executable.profile["kernels"] if k["unit"] == "cube"]
    assert products == ["matmul"]
