"""Data movement."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from davinci.isa import DTYPES, INSTRUCTIONS, Space

UNITS = {"copy_cbuf_to_bt": 64, "copy_cbuf_to_fbuf": 128}
"""Bytes that lengths and gaps count, where they are no blocks of 32."""

COPIES = [r for r in INSTRUCTIONS.values() if r.name.startswith("copy_") and not r.type]


@pytest.mark.parametrize("record", COPIES, ids=lambda r: r.mnemonic)
@given(
    n_burst=st.integers(0, 5),
    len_burst=st.integers(0, 5),
    src_gap=st.integers(0, 4),
    dst_gap=st.integers(0, 4),
    offset=st.integers(0, 63),
)
def test_bursts(make_bench, record, n_burst, len_burst, src_gap, dst_gap, offset):
    bench = make_bench()
    dst_space, src_space = (operand.space for operand in record.operands)
    # Addresses in GM need no alignment.
    src = 0x4000 + (offset if src_space is Space.GM else 0)
    dst = 0x100 + (offset if dst_space is Space.GM else 0)
    expected = bench.memory[dst_space].copy()
    unit = UNITS.get(record.name, 32)
    for i in range(n_burst):
        read, write = (
            start + i * unit * (len_burst + gap) for start, gap in ((src, src_gap), (dst, dst_gap))
        )
        run = unit * len_burst
        expected[write : write + run] = bench.memory[src_space][read : read + run]
    bench.run(
        record.mnemonic,
        dst=dst,
        src=src,
        n_burst=n_burst,
        len_burst=len_burst,
        src_gap=src_gap,
        dst_gap=dst_gap,
    )
    assert np.array_equal(bench.memory[dst_space], expected)


LOADS = [r for r in INSTRUCTIONS.values() if r.name.startswith(("load_cbuf", "load_gm")) and r.type]


@pytest.mark.parametrize("record", LOADS, ids=lambda r: r.mnemonic)
@given(
    repeat=st.integers(0, 5),
    src_stride=st.integers(0, 3),
    start_index=st.integers(0, 3),
    transpose=st.booleans(),
)
def test_load2d(make_bench, record, repeat, src_stride, start_index, transpose):
    bench, dtype = make_bench(), record.type
    space, source = (operand.space for operand in record.operands)
    transpose = int(transpose and dtype == "f16" and "transpose" in record.field_names)
    columns = 32 // DTYPES[dtype].itemsize
    # Bit patterns: NaNs among the random bytes would not compare equal.
    bits = f"u{DTYPES[dtype].itemsize}"
    fractals = bench.get(source, 1024, (16, 16, columns), bits)
    expected = bench.memory[space].copy()
    moved = np.ndarray((repeat, 16, columns), np.dtype(bits), expected.data, 512)
    for i in range(repeat):
        fractal = fractals[start_index + i * src_stride]
        moved[i] = fractal.T if transpose else fractal
    fields = {"repeat": repeat, "src_stride": src_stride, "start_index": start_index}
    if "transpose" in record.field_names:
        fields["transpose"] = transpose
    bench.run(record.mnemonic, dst=512, src=1024, **fields)
    assert np.array_equal(bench.memory[space], expected)


@pytest.mark.parametrize(
    ("types", "src", "dst"),
    [
        ("f32", "f32", "f32"),
        ("f16", "f16", "f16"),
        ("s32", "s32", "s32"),
        ("f322f16", "f32", "f16"),
    ],
)
@given(
    n_burst=st.integers(0, 3),
    len_burst=st.integers(0, 3),
    src_gap=st.integers(0, 2),
    dst_gap=st.integers(0, 2),
)
def test_results_of_the_cube(make_bench, types, src, dst, n_burst, len_burst, src_gap, dst_gap):
    bench = make_bench()
    data = np.random.default_rng(1).normal(size=4096) * 1000
    bench.put(Space.L0C, 0, data.astype(DTYPES[src]))
    source = data.astype(DTYPES[src]).astype(DTYPES[dst]).reshape(16, 256)
    expected = bench.memory[Space.UB].copy()
    moved = np.ndarray((16, 256), DTYPES[dst], expected.data, 0x200)
    for i in range(n_burst):
        read, write = i * (len_burst + src_gap), i * (len_burst + dst_gap)
        moved[write : write + len_burst] = source[read : read + len_burst]
    bench.run(
        f"copy_matrix_cc_to_ubuf.{types}",
        dst=0x200,
        src=0,
        n_burst=n_burst,
        len_burst=len_burst,
        src_gap=src_gap,
        dst_gap=dst_gap,
    )
    assert np.array_equal(bench.memory[Space.UB], expected)


def test_pipes_of_the_copies():
    found = {record.name: record.pipe.name for record in COPIES}
    assert found == {
        "copy_gm_to_ubuf": "MTE2",
        "copy_gm_to_cbuf": "MTE2",
        "copy_ubuf_to_gm": "MTE3",
        "copy_ubuf_to_cbuf": "MTE3",
        "copy_cbuf_to_ubuf": "MTE1",
        "copy_ubuf_to_ubuf": "V",
        "copy_cbuf_to_bt": "MTE1",
        "copy_cbuf_to_fbuf": "FIX",
    }
