"""Compares to memory and selects by it, extremes without lane numbers, and filling L1."""

from __future__ import annotations

import numpy as np
import pytest

from davinci.isa import DTYPES, Space

RANDOM = np.random.default_rng(0)
WALK = {"blk": 1, "rep": 8}
COMPARES = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
            "gt": np.greater, "ge": np.greater_equal}  # fmt: skip


def strides(*names):
    return {f"{name}_{kind}_stride": n for name in names for kind, n in WALK.items()}


def few(dtype, count):
    """Numbers of which some are equal."""
    return RANDOM.integers(-3, 3, count).astype(DTYPES[dtype])


@pytest.mark.parametrize("name", COMPARES)
@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_compare_of_arrays(bench, name, dtype):
    lanes = 256 // DTYPES[dtype].itemsize
    x, y = few(dtype, 2 * lanes), few(dtype, 2 * lanes)
    bench.put(Space.UB, 0, x)
    bench.put(Space.UB, 1024, y)
    fields = strides("src0", "src1")
    bench.run(f"vcmpv_{name}.{dtype}", dst=4096, src0=0, src1=1024, repeat=2, **fields)
    found = np.unpackbits(bench.get(Space.UB, 4096, (lanes // 4,), np.uint8), bitorder="little")
    np.testing.assert_array_equal(found.astype(bool), COMPARES[name](x, y))


@pytest.mark.parametrize("name", COMPARES)
def test_compare_with_a_scalar(bench, name):
    x = few("f32", 64)
    bench.put(Space.UB, 0, x)
    value = int(np.float32(1).view(np.uint32))
    bench.run(f"vcmpvs_{name}.f32", dst=4096, src=0, repeat=1, value=value, **strides("src"))
    found = np.unpackbits(bench.get(Space.UB, 4096, (8,), np.uint8), bitorder="little")
    np.testing.assert_array_equal(found.astype(bool), COMPARES[name](x, np.float32(1)))


@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_select_takes_the_next_bits_for_each_repeat(bench, dtype):
    lanes = 256 // DTYPES[dtype].itemsize
    x, y = few(dtype, 2 * lanes), few(dtype, 2 * lanes)
    bits = RANDOM.integers(0, 2, 2 * lanes).astype(bool)
    bench.put(Space.UB, 0, x)
    bench.put(Space.UB, 1024, y)
    bench.put(Space.UB, 2048, np.packbits(bits, bitorder="little"))
    fields = strides("dst", "src0", "src1")
    operands = {"dst": 4096, "src0": 0, "src1": 1024, "bits": 2048}
    bench.run(f"vsel_bits.{dtype}", repeat=2, **operands, **fields)
    found = bench.get(Space.UB, 4096, (2 * lanes,), DTYPES[dtype])
    np.testing.assert_array_equal(found, np.where(bits, x, y))


@pytest.mark.parametrize(("name", "function"), [("vcmax", np.max), ("vcmin", np.min)])
@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_extremes_without_lane_numbers(bench, name, function, dtype):
    lanes = 256 // DTYPES[dtype].itemsize
    x = RANDOM.standard_normal(3 * lanes).astype(DTYPES[dtype])
    bench.put(Space.UB, 0, x)
    fields = {"dst_rep_stride": 1, "src_blk_stride": 1, "src_rep_stride": 8, "repeat": 3}
    bench.run(f"{name}_value.{dtype}", dst=4096, src=0, **fields)
    found = bench.get(Space.UB, 4096, (3,), DTYPES[dtype])
    np.testing.assert_array_equal(found, function(x.reshape(3, lanes), axis=1))
