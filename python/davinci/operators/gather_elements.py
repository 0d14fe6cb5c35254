"""Elements of rows by their places, which are computed."""

from __future__ import annotations

from typing import Any

from davinci.errors import require
from davinci.operators.call import Call
from davinci.operators.core import Array, operator
from davinci.operators.windows import WindowDim, Windows, axes_of_result, in_order, whole
from davinci.operators.work import partly_read


def as_many_rows(call: Call) -> None:
    """Table and places have rank 2 and as many rows; rows of the table are not empty."""
    table, places = call.inputs
    require(table.rank == 2, "rank of the table", table.rank, 2)
    require(places.rank == 2, "rank of the places", places.rank, 2)
    require(table.shape[0] == places.shape[0], "rows", table.shape[0], str(places.shape[0]))
    require(table.shape[1] > 0, "elements of a row of the table", 0, "at least 1")


def numbers_of_elements(call: Call) -> None:
    """The places are i32."""
    found = call.inputs[1].element
    require(found == "i32", "element type of the places", found, "i32")


def an_element_each(call: Call) -> None:
    """The result has the shape of the places and the table's element type."""
    table, places = call.inputs
    call.expect_output(places.shape, table.element)


def any_of_row(call: Call) -> Windows:
    """Any element of the table's row may be read, and the place of the result's element."""
    table, places = call.inputs
    read = (WindowDim(0), whole(table.shape[1])), in_order(places.rank)
    return Windows(axes_of_result(call), in_order(places.rank), read)


@operator(
    windows=any_of_row,
    constraints=(as_many_rows, numbers_of_elements, an_element_each),
    work=partly_read,
)
def gather_elements(table: Array, places: Array) -> Any:
    """Elements of a table [r, v] at places [r, n]: [r, n]. A place is the number of an element
    among all of the table, row by row, and lies in its own row: those of row i are v i and up,
    below v (i + 1)."""
    return table.reshape(-1)[places]
