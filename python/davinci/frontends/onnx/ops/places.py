"""Elements at places that are known at compile time, or that are computed, as rows of a table.

Known places become slices, reversals and repetitions where these are few: they move whole rows and
need no indices. Computed places of several dimensions become numbers of rows.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence

import numpy as np

from davinci.frontends.onnx.ops.indexing import take
from davinci.frontends.onnx.ops.shapes import (
    concat,
    cut_axis,
    expand_dims,
    move_axis,
    reshape,
    reverse,
)
from davinci.frontends.onnx.tensor import Array, OnnxTensor, broadcast, constant
from davinci.units import row_major

MOST_RUNS = 16
"""Slices that are cheaper than a gather with an index for each element."""


ROW_ELEMENTS = 16
"""Sides of matrices that the vector unit transposes; what moves single elements is slow."""


def on_rows(
    x: OnnxTensor, axis: int, change: Callable[[OnnxTensor, int], OnnxTensor]
) -> OnnxTensor:
    """`change(x, axis)`, with a last axis moved to the front meanwhile: rows move, not elements."""
    size = x.shape[axis]
    sides = min(size, x.count // max(1, size))
    if math.prod(x.shape[axis + 1 :]) > 1 or sides < ROW_ELEMENTS:
        return change(x, axis)
    return move_axis(change(move_axis(x, axis, 0), 0), 0, axis)


def take_range(x: OnnxTensor, axis: int, chosen: range) -> OnnxTensor:
    """The elements of an axis at the numbers of a range, which may go backwards."""
    if not chosen:
        return cut_axis(x, axis, 0, 0)
    low, high = min(chosen), max(chosen)
    if len(chosen) == 1 or chosen.step == 1:
        return cut_axis(x, axis, low, high + 1)
    if chosen.step > 0:
        return on_rows(x, axis, lambda t, at: cut_axis(t, at, low, high + 1, chosen.step))
    return reverse(cut_axis(x, axis, low, high + 1, -chosen.step), [axis])


def take_known(x: OnnxTensor, indices: Array, axis: int) -> OnnxTensor:
    """The elements of an axis at known, non-negative indices."""
    times = repeats_of(indices)
    if times > 1:
        return repeat(take_known(x, indices[::times], axis), axis, times)
    runs = runs_of(indices.tolist())
    if len(runs) > MOST_RUNS:
        return take(x, constant(indices.astype(np.int32)), axis)
    if len(runs) == 1:
        return take_range(x, axis, runs[0])
    return on_rows(x, axis, lambda t, at: concat([take_range(t, at, run) for run in runs], at))


def repeats_of(indices: Array) -> int:
    """How often each index stands behind itself, at least, everywhere."""
    if indices.size < 2:
        return 1
    starts = np.flatnonzero(np.diff(indices, prepend=indices[0] - 1))
    return math.gcd(*starts.tolist(), indices.size)


def repeat(x: OnnxTensor, axis: int, times: int) -> OnnxTensor:
    """Each element of an axis `times` times behind itself."""

    def repeated(t: OnnxTensor, at: int) -> OnnxTensor:
        shape = [*t.shape[: at + 1], times, *t.shape[at + 1 :]]
        whole = [*t.shape[:at], t.shape[at] * times, *t.shape[at + 1 :]]
        return reshape(broadcast(expand_dims(t, [at + 1]), shape), whole)

    return on_rows(x, axis, repeated)


def runs_of(indices: Sequence[int]) -> list[range]:
    """The indices as ranges behind each other, each as long as it can be."""
    if not indices:
        return [range(0)]
    runs, first = [], 0
    while first < len(indices):
        end = first + 1
        step = indices[end] - indices[first] if end < len(indices) else 0
        while step and end < len(indices) and indices[end] - indices[end - 1] == step:
            end += 1
        if step < 0 and end < len(indices) and indices[end] - indices[end - 1] == 1:
            end -= 1  # it begins what goes forward, which then may be all of an axis
        start = indices[first]
        last = start + step * (end - first)
        runs.append(range(start, last, step) if end - first > 1 else range(start, start + 1))
        first = end
    return runs


def along(x: OnnxTensor, shape: Sequence[int], axis: int) -> OnnxTensor:
    """A vector along one axis of `shape`, repeated over the others."""
    return broadcast(x, shape, [axis])


def take_rows(table: OnnxTensor, rows: OnnxTensor) -> OnnxTensor:
    """[..shape of rows, ..behind the first dimension of the table]."""
    if rows.known is None:
        return take(table, rows, 0)
    taken = take_known(table, rows.known.reshape(-1), 0)
    return reshape(taken, [*rows.shape, *table.shape[1:]])


def row_numbers(places: Sequence[OnnxTensor], shape: Sequence[int]) -> OnnxTensor:
    """Places in several dimensions of these sizes as one number, row-major."""
    parts = [place * stride for place, stride in zip(places, row_major(shape), strict=True)]
    return functools.reduce(operator.add, parts)
