"""Kernels whose buffers do not fit UB: the message names the buffers, their lines, and a size that
fits; with it they compile and run."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("triton", reason="needs pip install '.[triton]'")
pytest.importorskip("ascendnpuir", reason="needs pip install '.[triton]'")

import davinci.triton
import overflow_kernels as kernels
from davinci.triton.toolchain import NoRoom

RANDOM = np.random.default_rng(1)


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32) / 4


def failing(kernel: Any, grid: tuple[int], *arrays: np.ndarray, **constants: Any) -> NoRoom:
    """The error of a launch."""
    with pytest.raises(NoRoom) as raised:
        davinci.triton.run(kernel, grid, *arrays, **constants)
    return raised.value


def proposed(error: NoRoom) -> int:
    """The block size that the message says fits."""
    matched = re.search(r"BLOCK=(\d+) fits instead of", str(error))
    assert matched is not None, str(error)
    return int(matched.group(1))


def named(error: NoRoom) -> set[str]:
    """What the lines that own the live buffers say."""
    text = str(error).partition("live at the peak: ")[2].partition("; expected")[0]
    kernel = inspect.getsource(kernels).splitlines()
    places = re.findall(r"overflow_kernels\.py:(\d+)", text)
    assert len(places) == text.count(" bytes) of"), text
    return {kernel[int(n) - 1].strip() for n in places}


def total(error: NoRoom) -> int:
    return sum(buffer.size for buffer in error.buffers)


def test_a_block_of_48000_numbers() -> None:
    x, y, out = numbers(96000), numbers(96000), np.zeros(96000, np.float32)
    error = failing(kernels.add_blocks, (2,), x, y, out, 96000, BLOCK=48000)
    assert error.needed * 8 == 3_072_000  # as reported
    assert total(error) == error.needed
    assert named(error) == {
        "a = tl.load(x + at, mask=inside)",
        "tl.store(out + at, a + tl.load(y + at, mask=inside), mask=inside)",
    }
    assert "not even without code motion and auto multi buffer" in str(error)
    block = proposed(error)
    davinci.triton.run(kernels.add_blocks, (-(-96000 // block),), x, y, out, 96000, BLOCK=block)
    np.testing.assert_array_equal(out, x + y)


TILES: list[tuple[Any, int, Callable[..., np.ndarray]]] = [
    (
        kernels.reversed_rows,
        128,
        lambda x, y: np.exp(np.exp(np.where(np.arange(len(x)) == 3, y, x))[:, ::-1]),
    ),
    (
        kernels.chosen_sums,
        64,
        lambda x, y: np.where(y > 0, np.sqrt(np.exp2(x)).sum(), y).sum(1),
    ),
]


@pytest.mark.parametrize(("kernel", "side", "function"), TILES)
def test_tiles(kernel: Any, side: int, function: Callable[..., np.ndarray]) -> None:
    x, y = numbers(side, side), numbers(side, side)
    error = failing(kernel, (1,), x, y, np.zeros_like(x), BLOCK=side, multibuffer=False)
    assert 0.85 * error.needed < total(error) <= error.needed
    assert named(error)
    block = proposed(error)
    x, y = numbers(block, block), numbers(block, block)
    expected = function(x, y)
    out = np.zeros(expected.shape, np.float32)
    davinci.triton.run(kernel, (1,), x, y, out, BLOCK=block, multibuffer=False)
    np.testing.assert_allclose(out, expected, rtol=1e-5)


def test_a_loop_that_is_unrolled() -> None:
    x, out = numbers(1, 40000).astype(ml_dtypes.bfloat16), np.zeros(1, np.float32)
    error = failing(kernels.log_of_sums, (1,), x, out, LENGTH=40000, BLOCK=32768)
    assert total(error) == error.needed
    assert any("tl.load" in line or "float32" in line for line in named(error))
    block = proposed(error)
    davinci.triton.run(kernels.log_of_sums, (1,), x, out, LENGTH=40000, BLOCK=block)
    np.testing.assert_allclose(out[0], np.log(np.exp(x.astype(np.float64)).sum()), rtol=1e-5)
