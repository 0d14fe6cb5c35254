"""Fixpipe that quantises, and products that begin with a bias, against plain arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from davinci.errors import InputError
from davinci.isa import DTYPES, INSTRUCTIONS, Space
from davinci.isa.quantize import word

SUMS = {"s322f16": "s32", "f322b8": "f32", "s322b8": "s32"}


def expected(sums: Any, scale: float, offset: int, signed: bool, kind: str) -> Any:
    """One column, in f64; scales have few digits, so that products are exact in f32, too."""
    scaled = sums.astype(np.float64) * scale
    if kind == "s322f16":
        return np.clip(scaled, -65504, 65504).astype(np.float16)
    away = np.sign(scaled + offset) * np.floor(np.abs(scaled + offset) + 0.5)
    low, high = (-128, 127) if signed else (0, 255)
    return np.clip(away, low, high).astype(np.int64).astype(np.uint8)


@pytest.mark.parametrize("kind", SUMS)
@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("to_l1", [False, True])
@given(
    m=st.integers(1, 40),
    n=st.integers(1, 70),
    signed=st.booleans(),
    relu=st.integers(0, 1),
    nz2nd=st.integers(0, 1),
)
def test_quantised(
    make_bench: Callable[[], Any],
    kind: str,
    by_columns: bool,
    to_l1: bool,
    m: int,
    n: int,
    signed: bool,
    relu: int,
    nz2nd: int,
) -> None:
    """Each column is multiplied by its scale; nothing beside the matrix is written."""
    bench = make_bench()
    element = DTYPES["f16" if kind == "s322f16" else "b8"]
    width = 16 if kind == "s322f16" else 32
    if to_l1 or not nz2nd:
        n = -(-n // width) * width
    n1 = -(-n // 16)
    rng = np.random.default_rng(m + 100 * n)
    sums = rng.integers(-3000, 3000, (n1, m, 16)).astype(DTYPES[SUMS[kind]])
    scales = rng.choice([0.25, 0.0625, -0.5, 1.5, 33.0, 2.0**-20], n if by_columns else 1)
    offsets = rng.integers(-128, 128, scales.size)
    words = [word(s, int(o), signed) for s, o in zip(scales, offsets, strict=True)]
    bench.put(Space.L0C, 1024, sums)
    if by_columns:
        bench.put(Space.FB, 256, np.array(words, np.uint64))
        bench.run("set_fpc", bits=2 << 8)
    else:
        bench.run("set_quant_pre", bits=words[0])
    matrix = np.maximum(sums, 0) if relu else sums
    matrix = matrix.transpose(1, 0, 2).reshape(m, n1 * 16)[:, :n]
    result = np.stack(
        [
            expected(column, scales[j % scales.size], int(offsets[j % scales.size]), signed, kind)
            for j, column in enumerate(matrix.T)
        ],
        axis=1,
    )
    space = Space.L1 if to_l1 else Space.GM
    whole = bench.memory[space].copy()
    if nz2nd and not to_l1:
        stride = n + 3
        np.ndarray((m, n), element, whole.data, 64, (stride * element.itemsize, element.itemsize))[
            :
        ] = result
    else:
        stride = m + 1
        for j in range(n // width):
            place = np.ndarray((m, width), element, whole.data, 64 + j * stride * 32)
            place[:] = result[:, j * width : (j + 1) * width]
    fields = {"n_size": n, "m_size": m, "dst_stride": stride, "src_stride": m, "relu": relu}
    name = "fixpipe_to_l1" if to_l1 else "fixpipe"
    more = {} if to_l1 else {"nz2nd": nz2nd}
    kind += "v" * by_columns
    bench.run(f"{name}.{kind}", dst=64, src=1024, **fields, **more)
    assert np.array_equal(bench.memory[space], whole)


def test_scales_have_nineteen_bits() -> None:
    """A word keeps the upper 19 bits of the scale; the lower 13 are cut."""
    assert word(1.0 + 2.0**-10) == word(1.0 + 2.0**-10 + 2.0**-12) != word(1.0)


def test_blocks_of_bytes_are_whole() -> None:
    legal = {"n_size": 48, "m_size": 16, "dst_stride": 48, "src_stride": 16, "relu": 0, "nz2nd": 1}
    record = INSTRUCTIONS["fixpipe.s322b8"]
    record.encode({"dst": 0, "src": 0, **legal})
    with pytest.raises(InputError, match="found 48, expected a multiple of 32"):
        record.encode({"dst": 0, "src": 0, **legal, "nz2nd": 0})


@pytest.mark.parametrize(
    ("types", "of", "sums"),
    [
        ("f162f32", "f16", "f32"),
        ("bf162f32", "bf16", "f32"),
        ("f322f32", "f32", "f32"),
        ("s82s32", "s8", "s32"),
    ],
)
@given(m=st.integers(1, 40), k=st.integers(1, 40), n=st.integers(1, 40))
def test_bias(
    make_bench: Callable[[], Any], types: str, of: str, sums: str, m: int, k: int, n: int
) -> None:
    """A product that begins with a bias is one that adds to it."""
    biased, plain = make_bench(), make_bench()
    c = 32 // DTYPES[of].itemsize
    m1, k1, n1 = -(-m // 16), -(-k // c), -(-n // 16)
    rng = np.random.default_rng(m + 50 * k + 2500 * n)
    a, b = (rng.integers(-9, 9, shape) for shape in ((m1, k1, 16, c), (k1, n1, 16, c)))
    bias = rng.integers(-99, 99, n1 * 16).astype(DTYPES[sums])
    for bench in (biased, plain):
        bench.put(Space.L0A, 0, a.astype(DTYPES[of]))
        bench.put(Space.L0B, 0, b.astype(DTYPES[of]))
    biased.put(Space.BT, 64, bias)
    start = np.broadcast_to(bias.reshape(n1, 1, 16), (n1, m1 * 16, 16))
    plain.put(Space.L0C, 1024, start)
    sizes = {"m": m, "k": k, "n": n}
    biased.memory[Space.L0C][:] = plain.memory[Space.L0C]
    biased.memory[Space.L0C][1024 : 1024 + 4 * start.size] = 0
    biased.run(f"mad_bias.{types}", c=1024, a=0, b=0, bias=64, **sizes)
    aligned = {"k_align": 0} if of == "f32" else {}
    plain.run(f"mad.{types}", c=1024, a=0, b=0, init=0, **sizes, **aligned)
    assert np.array_equal(biased.memory[Space.L0C], plain.memory[Space.L0C])
