"""The network that sorts keys in UB, its steps carried out with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from davinci.machine import load
from davinci.schedule.sorts.keys import Keys
from davinci.schedule.sorts.network import APART, KEYS, LEAST, MINUS_ONE, NUMBERS, OUTER, SortTile
from davinci.schedule.sorts.places import LANES, LOW
from davinci.schedule.sorts.schedule import step_cycles, tiles_of, work_cycles
from davinci.schedule.sorts.spacing import spaced, waiting
from davinci.schedule.vector.steps import View

ELEMENTWISE = {
    "vmin": np.minimum,
    "vmax": np.maximum,
    "vsub": np.subtract,
    "vadd": np.add,
}


def array_of(buffers: dict[str, Any], view: View) -> Any:
    """The elements of a view, to read and to write."""
    last = sum((size - 1) * stride for size, stride in zip(view.shape, view.strides, strict=True))
    assert 0 <= view.offset <= view.offset + last < len(buffers[view.buffer])
    strides = [stride * 4 for stride in view.strides]
    held = buffers[view.buffer][view.offset :]
    return np.lib.stride_tricks.as_strided(held, view.shape, strides)


def turned(blocks: Any) -> Any:
    """16 rows of blocks as `vnchwconv` turns them: word j of row i is word i of row j."""
    words = np.ascontiguousarray(blocks).reshape(16, -1, 8).view(np.int16)
    return np.ascontiguousarray(words.transpose(2, 1, 0)).view(np.int32)


def sorted_by(tile: SortTile, *planes: Any) -> Any:
    """What the steps of a tile make of the planes of its keys; what nobody wrote is odd."""
    dtype = planes[0].dtype.type
    buffers = {name: np.full(size, -77, dtype) for name, size in tile.sizes().items()}
    buffers[KEYS][: len(planes) * tile.elements] = np.concatenate([x.ravel() for x in planes])
    buffers[NUMBERS][:] = -1
    for step in spaced(tile.steps()):
        *sources, target = (array_of(buffers, view) for view in step.operands)
        if step.name == "vnchwconv":
            target[...] = turned(sources[0]).view(dtype).reshape(target.shape)
        elif step.name == "vmuls":
            target[...] = sources[0] * dtype(step.scalar)
        else:
            target[...] = ELEMENTWISE[step.name](*sources)
    return buffers[tile.left][: len(planes) * tile.elements].reshape(len(planes), tile.rows, -1)


@pytest.mark.parametrize("rows", [1, OUTER, 4 * OUTER])
@pytest.mark.parametrize("times", [1, 2, 8])
def test_keys_come_out_in_order(rows: int, times: int) -> None:
    random = np.random.default_rng(times)
    width = times * LEAST // min(rows, OUTER)
    keys = random.integers(-(2**30), 2**30, (rows, width), np.int32)
    tile = SortTile(keys.size, rows, 1, (MINUS_ONE,))
    np.testing.assert_array_equal(sorted_by(tile, keys)[0], np.sort(keys, axis=1))


@pytest.mark.parametrize(("rows", "kept"), [(1, 0), (1, 5), (1, 37), (OUTER, 0), (OUTER, 3)])
@pytest.mark.parametrize("used", [3, 4, 6])
@pytest.mark.parametrize("low", [0, LOW])
def test_places_without_keys_take_no_exchanges(rows: int, kept: int, used: int, low: int) -> None:
    """Keys lie in the first places of rows, or of eighths of one; others hold what comes first."""
    random = np.random.default_rng(used)
    columns = (1 << used) * (OUTER if rows == 1 else 1) - 5
    tile, whole = (SortTile(LEAST, rows, 1, (MINUS_ONE,), kept, n, low) for n in (used, 0))
    keys = random.integers(-(2**29), 2**29, (rows, columns), np.int32)
    plane = np.full((rows, tile.width), -(2**30), np.int32)
    last = tile.spans(columns)[-1]
    plane[:, last.place :] = 2**30
    for span in tile.spans(columns):
        lie = slice(span.first, span.first + span.count)
        plane[:, span.place : span.place + span.count] = keys[:, lie]
    found = sorted_by(tile, plane)[0]
    spans = [found[:, s.place : s.place + s.count] for s in tile.spans(kept or columns)]
    wanted = np.sort(keys, axis=1)[:, : kept or columns]
    np.testing.assert_array_equal(np.concatenate(spans, axis=1), wanted)
    assert sum(1 for _ in tile.steps()) < sum(1 for _ in whole.steps())


@pytest.mark.parametrize("rows", [1, OUTER, 8 * OUTER])
@pytest.mark.parametrize("kept", [0, 1, 5, 64])
def test_planes_are_compared_one_after_the_other(rows: int, kept: int) -> None:
    """Keys of three planes, with many that are alike in the first two."""
    random = np.random.default_rng(kept)
    shape = (rows, max(LEAST // rows, LEAST // OUTER))
    high, low = (random.integers(-3, 3, shape) for _ in range(2))
    number = np.stack([random.permutation(shape[1]) for _ in range(rows)])
    planes = [
        (plane * APART**power).astype(np.float32)
        for power, plane in ((2, high), (1, low + 2**22), (0, number))
    ]
    tile = SortTile(high.size, rows, 3, (MINUS_ONE,), kept)
    order = np.lexsort((number, low, high), axis=-1)[:, : kept or None]
    for found, plane in zip(sorted_by(tile, *planes), planes, strict=True):
        expected = np.take_along_axis(plane, order, -1)
        np.testing.assert_array_equal(found[:, : expected.shape[1]], expected)


def test_halves_are_in_other_banks() -> None:
    """While many keys are turned, all bits but the two that stay are exchanged in other halves of
    the 16 bank groups."""
    tile = SortTile(16 * 1024, 2 * OUTER, 1, (MINUS_ONE,))
    apart = [
        (step.operands[1].offset - step.operands[0].offset) // LANES
        for step in tile.steps()
        if step.name == "vmin"
    ]
    assert len(apart) == 55
    assert sum(distance % 16 == 8 for distance in apart) == 52


@pytest.mark.parametrize("below", [320, 1 << 20])
def test_few_steps_wait_for_the_one_before(below: int) -> None:
    """Exchanges of the planes of keys are taken in turn."""
    for tile in tiles_of(320, Keys("largest", False, below), load("ascend910"), rows=32):
        steps = list(tile.steps())
        order = spaced(steps)
        assert 2 * waiting(order) < waiting(steps)
        assert sorted(map(repr, order)) == sorted(map(repr, steps))


def test_exchanges_of_a_short_row_are_few_instructions() -> None:
    """Where no place without keys lies between those of keys, and all bits of an address move."""
    machine, keys = load("ascend910"), Keys("largest", False, 320)
    tiles = [tile for tile in tiles_of(320, keys, machine) if tile.rows == 1]
    assert {tile.low for tile in tiles} == {0, LOW}
    best = min(tiles, key=lambda tile: work_cycles(tile, keys, 320, machine))
    cycles = [step_cycles(step, machine) for step in best.steps() if step.name == "vmin"]
    single = [each for each in cycles if each < 2 * machine.vector.fixed_cycles]
    assert len(single) > 0.8 * len(cycles)
