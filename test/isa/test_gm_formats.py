"""Copies that change the format on the way, and the fixpipe."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from davinci.errors import InputError
from davinci.isa import DTYPES, INSTRUCTIONS, Space

CONVERSIONS = [("f32", "f32", "f32"), ("f322f16", "f32", "f16"), ("s32", "s32", "s32")]


@pytest.mark.parametrize(("types", "src", "dst"), CONVERSIONS)
@given(
    m=st.integers(1, 40),
    n=st.integers(1, 50),
    rows=st.integers(0, 5),
    gap=st.integers(0, 7),
    relu=st.booleans(),
    nz2nd=st.booleans(),
)
def test_fixpipe(make_bench, types, src, dst, m, n, rows, gap, relu, nz2nd):
    bench = make_bench()
    if not nz2nd:
        n = -(-n // 16) * 16
    n1, m1 = -(-n // 16), m + rows
    data = (np.random.default_rng(2).normal(size=(n1, m1, 16)) * 1000).astype(DTYPES[src])
    bench.put(Space.L0C, 64, data)
    expected = bench.memory[Space.GM].copy()
    result = np.maximum(data, 0) if relu else data
    result = result.astype(DTYPES[dst])
    if nz2nd:
        stride = n + gap
        target = np.ndarray((m, stride), DTYPES[dst], expected.data, 5)
        target[:, :n] = result[:, :m].transpose(1, 0, 2).reshape(m, n1 * 16)[:, :n]
    else:
        stride = (m * 16 * result.itemsize) // 32 + gap
        for j in range(n1):
            np.ndarray((m, 16), DTYPES[dst], expected.data, 5 + j * stride * 32)[:] = result[j, :m]
    bench.run(
        f"fixpipe.{types}",
        dst=5,
        src=64,
        n_size=n,
        m_size=m,
        dst_stride=stride,
        src_stride=m1,
        relu=int(relu),
        nz2nd=int(nz2nd),
    )
    assert np.array_equal(bench.memory[Space.GM], expected)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"n_size": 17, "nz2nd": 0}, "expected a multiple of 16"),
        ({"m_size": 8193, "src_stride": 8193}, "expected at most 8192"),
        ({"dst_stride": 31}, "rows in GM overlap: found dst_stride 31"),
        ({"src_stride": 15}, "columns in L0C overlap: found src_stride 15"),
    ],
)
def test_fixpipe_limits(fields, message):
    legal = {"n_size": 32, "m_size": 16, "dst_stride": 32, "src_stride": 16, "relu": 0, "nz2nd": 1}
    with pytest.raises(InputError, match=message):
        INSTRUCTIONS["fixpipe.f32"].encode({"dst": 0, "src": 0, **legal, **fields})


@pytest.mark.parametrize(("types", "dst"), [("f322f16", "f16"), ("f322bf16", "bf16")])
@given(m=st.integers(0, 40), n1=st.integers(0, 4), rows=st.integers(0, 5), gap=st.integers(0, 7))
@pytest.mark.parametrize("relu", [0, 1])
def test_results_to_l1(make_bench, types, dst, m, n1, rows, gap, relu):
    bench = make_bench()
    data = (np.random.default_rng(3).normal(size=(n1, m + rows, 16)) * 100).astype(np.float32)
    bench.put(Space.L0C, 128, data)
    expected = bench.memory[Space.L1].copy()
    result = (np.maximum(data, 0) if relu else data).astype(DTYPES[dst])
    for j in range(n1):
        place = 64 + j * (m + gap) * 32
        np.ndarray((m, 16), DTYPES[dst], expected.data, place)[:] = result[j, :m]
    sizes = {"n_size": 16 * n1, "m_size": m, "dst_stride": m + gap, "src_stride": m + rows}
    bench.run(f"fixpipe_to_l1.{types}", dst=64, src=128, relu=relu, **sizes)
    assert np.array_equal(bench.memory[Space.L1], expected)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"n_size": 24}, "on the way to L1: found 24, expected a multiple of 16"),
        ({"dst_stride": 15}, "columns in L1 overlap: found dst_stride 15"),
        ({"src_stride": 15}, "columns in L0C overlap: found src_stride 15"),
    ],
)
def test_limits_of_results_to_l1(fields, message):
    legal = {"n_size": 32, "m_size": 16, "dst_stride": 16, "src_stride": 16, "relu": 0}
    with pytest.raises(InputError, match=message):
        INSTRUCTIONS["fixpipe_to_l1.f322f16"].encode({"dst": 0, "src": 0, **legal, **fields})


@pytest.mark.parametrize("dtype", ["b8", "b16", "b32"])
@given(
    count=st.integers(0, 3),
    n=st.integers(0, 20),
    d=st.integers(0, 40),
    gap=st.integers(0, 5),
    rows=st.integers(0, 3),
)
def test_nd2nz(make_bench, dtype, count, n, d, gap, rows):
    bench = make_bench()
    kind = DTYPES[dtype]
    lanes = 32 // kind.itemsize
    blocks, height = -(-d // lanes), n + rows
    size = blocks * height * lanes
    source = bench.get(Space.GM, 3, (count, n + 2, d + gap), kind)
    expected = bench.memory[Space.L1].copy()
    if d:
        target = np.ndarray((count, blocks, height, lanes), kind, expected.data, 64)
        padded = np.zeros((count, n, blocks * lanes), kind)
        padded[..., :d] = source[:, :n, :d]
        target[:, :, :n] = padded.reshape(count, n, blocks, lanes).transpose(0, 2, 1, 3)
    bench.run(
        f"copy_gm_to_cbuf_multi_nd2nz.{dtype}",
        dst=64,
        src=3,
        nd_num=count,
        n_value=n,
        d_value=d,
        src_nd_matrix_stride=(n + 2) * (d + gap),
        src_d_value=d + gap,
        dst_nz_c0_stride=height,
        dst_nz_n_stride=1,
        dst_nz_matrix_stride=size,
    )
    assert np.array_equal(bench.memory[Space.L1], expected)


@pytest.mark.parametrize("bits", [16, 32])
@given(
    runs=st.integers(0, 4),
    length=st.integers(0, 5),
    gap=st.integers(0, 3),
    data=st.data(),
)
def test_fill(make_bench, bits, runs, length, gap, data):
    value = data.draw(st.integers(0, 2**bits - 1))
    bench = make_bench()
    expected = bench.memory[Space.L1].copy()
    for i in range(runs):
        first = 64 + i * (length + gap) * 32
        expected[first : first + length * 32].view(f"u{bits // 8}")[:] = value
    fields = {"n_burst": runs, "len_burst": length, "dst_gap": gap, "value": value}
    bench.run(f"create_cbuf_matrix.b{bits}", dst=64, **fields)
    assert np.array_equal(bench.memory[Space.L1], expected)


@pytest.mark.parametrize("dtype", ["b8", "b16", "b32"])
@pytest.mark.parametrize("into", [True, False])
@given(
    count=st.integers(0, 4),
    length=st.integers(0, 70),
    src_gap=st.integers(0, 3),
    dst_gap=st.integers(0, 3),
)
def test_copies_of_any_length(make_bench, dtype, into, count, length, src_gap, dst_gap):
    bench = make_bench()
    size = length * DTYPES[dtype].itemsize
    blocks = -(-size // 32)
    src_space, dst_space = (Space.GM, Space.UB) if into else (Space.UB, Space.GM)
    src, dst = (0x1001, 0x200) if into else (0x1000, 0x201)
    src_step = size + src_gap if into else 32 * (blocks + src_gap)
    dst_step = 32 * (blocks + dst_gap) if into else size + dst_gap
    expected = bench.memory[dst_space].copy()
    for i in range(count):
        read, write = src + i * src_step, dst + i * dst_step
        expected[write : write + size] = bench.memory[src_space][read : read + size]
    bench.run(
        f"copy_{'gm_to_ubuf' if into else 'ubuf_to_gm'}_align.{dtype}",
        dst=dst,
        src=src,
        n_burst=count,
        len_burst=size,
        src_gap=src_gap,
        dst_gap=dst_gap,
    )
    assert np.array_equal(bench.memory[dst_space], expected)


def test_length_is_whole_elements():
    fields = {"n_burst": 1, "len_burst": 3, "src_gap": 0, "dst_gap": 0}
    with pytest.raises(InputError, match="found 3 bytes, expected a multiple of 2"):
        INSTRUCTIONS["copy_gm_to_ubuf_align.b16"].encode({"dst": 0, "src": 0, **fields})
