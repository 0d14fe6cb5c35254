"""Compare and select."""

import numpy as np
import pytest

from davinci.isa import DTYPES, Registers, Space

LANES = {"f16": 128, "f32": 64}
COMPARES = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def operands(bench, dtype, rows=1):
    """Two arrays at 0 and 0x1000 with some equal lanes and a NaN."""
    rng = np.random.default_rng(3)
    a, b = rng.integers(-2, 3, (2, rows * LANES[dtype])).astype(DTYPES[dtype])
    a[1] = np.nan
    bench.put(Space.UB, 0, a)
    bench.put(Space.UB, 0x1000, b)
    return a, b


@pytest.mark.parametrize("dtype", LANES)
@pytest.mark.parametrize("name", COMPARES)
def test_compare_sets_cmpmask(bench, name, dtype):
    a, b = operands(bench, dtype)
    bench.run(
        f"vcmp_{name}.{dtype}", src0=0, src1=0x1000, src0_blk_stride=1, src1_blk_stride=1, repeat=1
    )
    lanes = LANES[dtype]
    assert np.array_equal(bench.registers.cmpmask[:lanes], COMPARES[name](a, b))
    assert not bench.registers.cmpmask[lanes:].any()


def test_compare_with_block_strides(bench):
    a, b = operands(bench, "f32", rows=2)
    bench.run("vcmp_lt.f32", src0=0, src1=0x1000, src0_blk_stride=2, src1_blk_stride=0, repeat=1)
    expected = a.reshape(16, 8)[::2] < b[:8]
    assert np.array_equal(bench.registers.cmpmask[:64], expected.reshape(-1))


@pytest.mark.parametrize(("low", "high"), [(0b1011, 0), (2**64 - 1, 7), (0, 1 << 63)])
def test_masked_lanes_become_zero(bench, low, high):
    a, b = operands(bench, "f16")
    bench.registers = Registers(mask_low=low, mask_high=high, cmpmask=np.ones(128, dtype=bool))
    bench.run("vcmp_le.f16", src0=0, src1=0x1000, src0_blk_stride=1, src1_blk_stride=1, repeat=1)
    active = np.array([(low | high << 64) >> i & 1 for i in range(128)], dtype=bool)
    assert np.array_equal(bench.registers.cmpmask, (a <= b) & active)


def test_no_compare_leaves_cmpmask(bench):
    bench.registers.cmpmask = np.arange(128) % 3 == 0
    bench.run("vcmp_eq.f32", src0=0, src1=0, src0_blk_stride=1, src1_blk_stride=1, repeat=0)
    assert np.array_equal(bench.registers.cmpmask, np.arange(128) % 3 == 0)


@pytest.mark.parametrize("dtype", LANES)
@pytest.mark.parametrize("repeat", [1, 3])
@pytest.mark.parametrize("lanes", [1, 9, 64])
def test_select_uses_cmpmask_in_every_repeat(bench, dtype, repeat, lanes):
    a, b = operands(bench, dtype, rows=repeat)
    before = bench.get(Space.UB, 0x2000, (repeat, LANES[dtype]), DTYPES[dtype]).copy()
    cmpmask = np.random.default_rng(4).integers(0, 2, 128).astype(bool)
    bench.registers = Registers(mask_low=2**lanes - 1, mask_high=0, cmpmask=cmpmask)
    names = ("dst", "src0", "src1")
    strides = {f"{n}_{k}_stride": v for n in names for k, v in (("blk", 1), ("rep", 8))}
    bench.run(f"vsel.{dtype}", dst=0x2000, src0=0, src1=0x1000, **strides, repeat=repeat)
    chosen = np.where(cmpmask[: LANES[dtype]], *(x.reshape(repeat, -1) for x in (a, b)))
    found = bench.get(Space.UB, 0x2000, (repeat, LANES[dtype]), DTYPES[dtype])
    assert found[:, :lanes].tobytes() == chosen[:, :lanes].tobytes()
    assert found[:, lanes:].tobytes() == before[:, lanes:].tobytes()


def test_select_of_whole_repeats_and_strided_blocks(bench):
    a, b = operands(bench, "f32", rows=2)
    bench.registers.cmpmask = np.arange(128) % 2 == 0
    fields = {"dst_blk_stride": 1, "src0_blk_stride": 1, "src1_blk_stride": 0}
    fields |= {"dst_rep_stride": 8, "src0_rep_stride": 8, "src1_rep_stride": 0}
    bench.run("vsel.f32", dst=0x2000, src0=0, src1=0x1000, **fields, repeat=2)
    lanes = bench.registers.cmpmask[:64]
    expected = np.where(lanes, a.reshape(2, 64), np.tile(b[:8], 8))
    found = bench.get(Space.UB, 0x2000, (2, 64), np.float32)
    assert found.tobytes() == expected.tobytes()
