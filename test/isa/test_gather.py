"""Gathers of elements and of blocks, against indexing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from davinci.isa import DTYPES, INSTRUCTIONS, Registers, Space

DST, OFFSETS, SRC = 0x8000, 0x4000, 64
ALL = 2**64 - 1


def put_offsets(bench, count, size, most, seed):
    """Random multiples of `size`, in any order, some of them equal."""
    offsets = np.random.default_rng(seed).integers(0, most, count).astype(np.uint32) * size
    bench.put(Space.UB, OFFSETS, offsets)
    return offsets


@pytest.mark.parametrize("dtype", ["b16", "b32"])
@given(
    repeat=st.integers(0, 3),
    stride=st.integers(8, 17),
    low=st.sampled_from([ALL, 1, 0, 0b1010_0110, 2**17 - 1]),
    high=st.sampled_from([ALL, 0, 5]),
    seed=st.integers(0, 99),
)
def test_elements(make_bench, dtype, repeat, stride, low, high, seed):
    bench, size = make_bench(seed), DTYPES[dtype].itemsize
    lanes = 256 // size
    offsets = put_offsets(bench, repeat * lanes, size, 700, seed).reshape(repeat, lanes)
    before = bench.memory[Space.UB].copy()
    bench.registers = Registers(low, high)
    fields = {"dst_rep_stride": stride, "repeat": repeat}
    bench.run(f"vgather.{dtype}", dst=DST, offsets=OFFSETS, src=SRC, **fields)
    after = before.copy()
    for r in range(repeat):
        for lane in range(lanes):
            if (low | high << 64) >> lane & 1:
                to, at = DST + 32 * stride * r + size * lane, SRC + offsets[r, lane]
                after[to : to + size] = before[at : at + size]
    assert np.array_equal(bench.memory[Space.UB], after)


@pytest.mark.parametrize("dtype", ["b16", "b32"])
@given(
    repeat=st.integers(0, 3),
    blk=st.integers(1, 3),
    rep=st.integers(24, 30),
    seed=st.integers(0, 99),
)
def test_blocks(make_bench, dtype, repeat, blk, rep, seed):
    bench = make_bench(seed)
    offsets = put_offsets(bench, repeat * 8, 32, 90, seed).reshape(repeat, 8)
    after = bench.memory[Space.UB].copy()
    bench.registers = Registers(0, 0)
    fields = {"dst_blk_stride": blk, "dst_rep_stride": rep, "repeat": repeat}
    bench.run(f"vgatherb.{dtype}", dst=DST, offsets=OFFSETS, src=SRC, **fields)
    source = after.copy()
    for r in range(repeat):
        for b in range(8):
            to, at = DST + 32 * (rep * r + blk * b), SRC + offsets[r, b]
            after[to : to + 32] = source[at : at + 32]
    assert np.array_equal(bench.memory[Space.UB], after)


@pytest.mark.parametrize(
    ("mnemonic", "offset", "size"),
    [("vgather.b16", 3, 2), ("vgather.b32", 6, 4), ("vgatherb.b16", 48, 32)],
)
def test_offsets_are_aligned(bench, mnemonic, offset, size):
    bench.put(Space.UB, OFFSETS, np.full(128, offset, np.uint32))
    fields = {f.name: 8 for f in INSTRUCTIONS[mnemonic].fields} | {"repeat": 1}
    with pytest.raises(ValueError, match=f"offset {offset} is no multiple of {size}"):
        bench.run(mnemonic, dst=DST, offsets=OFFSETS, src=SRC, **fields)


def test_offsets_of_masked_lanes_do_not_matter(bench):
    bench.put(Space.UB, OFFSETS, np.array([8, *[2**31 + 1] * 63], np.uint32))
    bench.put(Space.UB, SRC, np.arange(8, dtype=np.uint32))
    bench.registers = Registers(1, 0)
    bench.run("vgather.b32", dst=DST, offsets=OFFSETS, src=SRC, dst_rep_stride=8, repeat=1)
    assert bench.get(Space.UB, DST, (1,), np.uint32)[0] == 2
