"""Scores of which each row keeps the columns between two ends, as masks of attention leave them.

Ends are written as runs of rows, five numbers each: how many rows, the first column that the first
of them keeps and by how much that grows from row to row, and the same of the column behind the
last. Ends outside the columns are those of the columns, and a row whose ends meet keeps nothing:

    causal, 4096 rows            4096, 0, 0, 1, 1
    a window of 100 columns      4096, -99, 1, 1, 1
    blocks of 64 and 30 rows     64, 0, 0, 64, 0,   30, 64, 0, 94, 0
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from davinci.errors import require
from davinci.operators.call import Call
from davinci.operators.constraints import floats_only, same_types
from davinci.operators.core import Array, operator
from davinci.operators.layouts import one_layout
from davinci.operators.windows import Windows, axes_of_result, in_order, whole
from davinci.operators.work import computed

FIELDS = 5
"""Numbers of a run."""


def is_matrices(call: Call) -> None:
    """The operand has rank 2 or more."""
    require(call.inputs[0].rank >= 2, "rank of the operand", call.inputs[0].rank, "at least 2")


def runs_of_matrices(call: Call) -> None:
    """`runs` has five numbers a run, the first at least 1; the rows are those of one matrix or of
    several."""
    runs, rows = call.array("runs"), call.inputs[0].shape[-2]
    require(len(runs) % FIELDS == 0, "length of 'runs'", len(runs), f"a multiple of {FIELDS}")
    counts = runs[::FIELDS]
    require(all(count > 0 for count in counts), "rows of runs", counts, "at least 1 each")
    legal = rows > 0 and counts and sum(counts) % rows == 0
    require(bool(legal), "rows of all runs", sum(counts), f"a multiple of {rows}")


def some_each(call: Call) -> None:
    """`each` is at least 1: so many matrices in a row have the same ends."""
    found = call.attributes.get("each", 1)
    require(isinstance(found, int) and found > 0, "'each'", found, "an integer of at least 1")


def a_fill(call: Call) -> None:
    """`fill` is a number."""
    found = call.attributes.get("fill")
    require(isinstance(found, float | int), "'fill'", found, "a number")


def by_place(call: Call) -> Windows:
    """Windows of a band. Ends are those of rows as they are numbered in the whole, so that no part
    of the result is made apart."""
    shape = call.inputs[0].shape
    return Windows(axes_of_result(call), in_order(len(shape)), (tuple(map(whole, shape)),))


@operator(
    windows=by_place,
    constraints=(same_types, floats_only, is_matrices, runs_of_matrices, some_each, a_fill),
    types=frozenset({"f16", "f32"}),
    work=computed,
    layouts=one_layout,
)
def band(x: Array, *, runs: Sequence[int], fill: float, each: int = 1) -> Any:
    """Matrices whose rows keep the columns between two ends, `fill` elsewhere. Matrix i has the
    ends i // each, again from the first on behind the last."""
    *_, rows, columns = x.shape
    first, last = (end.reshape(-1, rows, 1) for end in ends_of(runs, columns))
    matrices = x.reshape(-1, rows, columns)
    which = np.arange(len(matrices)) // each % len(first)
    place = np.arange(columns)
    kept = (first <= place) & (place < last)
    found = np.where(kept[which], matrices, np.asarray(fill, x.dtype))
    return found.reshape(x.shape)


def ends_of(runs: Sequence[int], columns: int) -> tuple[Array, Array]:
    """The first column that each row keeps, and the one behind the last, both 0 of a row that
    keeps none.

    >>> ends_of([3, -1, 1, 1, 1], 3)
    (array([0, 0, 1]), array([1, 2, 3]))
    """
    parts: list[list[Array]] = [[], []]
    for run in range(0, len(runs), FIELDS):
        count, *numbers = runs[run : run + FIELDS]
        for part, start, step in zip(parts, numbers[::2], numbers[1::2], strict=True):
            part.append(np.clip(start + step * np.arange(count), 0, columns))
    first, last = (np.concatenate(part) for part in parts)
    some = first < last
    return first * some, last * some


def runs_of(first: Array, last: Array) -> list[int]:
    """Runs of rows with these ends.

    >>> runs_of(np.array([0, 0, 0, 1, 2]), np.array([1, 2, 3, 3, 3]))
    [3, 0, 0, 1, 1, 2, 1, 1, 3, 0]
    """
    return [number for run in _runs(first, last) for number in run]


def _runs(first: Array, last: Array) -> Iterator[tuple[int, ...]]:
    ends = np.stack([first, last], axis=1).astype(np.int64)
    steps = np.diff(ends, axis=0)
    changes = np.flatnonzero((steps[1:] != steps[:-1]).any(axis=1)) + 1
    row = 0
    while row < len(ends):
        # The step from one row to the next is that of the rows behind, up to where it changes.
        later = changes[np.searchsorted(changes, row + 1) :]
        end = int(later[0]) + 1 if later.size else len(ends)
        (a, b), (up_a, up_b) = ends[row], steps[row] if end - row > 1 else (0, 0)
        yield end - row, int(a), int(up_a), int(b), int(up_b)
        row = end
