"""Kernels of Triton, compiled by the vendor's compilers, on the simulated 910B against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("triton", reason="needs pip install '.[triton]'")
pytest.importorskip("ascendnpuir", reason="needs pip install '.[triton]'")

import davinci.triton
import triton_kernels as kernels
from triton_references import ELEMENTWISE, Array, softmax

RANDOM = np.random.default_rng(0)
BLOCK = 256


def numbers(*shape: int, kind: str = "float32") -> Array:
    return RANDOM.standard_normal(shape).astype(kind)


@pytest.mark.parametrize(("name", "count", "scalars", "function"), ELEMENTWISE)
@pytest.mark.parametrize("n", [1, 17, 600])
def test_elementwise(
    name: str, count: int, scalars: tuple[float, ...], function: Callable[..., Array], n: int
) -> None:
    arrays = [numbers(n) for _ in range(count)]
    out = np.full(n, -1, np.float32)
    grid = (2,) if name == "persistent_copy" else (-(-n // BLOCK),)
    davinci.triton.run(getattr(kernels, name), grid, *arrays, out, n, *scalars, BLOCK=BLOCK)
    np.testing.assert_allclose(out, function(*arrays), rtol=2e-6, atol=1e-6)


def test_integers() -> None:
    x, y = (RANDOM.integers(-1000, 1000, 300).astype(np.int32) for _ in range(2))
    out = np.zeros(300, np.int32)
    davinci.triton.run(kernels.integers, (2,), x, y, out, 300, BLOCK=BLOCK)
    np.testing.assert_array_equal(out, 3 * x + y - 7)


def test_halves() -> None:
    x, out = numbers(300), np.zeros(300, np.float16)
    davinci.triton.run(kernels.to_half, (2,), x, out, 300, BLOCK=BLOCK)
    np.testing.assert_array_equal(out, x.astype(np.float16))


@pytest.mark.parametrize(("name", "function"), [("row_sums", np.sum), ("row_maxima", np.max)])
@pytest.mark.parametrize("columns", [1, 100, 777])
def test_reductions_of_rows(name: str, function: Callable[..., Array], columns: int) -> None:
    x, out = numbers(3, columns), np.zeros(3, np.float32)
    davinci.triton.run(getattr(kernels, name), (3,), x, out, columns, columns, BLOCK=1024)
    np.testing.assert_allclose(out, function(x, 1), rtol=1e-5, atol=1e-4)


def test_reductions_of_tiles() -> None:
    x, sums = numbers(37, 50), np.zeros(37, np.float32)
    davinci.triton.run(kernels.tile_row_sums, (3,), x, sums, 37, 50, ROWS=16, COLUMNS=64)
    np.testing.assert_allclose(sums, x.sum(1), rtol=1e-5, atol=1e-5)
    sums = np.zeros(50, np.float32)
    davinci.triton.run(kernels.tile_column_sums, (1,), x, sums, 37, 50, ROWS=64, COLUMNS=64)
    np.testing.assert_allclose(sums, x.sum(0), rtol=1e-5, atol=1e-5)


def test_softmax() -> None:
    x = numbers(5, 301)
    out = np.zeros_like(x)
    davinci.triton.run(kernels.softmax, (2,), x, out, 5, 301, 301, BLOCK=512)
    np.testing.assert_allclose(out, softmax(x), rtol=1e-5)
    davinci.triton.run(kernels.log_softmax, (5,), x, out, 301, 301, BLOCK=512)
    np.testing.assert_allclose(out, np.log(softmax(x)), rtol=1e-5, atol=1e-5)


def test_norms() -> None:
    x, scale, shift = numbers(3, 301, kind="float16"), *numbers(2, 301, kind="float16")
    wide = x.astype(np.float32)
    out = np.zeros_like(x)
    arguments = (x, scale, shift, out, 301, 301, 1e-5)
    davinci.triton.run(kernels.layer_norm, (3,), *arguments, BLOCK=512)
    centred = wide - wide.mean(1, keepdims=True)
    expected = centred / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * scale + shift
    np.testing.assert_allclose(out, expected, rtol=2e-3, atol=2e-3)
    result = np.zeros(x.shape, np.float32)
    davinci.triton.run(kernels.rms_norm, (3,), x, scale, result, 301, 301, 1e-5, BLOCK=128)
    expected = wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-5) * scale
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_broadcasts() -> None:
    x, row = numbers(37, 50), numbers(50)
    out = np.zeros_like(x)
    davinci.triton.run(kernels.add_row, (3, 1), x, row, out, 37, 50, ROWS=16, COLUMNS=64)
    np.testing.assert_array_equal(out, x + row)
    x, factors = numbers(32, 64), numbers(32)
    out = np.zeros_like(x)
    davinci.triton.run(kernels.scale_rows, (2,), x, factors, out, 64, ROWS=16, COLUMNS=64)
    np.testing.assert_array_equal(out, x * factors[:, None])


def test_rotary() -> None:
    x, cosine, sine = numbers(4, 64), numbers(4, 32), numbers(4, 32)
    out, (a, b) = np.zeros_like(x), np.split(x, 2, axis=1)
    davinci.triton.run(kernels.rotary, (4,), x, cosine, sine, out, HALF=32)
    expected = np.concatenate([a * cosine - b * sine, b * cosine + a * sine], 1)
    np.testing.assert_allclose(out, expected, rtol=1e-6, atol=1e-6)


def test_dropout() -> None:
    x, keep = numbers(300), RANDOM.random(300).astype(np.float32)
    out = np.zeros_like(x)
    davinci.triton.run(kernels.dropout, (2,), x, keep, out, 300, 0.3, BLOCK=BLOCK)
    expected = np.where(keep > np.float32(0.3), x / np.float32(0.7), 0)
    np.testing.assert_allclose(out, expected, rtol=1e-6)


def test_atomic_additions_of_several_programs() -> None:
    x, out = numbers(300), np.zeros(128, np.float32)
    davinci.triton.run(kernels.add_up, (3,), x, out, 300, BLOCK=128)
    expected = np.concatenate([x, np.zeros(84, np.float32)]).reshape(3, 128).sum(0)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 64), (70, 33, 50), (16, 17, 15)])
def test_products_with_tails(m: int, n: int, k: int) -> None:
    a, b = numbers(m, k, kind="float16"), numbers(k, n, kind="float16")
    c = np.zeros((m, n), np.float16)
    grid = (-(-m // 64) * -(-n // 64),)
    tiles = {"M": 64, "N": 64, "K": 32}
    davinci.triton.run(kernels.matmul, grid, a, b, c, m, n, k, k, 1, n, 1, n, 1, **tiles)
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), rtol=2e-3, atol=1e-2)


@pytest.mark.parametrize("kind", ["float16", "float32"])
@pytest.mark.parametrize(("ta", "tb"), [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize(("m", "n", "k"), [(16, 32, 16), (64, 128, 256)])
def test_products_of_turned_factors(m: int, n: int, k: int, ta: int, tb: int, kind: str) -> None:
    """Also in parts of k, and f32 as f32: nothing of it is rounded to less."""
    a, b = numbers(m, k, kind=kind), numbers(k, n, kind=kind)
    given = (np.ascontiguousarray(a.T) if ta else a), (np.ascontiguousarray(b.T) if tb else b)
    c = np.zeros((m, n), np.float32)
    davinci.triton.run(kernels.product, (1,), *given, c, M=m, N=n, K=k, TA=ta, TB=tb)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("m", "n", "k"), [(70, 33, 50), (16, 17, 13)])
def test_products_of_f32_with_tails(m: int, n: int, k: int) -> None:
    a, b, c = numbers(m, k), numbers(k, n), np.zeros((m, n), np.float16)
    grid = (-(-m // 64) * -(-n // 64),)
    tiles = {"M": 64, "N": 64, "K": 32}
    davinci.triton.run(kernels.matmul, grid, a, b, c, m, n, k, k, 1, n, 1, n, 1, **tiles)
    np.testing.assert_allclose(c, a @ b, rtol=2e-3, atol=1e-2)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_on_cube_and_vector_cores(causal: bool) -> None:
    q, k, v = (numbers(2, 128, 64, kind="float16") for _ in range(3))
    out = np.zeros_like(q)
    sizes = {"ROWS": 64, "LENGTH": 128, "DEPTH": 64, "COLUMNS": 64, "CAUSAL": causal}
    davinci.triton.run(kernels.attention, (2, 2), q, k, v, out, 0.125, **sizes)
    scores = q.astype(np.float32) @ k.astype(np.float32).transpose(0, 2, 1) / 8
    if causal:
        scores = np.where(np.tril(np.ones((128, 128), bool)), scores, -1e6)
    np.testing.assert_allclose(out, softmax(scores) @ v.astype(np.float32), rtol=2e-3, atol=2e-3)


def test_gathers() -> None:
    table, rows = numbers(20, 64), RANDOM.integers(0, 20, 9).astype(np.int32)
    out = np.zeros((9, 64), np.float32)
    davinci.triton.run(kernels.gather_rows, (9,), table, rows, out, WIDTH=64)
    np.testing.assert_array_equal(out, table[rows])
    table, places = numbers(100), RANDOM.integers(0, 100, 70).astype(np.int32)
    out = np.zeros(70, np.float32)
    davinci.triton.run(kernels.gather_elements, (2,), table, places, out, 70, BLOCK=64)
    np.testing.assert_array_equal(out, table[places])


def test_running_sums() -> None:
    x, out = numbers(100), np.zeros(100, np.float32)
    davinci.triton.run(kernels.running_sums, (1,), x, out, 100, BLOCK=128)
    np.testing.assert_allclose(out, np.cumsum(x), rtol=1e-5, atol=1e-5)
