"""Softmax by blocks of keys is softmax: the steps as they are written down, on arrays in NumPy,
against all keys at once in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from davinci import machine as machines
from davinci.schedule.attention.blocks import (
    BEFORE,
    FACTOR,
    HIGHEST,
    KEPT,
    LOWEST,
    PART,
    SPREAD,
    taking,
)
from davinci.schedule.attention.fold import (
    FIRST,
    SECOND,
    SPREAD_OUT,
    fold,
    less_highest,
    negated,
    result_lanes,
    spread_again,
    tile_name,
)
from davinci.schedule.vector.steps import RESULT, SOURCE, BufferStep, BufferSteps, View

Array = npt.NDArray[Any]

SIDE = 16
TYPES = {"f16": np.float16, "f32": np.float32}
BINARY = {"vmax": np.maximum, "vsub": np.subtract, "vmul": np.multiply, "vadd": np.add}


def seen(buffers: dict[str, Array], view: View) -> Array:
    buffer = buffers[view.buffer][view.offset :]
    strides = [stride * buffer.itemsize for stride in view.strides]
    return np.lib.stride_tricks.as_strided(buffer, view.shape, strides)


def perform(steps: BufferSteps, buffers: dict[str, Array]) -> None:
    for step in steps.steps:
        *sources, result = (seen(buffers, view) for view in step.operands)
        result[...] = computed(step, [source.copy() for source in sources])


def computed(step: BufferStep, sources: list[Array]) -> Array:
    if step.name in BINARY:
        return np.asarray(BINARY[step.name](*sources))
    if step.name == "vexp":
        return np.asarray(np.exp(sources[0]))
    assert step.name == "vmuls", step.name
    return sources[0] * sources[0].dtype.type(step.scalar)


def turned(scores: Array) -> Array:
    """[rows, keys] as [rows / 16][keys][16], flat."""
    rows, keys = scores.shape
    return scores.reshape(rows // SIDE, SIDE, keys).transpose(0, 2, 1).reshape(-1).copy()


@pytest.mark.parametrize("dtype", ["f16", "f32"])
@pytest.mark.parametrize(
    "tiles", [(16,), (48,), (208,), (64, 16), (48, 48), (128,) * 4, (80, 80, 32)]
)
@pytest.mark.parametrize("rows", [1, 3, 4])
def test_the_highest_score(dtype: str, tiles: tuple[int, ...], rows: int) -> None:
    machine, rng = machines.load("ascend910"), np.random.default_rng(sum(tiles))
    scores = rng.standard_normal((rows * SIDE, sum(tiles))).astype(TYPES[dtype])
    less = scores - scores.max(1, keepdims=True)
    starts = [0, *np.cumsum(tiles)[:-1]]

    def by_tile(array: Array) -> dict[str, Array]:
        parts = enumerate(zip(starts, tiles, strict=True))
        return {tile_name(i): turned(array[:, start : start + size]) for i, (start, size) in parts}

    steps = fold(rows, tiles, dtype, machine)
    buffers = {name: np.zeros(size, TYPES[dtype]) for name, size in steps.scratch.items()}
    assert set(buffers) == {FIRST, SECOND}
    buffers |= {
        **by_tile(scores),
        RESULT: np.zeros(rows * result_lanes(dtype), TYPES[dtype]),
        SPREAD_OUT: np.zeros(rows * max(tiles) * SIDE, TYPES[dtype]),
    }
    perform(steps, buffers)
    if dtype == "f16":
        fractals = np.zeros((rows, SIDE, SIDE), TYPES[dtype])
        fractals[:, 0] = -scores.max(1).reshape(rows, SIDE)
        zeros = np.zeros_like(buffers[SPREAD_OUT])
        perform(BufferSteps(dtype, (negated(rows),), {}), {**buffers, SPREAD_OUT: zeros})
        np.testing.assert_array_equal(zeros[: fractals.size], fractals.reshape(-1))
        perform(BufferSteps(dtype, (spread_again(rows, tiles[0], dtype),), {}), buffers)
        # The same at once.
        copies = np.zeros_like(buffers[SPREAD_OUT])
        perform(fold(rows, tiles, dtype, machine, spread=True), {**buffers, SPREAD_OUT: copies})
        np.testing.assert_array_equal(copies, buffers[SPREAD_OUT])
    for number, (name, wanted) in enumerate(by_tile(less).items()):
        step = less_highest(rows, tiles[number], tiles[0], dtype)
        perform(BufferSteps(dtype, (step,), {}), {**buffers, SOURCE: buffers[name]})
        np.testing.assert_array_equal(buffers[name], wanted)


@pytest.mark.parametrize("spread", [1.0, 30.0])
@pytest.mark.parametrize("order", ["random", "rising", "falling", "hidden at first"])
def test_blocks_are_taken_in(spread: float, order: str) -> None:
    """f32; whatever the order of large and small scores."""
    rows, keys, columns, blocks = 2, 40, 3, 7
    machine, rng = machines.load("ascend910"), np.random.default_rng(7)
    shape = (rows * SIDE, blocks * keys)
    scores = (rng.standard_normal(shape) * spread).astype(np.float32)
    if order in ("rising", "falling"):
        scores = np.sort(scores, 1)[:, :: 1 if order == "rising" else -1]
    if order == "hidden at first":
        scores[:, : 2 * keys] = -np.inf
    values = rng.standard_normal((blocks * keys, (columns - 1) * SIDE))
    taken = taking(rows, columns, "f32", machine)
    lanes = result_lanes("f32")
    f32 = np.float32
    buffers: dict[str, Array] = {
        BEFORE: np.full(rows * lanes, LOWEST["f32"], f32),
        FACTOR: np.zeros(rows * SIDE, f32),
        KEPT: np.zeros(columns * rows * SIDE * SIDE, f32),
    }
    for start in range(0, blocks * keys, keys):
        part = scores[:, start : start + keys]
        highest = part.max(1).reshape(rows, 1, SIDE)
        buffers[HIGHEST] = np.tile(highest, (1, lanes // SIDE, 1)).reshape(-1)
        perform(taken.maxima, buffers)
        largest = buffers[HIGHEST].reshape(rows, -1, SIDE)[:, 0].reshape(-1, 1)
        weights = np.exp(part.astype(np.float64) - largest)
        ones = np.ones((keys, SIDE))
        sums = weights @ np.hstack([values[start : start + keys], ones])
        fractals = sums.reshape(rows * SIDE, columns, SIDE).transpose(1, 0, 2)
        buffers[PART] = fractals.astype(f32).reshape(-1).copy()
        buffers[SPREAD] = np.repeat(buffers[FACTOR], 8)
        perform(taken.sums, buffers)
    found = buffers[KEPT].reshape(columns, rows * SIDE, SIDE)
    found = found[:-1] / found[-1]
    exact = np.exp(scores.astype(np.float64) - scores.max(1, keepdims=True))
    wanted = exact @ values / exact.sum(1, keepdims=True)
    got = found.transpose(1, 0, 2).reshape(rows * SIDE, -1)
    # A few roundings of f32 a block, of the exponent too.
    np.testing.assert_allclose(got, wanted, rtol=0, atol=blocks * 2.0**-19 * spread)
