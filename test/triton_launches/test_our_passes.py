"""Kernels of Triton by our passes, from what the vendor's adapter makes, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton", reason="needs pip install '.[triton]'")
pytest.importorskip("ascendnpuir", reason="needs pip install '.[triton]'")

import davinci.triton
import triton_kernels as kernels
from davinci.errors import CompileError, InputError
from davinci.triton import LaunchReport
from triton_references import ELEMENTWISE, Array, softmax

RANDOM = np.random.default_rng(0)
BLOCK = 256


def numbers(*shape: int, kind: str = "float32") -> Array:
    return RANDOM.standard_normal(shape).astype(kind)


def run(name: str, grid: tuple[int, ...], *arguments: Any, **constants: Any) -> LaunchReport:
    kernel = getattr(kernels, name)
    return davinci.triton.run(kernel, grid, *arguments, compiler="ours", **constants)


@pytest.mark.parametrize(("name", "count", "scalars", "function"), ELEMENTWISE)
@pytest.mark.parametrize("n", [1, 17, 600])
def test_elementwise(
    name: str, count: int, scalars: tuple[float, ...], function: Callable[..., Array], n: int
) -> None:
    arrays = [numbers(n) for _ in range(count)]
    out = np.full(n, -1, np.float32)
    grid = (2,) if name == "persistent_copy" else (-(-n // BLOCK),)
    run(name, grid, *arrays, out, n, *scalars, BLOCK=BLOCK)
    np.testing.assert_allclose(out, function(*arrays), rtol=2e-6, atol=1e-6)


def test_more_programs_than_cores_share_them() -> None:
    x, y = numbers(2, 10_000)
    out = np.zeros_like(x)
    report = run("add", (157,), x, y, out, 10_000, BLOCK=64)
    np.testing.assert_array_equal(out, x + y)
    assert report.profile["kernels"][0]["blocks"] == 48


def test_an_array_that_is_given_twice() -> None:
    x = numbers(600)
    expected = x + x
    run("add", (3,), x, x, x, 600, BLOCK=BLOCK)
    np.testing.assert_array_equal(x, expected)


def test_integers_and_halves() -> None:
    x, y = (RANDOM.integers(-1000, 1000, 300).astype(np.int32) for _ in range(2))
    out = np.zeros(300, np.int32)
    run("integers", (2,), x, y, out, 300, BLOCK=BLOCK)
    np.testing.assert_array_equal(out, 3 * x + y - 7)
    a, half = numbers(300), np.zeros(300, np.float16)
    run("to_half", (2,), a, half, 300, BLOCK=BLOCK)
    np.testing.assert_array_equal(half, a.astype(np.float16))


@pytest.mark.parametrize(("name", "function"), [("row_sums", np.sum), ("row_maxima", np.max)])
@pytest.mark.parametrize("columns", [1, 100, 777])
def test_reductions_of_rows(name: str, function: Callable[..., Array], columns: int) -> None:
    x, out = numbers(3, columns), np.zeros(3, np.float32)
    run(name, (3,), x, out, columns, columns, BLOCK=1024)
    np.testing.assert_allclose(out, function(x, 1), rtol=1e-5, atol=1e-4)


def test_reductions_of_tiles() -> None:
    x, sums = numbers(37, 50), np.zeros(37, np.float32)
    run("tile_row_sums", (3,), x, sums, 37, 50, ROWS=16, COLUMNS=64)
    np.testing.assert_allclose(sums, x.sum(1), rtol=1e-5, atol=1e-5)
    sums = np.zeros(50, np.float32)
    run("tile_column_sums", (1,), x, sums, 37, 50, ROWS=64, COLUMNS=64)
    np.testing.assert_allclose(sums, x.sum(0), rtol=1e-5, atol=1e-5)


def test_softmax() -> None:
    x = numbers(5, 301)
    out = np.zeros_like(x)
    run("softmax", (2,), x, out, 5, 301, 301, BLOCK=512)
    np.testing.assert_allclose(out, softmax(x), rtol=1e-5)
    run("log_softmax", (5,), x, out, 301, 301, BLOCK=512)
    np.testing.assert_allclose(out, np.log(softmax(x)), rtol=1e-5, atol=1e-5)


def test_norms() -> None:
    x, scale, shift = numbers(3, 301, kind="float16"), *numbers(2, 301, kind="float16")
    wide = x.astype(np.float32)
    out = np.zeros_like(x)
    run("layer_norm", (3,), x, scale, shift, out, 301, 301, 1e-5, BLOCK=512)
    centred = wide - wide.mean(1, keepdims=True)
    expected = centred / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * scale + shift
    np.testing.assert_allclose(out, expected, rtol=2e-3, atol=2e-3)
    result = np.zeros(x.shape, np.float32)
    run("rms_norm", (3,), x, scale, result, 301, 301, 1e-5, BLOCK=128)
    expected = wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-5) * scale
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_broadcasts() -> None:
    x, row = numbers(37, 50), numbers(50)
    out = np.zeros_like(x)
    run("add_row", (3, 1), x, row, out, 37, 50, ROWS=16, COLUMNS=64)
    np.testing.assert_array_equal(out, x + row)
    x, factors = numbers(32, 64), numbers(32)
    out = np.zeros_like(x)
    run("scale_rows", (2,), x, factors, out, 64, ROWS=16, COLUMNS=64)
    np.testing.assert_array_equal(out, x * factors[:, None])


def test_selections_and_parts_of_rows() -> None:
    x, keep = numbers(300), RANDOM.random(300).astype(np.float32)
    out = np.zeros_like(x)
    run("dropout", (2,), x, keep, out, 300, 0.3, BLOCK=BLOCK)
    expected = np.where(keep > np.float32(0.3), x / np.float32(0.7), 0)
    np.testing.assert_allclose(out, expected, rtol=1e-6)
    x, cosine, sine = numbers(4, 64), numbers(4, 32), numbers(4, 32)
    out, (a, b) = np.zeros_like(x), np.split(x, 2, axis=1)
    run("rotary", (4,), x, cosine, sine, out, HALF=32)
    expected = np.concatenate([a * cosine - b * sine, b * cosine + a * sine], 1)
    np.testing.assert_allclose(out, expected, rtol=1e-6, atol=1e-6)


def test_what_is_not_lowered_is_refused_by_name() -> None:
    x = numbers(64, 64).astype(np.float16)
    message = r"kernels.py:\d+.*found linalg.matmul \(1x\); compile .* vendor's compiler makes it"
    with pytest.raises(CompileError, match=message):
        run("matmul", (1,), x, x, x, 64, 64, 64, *(64, 1) * 3, M=64, N=64, K=64)
    places = np.zeros(64, np.int32)
    with pytest.raises(CompileError, match="a tensor that holds nothing"):
        run("gather_elements", (1,), x[0], places, x[1], 64, BLOCK=64)
    with pytest.raises(InputError, match="a kernel that calls functions; found triton_cumsum"):
        run("running_sums", (1,), numbers(64), numbers(64), 64, BLOCK=64)


def test_buffers_that_do_not_fit_are_listed() -> None:
    x = numbers(100)
    with pytest.raises(CompileError, match=r"(?s)do not fit UB.*kernels.py:\d+"):
        run("silu", (1,), x, x, 100, BLOCK=65536)


def test_the_option_is_checked_and_says_who_compiled() -> None:
    x, out = numbers(2, 100)
    report = run("silu", (1,), x, out, 100, BLOCK=128)
    assert report.compiler == "ours"
    with pytest.raises(InputError, match="found compiler=ours; expected compiler=vendor"):
        _ = report.hivm
    with pytest.raises(InputError, match="found compiler=theirs; expected vendor or ours"):
        davinci.triton.run(kernels.silu, (1,), x, out, 100, BLOCK=128, compiler="theirs")
    with davinci.triton.active():
        kernels.silu[(1,)](x, out, 100, BLOCK=128, compiler="ours")
    assert davinci.triton.last.compiler == "ours"
