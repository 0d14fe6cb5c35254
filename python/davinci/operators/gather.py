"""Rows of a table by indices that are computed."""

from __future__ import annotations

from typing import Any

import numpy as np

from davinci.errors import require
from davinci.operators.call import Call
from davinci.operators.core import Array, operator
from davinci.operators.windows import WindowDim, Windows, axes_of_result, in_order, whole
from davinci.operators.work import partly_read


def has_rows(call: Call) -> None:
    """The table has rank 1 or more, and a row if there is an index."""
    table, indices = call.inputs
    require(table.rank >= 1, "rank of the table", table.rank, "at least 1")
    require(table.shape[0] > 0 or indices.count == 0, "rows of the table", 0, "at least 1")


def list_of_indices(call: Call) -> None:
    """The indices have rank 1 and are i32 or i64."""
    indices = call.inputs[1]
    require(indices.rank == 1, "rank of the indices", indices.rank, 1)
    legal = indices.element in ("i32", "i64")
    require(legal, "element type of the indices", indices.element, "i32 or i64")


def a_row_each(call: Call) -> None:
    """The result is [n, ..] with the table's element type."""
    table, indices = call.inputs
    call.expect_output((*indices.shape, *table.shape[1:]), table.element)


def any_row(call: Call) -> Windows:
    """Windows of a gather: any row of the table may be read, and of it the columns of the result's
    part."""
    rank = call.outputs[0].rank
    rows = (whole(call.inputs[0].shape[0]), *(WindowDim(i) for i in range(1, rank)))
    return Windows(axes_of_result(call), in_order(rank), (rows, (WindowDim(0),)))


def wraps_or_not(call: Call) -> None:
    """`wrap` is 0 or 1."""
    found = call.attributes.get("wrap", 0)
    require(found in (0, 1), "'wrap'", found, "0 or 1")


@operator(
    windows=any_row,
    constraints=(has_rows, list_of_indices, a_row_each, wraps_or_not),
    work=partly_read,
)
def gather(table: Array, indices: Array, *, wrap: int = 0) -> Any:
    """Rows of a table [v, ..] by indices [n], which are clamped to the table: [n, ..]. With `wrap`
    negative indices count from the end first."""
    return table[rows_of(indices, len(table), wrap)]


def rows_of(indices: Array, count: int, wrap: int) -> Array:
    """The rows of a table of `count` that indices name."""
    wrapped = np.where(wrap & (indices < 0), indices + count, indices)
    return np.clip(wrapped, 0, count - 1).astype(np.int64)
