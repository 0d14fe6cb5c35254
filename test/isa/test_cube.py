"""The matrix unit against a plain matrix product."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from davinci.isa import DTYPES, Space

TYPES = {
    "f162f32": ("f16", "f16", "f32"),
    "f162f16": ("f16", "f16", "f16"),
    "s82s32": ("s8", "s8", "s32"),
    "u8s82s32": ("u8", "s8", "s32"),
    "bf162f32": ("bf16", "bf16", "f32"),
    "f322f32": ("f32", "f32", "f32"),
}


def zz(matrix, c):
    """[m1, k1, 16, c] from a matrix whose sizes are whole fractals."""
    m, k = matrix.shape
    return matrix.reshape(m // 16, 16, k // c, c).swapaxes(1, 2)


def zn(matrix, c):
    """[k1, n1, 16 n, c k] from a matrix [k, n]."""
    k, n = matrix.shape
    return matrix.reshape(k // c, c, n // 16, 16).transpose(0, 2, 3, 1)


def nz(matrix):
    """[n1, m1, 16, 16] from a matrix [m, n]."""
    m, n = matrix.shape
    return matrix.reshape(m // 16, 16, n // 16, 16).transpose(2, 0, 1, 3)


def whole(size, unit):
    return -(-size // unit) * unit


def matrix(rng, dtype, rows, columns):
    if dtype in ("f16", "f32", "bf16"):
        return rng.normal(size=(rows, columns)).astype(DTYPES[dtype])
    info = np.iinfo(DTYPES[dtype])
    return rng.integers(info.min, info.max + 1, (rows, columns)).astype(DTYPES[dtype])


@pytest.mark.parametrize("types", TYPES)
@example(m=1, k=70, n=40, init=0)
@given(m=st.integers(1, 70), k=st.integers(1, 70), n=st.integers(1, 70), init=st.integers(0, 1))
def test_mad(make_bench, types, m, k, n, init):
    bench = make_bench()
    a_type, b_type, c_type = TYPES[types]
    c = 32 // DTYPES[a_type].itemsize
    rng = np.random.default_rng(m + 100 * k + 10000 * n)
    a = matrix(rng, a_type, whole(m, 16), whole(k, c))
    b = matrix(rng, b_type, whole(k, c), whole(n, 16))
    old = rng.integers(-99, 99, (whole(m, 16), whole(n, 16))).astype(DTYPES[c_type])
    if m == 1:  # a vector, and C's other rows stay what they are
        a[1:], row = 0, a[0]
        bench.put(Space.L0A, 512, row)
    else:
        bench.put(Space.L0A, 512, zz(a, c))
    bench.put(Space.L0B, 1024, zn(b, c))
    bench.put(Space.L0C, 2048, nz(old))
    before = bench.memory[Space.L0C].copy()
    aligned = {"k_align": 0} if a_type == "f32" else {}
    bench.run(f"mad.{types}", a=512, b=1024, c=2048, m=m, k=k, n=n, init=init, **aligned)

    exact = a.astype(np.float64) @ b.astype(np.float64) + (0 if init else old.astype(np.float64))
    shape = (whole(n, 16) // 16, whole(m, 16) // 16, 16, 16)
    found = bench.get(Space.L0C, 2048, shape, DTYPES[c_type])
    if c_type == "s32":
        assert np.array_equal(found, nz(exact))
    else:
        # Single precision products and sums, one rounding to the type of C.
        terms = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64)) + np.abs(old)
        bound = nz(terms) * (k + 2) * 2.0**-24 + np.abs(nz(exact)) * np.finfo(DTYPES[c_type]).eps
        assert (np.abs(found - nz(exact)) <= bound).all()
    changed = np.flatnonzero(bench.memory[Space.L0C] != before)
    assert changed.size == 0 or changed[0] >= 2048
    assert changed.size == 0 or changed[-1] < 2048 + found.nbytes


@given(m=st.integers(2, 40), k=st.integers(1, 40), n=st.integers(1, 40))
def test_pairs_of_fractals_of_f32(make_bench, m, k, n):
    """With `k_align` rows of A lie a whole number of pairs of fractals apart; what the last one of
    an odd number holds does not take part."""
    bench = make_bench()
    rng = np.random.default_rng(m + 100 * k + 10000 * n)
    a = matrix(rng, "f32", whole(m, 16), whole(k, 16))
    b = matrix(rng, "f32", whole(k, 8), whole(n, 16))
    bench.put(Space.L0A, 512, zz(a, 8))
    bench.put(Space.L0B, 1024, zn(b, 8))
    bench.run("mad.f322f32", a=512, b=1024, c=2048, m=m, k=k, n=n, init=1, k_align=1)
    exact = nz(a[:, : len(b)].astype(np.float64) @ b.astype(np.float64))
    found = bench.get(Space.L0C, 2048, exact.shape, np.float32)
    np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("m1,k1,n1", [(1, 1, 1), (1, 7, 3), (5, 1, 2), (2, 12, 1), (4, 4, 4)])
@pytest.mark.parametrize("init", [0, 1])
def test_bits_are_those_of_fractal_after_fractal(make_bench, m1, k1, n1, init):
    """Products of two fractals are exact here, whatever the host's library adds first, and their
    sums are not: each pair has another power of two.
    """
    bench = make_bench()
    rng = np.random.default_rng(m1 + 10 * k1 + 100 * n1)
    scales = 2.0 ** rng.integers(-12, 8, (1, k1, 1, 1))
    a = (rng.integers(-8, 9, (m1, k1, 16, 16)) * scales).astype(np.float16)
    b = rng.integers(-8, 9, (k1, n1, 16, 16)).astype(np.float16)
    c = rng.normal(size=(n1, m1, 16, 16)).astype(np.float32)
    for space, array in ((Space.L0A, a), (Space.L0B, b), (Space.L0C, c)):
        bench.put(space, 0, array)
    bench.run("mad.f162f32", a=0, b=0, c=0, m=16 * m1, k=16 * k1, n=16 * n1, init=init)

    wanted = np.zeros_like(c) if init else c.copy()
    for n, m, k in np.ndindex(n1, m1, k1):
        wanted[n, m] += a[m, k].astype(np.float32) @ b[k, n].astype(np.float32).T
    found = bench.get(Space.L0C, 0, c.shape, np.float32)
    assert np.array_equal(found.view(np.uint32), wanted.view(np.uint32))


@pytest.mark.parametrize("zero", ["m", "k", "n"])
def test_a_size_of_zero_is_no_operation(bench, zero):
    before = bench.memory[Space.L0C].copy()
    sizes = {"m": 16, "k": 16, "n": 16} | {zero: 0}
    bench.run("mad.f162f32", a=0, b=0, c=0, **sizes, init=1)
    assert np.array_equal(bench.memory[Space.L0C], before)


def test_long_sums_of_bytes_are_exact(bench):
    """128 * 128 * 2048 needs 25 bits, one more than single precision holds exactly."""
    k = 2048
    a, b = np.full((16, k), -128, np.int8), np.full((k, 16), -128, np.int8)
    a[0, 0] = -127
    bench.put(Space.L0A, 0, zz(a, 32))
    bench.put(Space.L0B, 0, zn(b, 32))
    bench.run("mad.s82s32", a=0, b=0, c=0, m=16, k=k, n=16, init=1)
    found = bench.get(Space.L0C, 0, (16, 16), np.int32)
    assert np.array_equal(found, a.astype(np.int64) @ b.astype(np.int64))


def test_integer_sums_wrap(bench):
    bench.put(Space.L0A, 0, np.full((16, 32), 1, np.int8))
    bench.put(Space.L0B, 0, np.full((16, 32), 1, np.int8))
    bench.put(Space.L0C, 0, np.full(256, 2**31 - 1, np.int32))
    bench.run("mad.s82s32", a=0, b=0, c=0, m=16, k=32, n=16, init=0)
    assert (bench.get(Space.L0C, 0, (256,), np.int32) == 31 - 2**31).all()
