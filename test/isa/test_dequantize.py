"""Copies out of L0C that scale, and that make nothing negative."""

import numpy as np
import pytest

from davinci.isa import DTYPES, INSTRUCTIONS, Registers, Space

SUMS = np.random.default_rng(3).integers(-(2**23), 2**23, (4, 16, 16), np.int32)
BURST = {"dst": 0x200, "src": 0, "n_burst": 2, "len_burst": 1, "src_gap": 1, "dst_gap": 2}
ADDRESS = 0x1000


def made(bench, kind, dtype):
    """What a copy of every second fractal gives, and leaves two apart."""
    bench.run(f"copy_matrix_cc_to_ubuf.{kind}", **BURST)
    return bench.get(Space.UB, 0x200, (4, 16, 16), DTYPES[dtype])[[0, 3]]


def scaled(sums, scales):
    """Rounded once: sums and scales have 35 bits together, which f64 holds."""
    with np.errstate(over="ignore"):
        return (sums.astype(np.float64) * scales.astype(np.float64)).astype(np.float16)


def test_one_scale(bench):
    bench.put(Space.L0C, 0, SUMS)
    scale = np.float16(0.0037)
    bench.run("set_deqscale", bits=int(scale.view(np.uint16)))
    np.testing.assert_array_equal(made(bench, "s322f16", "f16"), scaled(SUMS[[0, 2]], scale))


@pytest.mark.parametrize("relu", [0, 1])
def test_a_scale_for_each_column(bench, relu):
    bench.put(Space.L0C, 0, SUMS)
    scales = np.float16(2.0) ** -np.arange(4, 20, dtype=np.float16)
    bench.put(Space.UB, ADDRESS, scales)
    bench.run("set_deqscale", bits=ADDRESS // 32 | relu << 15)
    found = made(bench, "s322f16v", "f16")
    want = scaled(SUMS[[0, 2]], scales)
    np.testing.assert_array_equal(found, np.where(want < 0, 0, want) if relu else want)


def test_overflow_is_infinite(bench):
    bench.put(Space.L0C, 0, SUMS)
    bench.run("set_deqscale", bits=int(np.float16(1.0).view(np.uint16)))
    assert np.isinf(made(bench, "s322f16", "f16")).any()


@pytest.mark.parametrize(
    ("kind", "src", "dst"),
    [
        ("f32relu", "f32", "f32"),
        ("f16relu", "f16", "f16"),
        ("s32relu", "s32", "s32"),
        ("f322f16relu", "f32", "f16"),
    ],
)
def test_nothing_negative(bench, kind, src, dst):
    source = (SUMS / 1000).astype(DTYPES[src])
    bench.put(Space.L0C, 0, source)
    want = np.maximum(source[[0, 2]], 0).astype(DTYPES[dst])
    np.testing.assert_array_equal(made(bench, kind, dst), want)


def test_scales_are_read():
    record, values = INSTRUCTIONS["copy_matrix_cc_to_ubuf.s322f16v"], BURST
    reads, _ = record.accesses(values, Registers(deqscale=ADDRESS // 32 | 1 << 15))
    scales = reads[-1]
    assert (scales.space, scales.address, scales.size_bytes) == (Space.UB, ADDRESS, 32)
