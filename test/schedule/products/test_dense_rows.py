"""Rows without gaps become rows of whole blocks and back, whatever their number and width."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from davinci import machine as machines
from davinci.schedule.products.dense_rows import (
    DenseRows,
    begun,
    fractal_rows,
    parting_of,
    scratch_bytes,
)
from davinci.schedule.vector.steps import RESULT, SOURCE, TRANSPOSITION, BufferSteps, View
from davinci.units import ceil_div

Array = npt.NDArray[Any]


def view_of(held: Array, view: View) -> Array:
    last = sum((n - 1) * s for n, s in zip(view.shape, view.strides, strict=True))
    assert 0 <= view.offset
    assert view.offset + last < held.size, f"beyond {view.buffer}"
    strides = [s * held.itemsize for s in view.strides]
    return np.lib.stride_tricks.as_strided(held[view.offset :], view.shape, strides)


def run(work: BufferSteps, source: Array, result: Array) -> None:
    """The steps, as the vector unit takes them; words are bits, not numbers."""
    held = {name: np.full(count, 0x5A5A, source.dtype) for name, count in work.scratch.items()}
    held |= {SOURCE: source, RESULT: result}
    for step in work.steps:
        views = [view_of(held[view.buffer], view) for view in step.operands]
        if step.name == "vector_dup":
            views[0][...] = 0
        elif step.name == TRANSPOSITION:
            blocks = [np.ascontiguousarray(view).view(np.uint16) for view in views]
            words = blocks[0].reshape(16, -1, 16).transpose(2, 1, 0)
            made = np.ascontiguousarray(words).view(source.dtype)
            views[1][...] = made.reshape(views[1].shape)
        else:
            views[-1][...] = views[0]


SIZES = {
    "rows": st.sampled_from([16, 32, 48, 112, 256, 272]),
    "width": st.integers(1, 70),
    "itemsize": st.sampled_from([2, 4]),
}


@given(**SIZES)
def test_parted_and_packed_again(rows: int, width: int, itemsize: int) -> None:
    kind = np.dtype(f"u{itemsize}")
    matrix = np.arange(1, rows * width + 1, dtype=kind).reshape(rows, width)
    columns, machine = ceil_div(width, 16), machines.load("ascend910")
    way = parting_of(rows // 16, columns, width, itemsize)
    wide = np.full(columns * (rows + 1) * 16, 7, kind)
    run(way.parted(), matrix.flatten(), wide)
    if itemsize == 2:
        found = wide.reshape(columns, rows + 1, 16)[:, :rows].swapaxes(0, 1).reshape(rows, -1)
    else:
        found = wide[: rows * columns * 16].reshape(rows, -1)
    np.testing.assert_array_equal(found[:, :width], matrix)
    assert not found[:, width:].any()
    dense = np.zeros(rows * width, kind)
    run(way.packed(), wide, dense)
    np.testing.assert_array_equal(dense, matrix.flatten())
    assert way.packed().estimate(machine).cycles > 0
    assert sum(scratch_bytes([way]).values()) >= rows * width * itemsize


@given(**SIZES)
def test_fractals_packed(rows: int, width: int, itemsize: int) -> None:
    """As sums leave L0C: [columns][rows][16]."""
    columns, pitch = ceil_div(width, 16), itemsize // 2
    sums = np.arange(columns * rows * 16, dtype=f"u{itemsize}").reshape(columns, rows, 16)
    way = fractal_rows(rows, columns, width, itemsize, pitch, rows * pitch)
    dense = np.zeros(rows * width, sums.dtype)
    run(way.packed(), sums.flatten(), dense)
    expected = sums.swapaxes(0, 1).reshape(rows, -1)[:, :width]
    np.testing.assert_array_equal(dense.reshape(rows, width), expected)


@given(**SIZES)
def test_a_row_repeated(rows: int, width: int, itemsize: int) -> None:
    blocks = ceil_div(width * itemsize, 32)
    way = DenseRows(rows, width, itemsize, tuple(range(blocks)), 0, same=True)
    row = np.arange(blocks * 32 // itemsize, dtype=f"u{itemsize}")
    dense = np.zeros(rows * width, row.dtype)
    run(way.packed(), row, dense)
    np.testing.assert_array_equal(dense.reshape(rows, width), np.tile(row[:width], (rows, 1)))


@given(st.sampled_from([2, 4]), st.integers(1, 15))
def test_the_end_of_a_block_becomes_its_beginning(itemsize: int, count: int) -> None:
    lanes = 32 // itemsize
    count = min(count, lanes - 1)
    block = np.arange(1, lanes + 1, dtype=f"u{itemsize}")
    moved = block.copy()
    run(begun(itemsize, count), block, moved)
    np.testing.assert_array_equal(moved[:count], block[lanes - count :])
