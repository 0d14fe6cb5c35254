"""The network that sorts keys in UB, its steps carried out with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from davinci.schedule.sorts.network import KEYS, LEAST, MINUS_ONE, NUMBERS, OUTER, SortTile
from davinci.schedule.vector.steps import View

ELEMENTWISE = {"vmin": np.minimum, "vmax": np.maximum, "vsub": np.subtract}


def array_of(buffers: dict[str, Any], view: View) -> Any:
    """The elements of a view, to read and to write."""
    strides = [stride * 4 for stride in view.strides]
    held = buffers[view.buffer][view.offset :]
    return np.lib.stride_tricks.as_strided(held, view.shape, strides)


def turned(blocks: Any) -> Any:
    """16 rows of blocks as `vnchwconv` turns them: word j of row i is word i of row j."""
    words = np.ascontiguousarray(blocks).reshape(16, -1, 8).view(np.int16)
    return np.ascontiguousarray(words.transpose(2, 1, 0)).view(np.int32)


def sorted_by(tile: SortTile, keys: Any) -> Any:
    """What the steps of a tile make of keys."""
    buffers = {name: np.zeros(size, np.int32) for name, size in tile.sizes().items()}
    buffers[KEYS][:] = keys.reshape(-1)
    buffers[NUMBERS][:] = -1
    for step in tile.steps():
        *sources, target = (array_of(buffers, view) for view in step.operands)
        if step.name == "vnchwconv":
            target[...] = turned(sources[0]).reshape(target.shape)
        else:
            target[...] = ELEMENTWISE[step.name](*sources)
    return buffers[KEYS].reshape(keys.shape)


@pytest.mark.parametrize("rows", [1, OUTER])
@pytest.mark.parametrize("times", [1, 2, 8])
def test_keys_come_out_in_order(rows: int, times: int) -> None:
    random = np.random.default_rng(times)
    keys = random.integers(-(2**30), 2**30, (rows, times * LEAST // rows), np.int32)
    tile = SortTile(keys.size, rows, 1, (MINUS_ONE,))
    np.testing.assert_array_equal(sorted_by(tile, keys), np.sort(keys, axis=1))
