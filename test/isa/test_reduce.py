"""Reductions inside a repeat."""

import numpy as np
import pytest

from davinci.isa import DTYPES, Registers, Space

DST = 0x8000
MASKS = [
    (2**64 - 1, 2**64 - 1),
    (0xFF, 0),
    (2**64 - 1, 1),
    (0b1010_0110, 0),
    (2**64 - 1 << 16 & 2**64 - 1, 2**64 - 1),
]


def active(low, high, lanes):
    return np.array([(low | high << 64) >> i & 1 for i in range(lanes)], dtype=bool)


def rows_of(bench, dtype, repeat, blk, rep, seed=5):
    """Fills UB with numbers; returns the lanes of each repeat by the definition of the strides."""
    rng = np.random.default_rng(seed)
    data = rng.normal(size=4096).astype(DTYPES[dtype])
    bench.put(Space.UB, 0, data)
    width = 32 // data.itemsize
    return np.array(
        [
            np.concatenate([data[(r * rep + b * blk) * width :][:width] for b in range(8)])
            for r in range(repeat)
        ]
    )


def run(bench, mnemonic, mask, repeat, blk, rep, dst_rep=1):
    bench.registers = Registers(*mask)
    fields = {"src_blk_stride": blk, "src_rep_stride": rep, "dst_rep_stride": dst_rep}
    bench.run(mnemonic, dst=DST, src=0, **fields, repeat=repeat)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", ["f16", "f32"])
@pytest.mark.parametrize(("blk", "rep", "dst_rep"), [(1, 8, 1), (2, 16, 1), (1, 3, 5), (0, 1, 2)])
def test_vcadd(bench, dtype, mask, blk, rep, dst_rep):
    rows = rows_of(bench, dtype, 5, blk, rep)
    run(bench, f"vcadd.{dtype}", mask, 5, blk, rep, dst_rep)
    found = bench.get(Space.UB, DST, (5 * dst_rep,), DTYPES[dtype])[::dst_rep]
    lanes = active(*mask, rows.shape[1])
    expected = np.where(lanes, rows.astype(np.float64), 0).sum(axis=1)
    # Single precision inside, one rounding at the end.
    tolerance = 128 * 2.0**-24 * np.abs(rows).sum(axis=1).max() + np.finfo(DTYPES[dtype]).eps * 16
    np.testing.assert_allclose(found, expected, rtol=0, atol=float(tolerance))


def test_vcadd_accumulates_in_single_precision(bench):
    """In half precision 2048 + 1 is 2048: the ones would be lost."""
    bench.put(Space.UB, 0, np.array([2048] + [1] * 127, np.float16))
    run(bench, "vcadd.f16", MASKS[0], 1, 1, 8)
    # 2175 lies between 2174 and 2176 and is rounded to even.
    assert bench.get(Space.UB, DST, (1,), np.float16)[0] == 2176


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(("name", "pick"), [("vcmax", np.argmax), ("vcmin", np.argmin)])
@pytest.mark.parametrize(("dtype", "blk", "dst_rep"), [("f16", 1, 1), ("f16", 2, 3), ("f32", 2, 1)])
def test_extreme_and_its_lane(bench, name, pick, mask, dtype, blk, dst_rep):
    rows = rows_of(bench, dtype, 4, blk, 8)
    run(bench, f"{name}.{dtype}", mask, 4, blk, 8, dst_rep)
    worst = -np.inf if name == "vcmax" else np.inf
    index = pick(np.where(active(*mask, rows.shape[1]), rows, worst), axis=1)
    values = bench.get(Space.UB, DST, (4, dst_rep, 2), DTYPES[dtype])[:, 0, 0]
    lanes = bench.get(Space.UB, DST, (4, dst_rep, 2), f"u{values.itemsize}")[:, 0, 1]
    assert np.array_equal(values, rows[np.arange(4), index])
    assert np.array_equal(lanes, index)


def test_first_of_equal_lanes_wins(bench):
    bench.put(Space.UB, 0, np.full(128, 7, np.float16))
    run(bench, "vcmax.f16", (2**64 - 1 << 3 & 2**64 - 1, 0), 1, 1, 8)
    assert bench.get(Space.UB, DST, (2,), np.uint16)[1] == 3


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(
    ("name", "function", "neutral"),
    [("vcgadd", np.sum, 0), ("vcgmax", np.max, -np.inf), ("vcgmin", np.min, np.inf)],
)
@pytest.mark.parametrize(("dtype", "blk", "dst_rep"), [("f16", 1, 1), ("f16", 3, 2), ("f32", 3, 1)])
def test_block_reductions(bench, name, function, neutral, mask, dtype, blk, dst_rep):
    rows = rows_of(bench, dtype, 3, blk, 24)
    run(bench, f"{name}.{dtype}", mask, 3, blk, 24, dst_rep)
    lanes = np.where(active(*mask, rows.shape[1]), rows.astype(np.float32), neutral)
    expected = function(lanes.reshape(3, 8, -1), axis=2).astype(DTYPES[dtype])
    found = bench.get(Space.UB, DST, (3, dst_rep, 8), DTYPES[dtype])[:, 0]
    np.testing.assert_allclose(found, expected, rtol=2.0**-10, atol=2.0**-12)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_pair_sums(bench, mask, dtype):
    rows = rows_of(bench, dtype, 3, 1, 8)
    run(bench, f"vcpadd.{dtype}", mask, 3, 1, 8)
    lanes = np.where(active(*mask, rows.shape[1]), rows, DTYPES[dtype].type(0))
    expected = lanes.reshape(3, -1, 2).sum(axis=2, dtype=DTYPES[dtype])
    assert np.array_equal(bench.get(Space.UB, DST, expected.shape, DTYPES[dtype]), expected)
