"""Blocks of an array that begin where indices say, which are known when the program runs.

`gather_blocks` reads n blocks of one shape, `update_blocks` overwrites them, `combine_blocks` adds
to them, multiplies them, or takes the greater or lesser numbers. Block i begins, along each
dimension of the array,

    dimension                begins at
    axes[c]                  indices[i, c]; with wrap[c] a negative one counts from the end
    one with batch[d] > 0    i / batch[d] mod the size of the dimension
    any other                starts[d]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from davinci.errors import require
from davinci.operators.call import Call
from davinci.operators.constraints import require_dims
from davinci.operators.core import Array, operator
from davinci.operators.parts import one_each
from davinci.operators.reduce import REDUCTIONS
from davinci.operators.windows import WindowDim, Windows, axes_of_result, in_order, whole
from davinci.operators.work import OperatorWork, partly_read

Positions = npt.NDArray[np.int64]

COMBINED_TYPES = ("f32", "i32", "i64")
"""Element types that `combine_blocks` computes in."""


def tuples_of_indices(call: Call) -> None:
    """The indices have shape [n, k] and are i32 or i64."""
    indices = call.inputs[-1]
    require(indices.rank == 2, "rank of the indices", indices.rank, 2)
    legal = indices.element in ("i32", "i64")
    require(legal, "element type of the indices", indices.element, "i32 or i64")


def a_dimension_each(call: Call) -> None:
    """`axes` are k distinct dimensions of the array; `wrap` is 0 or 1 for each."""
    array, columns = call.inputs[0], call.inputs[-1].shape[1]
    axes = call.array("axes")
    require_dims("axes", axes, array.rank)
    require(len(axes) == columns, "number of 'axes'", len(axes), f"{columns}, one a column")
    wrap = call.array("wrap")
    legal = len(wrap) == columns and set(wrap) <= {0, 1}
    require(legal, "'wrap'", wrap, f"{columns} numbers, 0 or 1")


def a_dimension_each_and_skip(call: Call) -> None:
    """`axes` are k distinct dimensions of the array; `wrap` is 0 or 1 for each, `skip` 0 or 1."""
    a_dimension_each(call)
    require(call.integer("skip") in (0, 1), "'skip'", call.integer("skip"), "0 or 1")


def blocks_inside(call: Call) -> None:
    """The blocks are no longer than the array, one or more elements long along every dimension, and
    lie inside it where no index says where they begin."""
    array, block = call.inputs[0], block_of(call)
    require(len(block) == array.rank, "rank of a block", len(block), array.rank)
    starts, batch, axes = call.array("starts"), call.array("batch"), call.array("axes")
    for d, (size, length) in enumerate(zip(array.shape, block, strict=True)):
        require(1 <= length <= size, f"length of a block along {d}", length, f"1 to {size}")
        require(batch[d] >= 0, f"'batch' of dimension {d}", batch[d], "0 or more")
        free = d not in axes and not batch[d]
        most = size - length if free else 0
        require(0 <= starts[d] <= most, f"'starts' of dimension {d}", starts[d], f"0 to {most}")


def one_line_each(call: Call) -> None:
    """Where there are several blocks, or some may be left out, they have length 1 along `axes` and
    batch dimensions, so that two of them are equal or have nothing in common."""
    if call.inputs[1].shape[0] > 1 or call.integer("skip"):
        one_line_of_each(call)


def one_line_of_each(call: Call) -> None:
    """The blocks have length 1 along `axes` and batch dimensions."""
    block = block_of(call)
    batched = [d for d, inner in enumerate(call.array("batch")) if inner]
    for d in (*call.array("axes"), *batched):
        require(block[d] == 1, f"length of the blocks along {d}", block[d], 1)


def block_of(call: Call) -> tuple[int, ...]:
    """The shape of a block."""
    gathered = call.outputs[0] if len(call.inputs) == 2 else call.inputs[1]
    return tuple(gathered.shape[1:])


def a_block_each(call: Call) -> None:
    """The result is [n, ..block] with the array's element type."""
    count = call.inputs[1].shape[0]
    call.expect_output((count, *call.outputs[0].shape[1:]), call.inputs[0].element)


def array_as_before(call: Call) -> None:
    """The result has the type of the array, the updates are [n, ..block] of its element type."""
    array, updates, indices = call.inputs
    call.expect_output(array.shape, array.element)
    call.same_element("the updates", updates.element, array.element)
    count = indices.shape[0]
    require(updates.shape[:1] == (count,), "number of updates", updates.shape[:1], count)


def known_combination(call: Call) -> None:
    """`by` is "add", "max", "min" or "mul", and the element type f32, i32 or i64."""
    element = call.inputs[0].element
    call.choice("by", tuple(REDUCTIONS))
    legal = element in COMBINED_TYPES
    require(legal, "element type of the array", element, ", ".join(COMBINED_TYPES))


def any_block(call: Call) -> Windows:
    """Any element of the array may be read."""
    array, indices = call.inputs
    rank = call.outputs[0].rank
    read = tuple(map(whole, array.shape))
    return Windows(
        axes_of_result(call), in_order(rank), (read, (WindowDim(0), whole(indices.shape[1])))
    )


def any_update(call: Call) -> Windows:
    """An element of the result is the array's at its place, or of any update."""
    dims = in_order(call.outputs[0].rank)
    others = (tuple(map(whole, x.shape)) for x in call.inputs[1:])
    return Windows(axes_of_result(call), dims, (dims, *others))


def written_only(call: Call) -> OperatorWork:
    """The work of an update in place: nothing of the array is read."""
    _, updates, indices = call.inputs
    read_bytes = updates.size_bytes + indices.size_bytes
    return OperatorWork(read_bytes=read_bytes, write_bytes=updates.size_bytes)


def positions(
    indices: Array,
    shape: Sequence[int],
    axes: Sequence[int],
    starts: Sequence[int],
    batch: Sequence[int],
    wrap: Sequence[int],
) -> Positions:
    """Where blocks begin, [n, rank], before anything is clamped or left out."""
    count = len(indices)
    found = np.tile(np.asarray(starts, np.int64), (count, 1))
    for column, axis in enumerate(axes):
        index = indices[:, column].astype(np.int64)
        found[:, axis] = np.where(wrap[column] & (index < 0), index + shape[axis], index)
    for d, inner in enumerate(batch):
        if inner:
            found[:, d] = np.arange(count) // inner % shape[d]
    return found


def placed(
    begins: Positions, updates: Array, shape: Sequence[int], skip: bool
) -> Iterator[tuple[tuple[slice, ...], Array]]:
    """The part of an array of `shape` that each update [..block] has the place of, in order; blocks
    that do not lie inside are left out with `skip`, else clamped."""
    block = updates.shape[1:]
    most = np.subtract(shape, block)
    for begin, update in zip(begins, updates, strict=True):
        if skip and ((begin < 0) | (begin > most)).any():
            continue
        first = np.clip(begin, 0, most)
        yield tuple(slice(b, b + n) for b, n in zip(first, block, strict=True)), update


@operator(
    windows=any_block,
    constraints=(
        tuples_of_indices,
        a_dimension_each,
        one_each("starts", "batch"),
        blocks_inside,
        a_block_each,
    ),
    work=partly_read,
)
def gather_blocks(
    array: Array,
    indices: Array,
    *,
    axes: Sequence[int],
    starts: Sequence[int],
    batch: Sequence[int],
    wrap: Sequence[int],
    result: Any,
) -> Any:
    """Blocks of an array that begin at tuples of indices [n, k], clamped so that they lie inside:
    [n, ..block]."""
    block = result.shape[1:]
    begins = positions(indices, array.shape, axes, starts, batch, wrap)
    begins = np.clip(begins, 0, np.subtract(array.shape, block))
    found = [
        array[tuple(slice(b, b + n) for b, n in zip(begin, block, strict=True))] for begin in begins
    ]
    return np.stack(found) if found else np.zeros(result.shape, array.dtype)


@operator(
    windows=any_update,
    constraints=(
        tuples_of_indices,
        a_dimension_each_and_skip,
        one_each("starts", "batch"),
        blocks_inside,
        one_line_each,
        array_as_before,
    ),
    work=written_only,
    overwrites=True,
)
def update_blocks(
    array: Array,
    updates: Array,
    indices: Array,
    *,
    axes: Sequence[int],
    starts: Sequence[int],
    batch: Sequence[int],
    wrap: Sequence[int],
    skip: int,
) -> Any:
    """An array with updates [n, ..block] in place of its blocks that begin at tuples of indices
    [n, k], in order. Blocks that do not lie inside are left out with `skip`, else clamped. Its
    kernel writes the updates into the array's buffer, which is the result's too."""
    written = array.copy()
    begins = positions(indices, array.shape, axes, starts, batch, wrap)
    for place, update in placed(begins, updates, array.shape, bool(skip)):
        written[place] = update
    return written


@operator(
    windows=any_update,
    constraints=(
        tuples_of_indices,
        a_dimension_each,
        one_each("starts", "batch"),
        blocks_inside,
        one_line_of_each,
        array_as_before,
        known_combination,
    ),
    work=written_only,
    overwrites=True,
)
def combine_blocks(
    array: Array,
    updates: Array,
    indices: Array,
    *,
    axes: Sequence[int],
    starts: Sequence[int],
    batch: Sequence[int],
    wrap: Sequence[int],
    by: str,
) -> Any:
    """An array whose blocks that begin at tuples of indices [n, k] are combined with updates
    [n, ..block], `by` addition ("add"), multiplication ("mul"), "max" or "min"; blocks that do not
    lie inside are left out. In which order the updates of one element are added is not said. Its
    kernel changes the array's buffer, which is the result's too."""
    combined = array.copy()
    begins = positions(indices, array.shape, axes, starts, batch, wrap)
    with np.errstate(all="ignore"):
        for place, update in placed(begins, updates, array.shape, skip=True):
            combined[place] = REDUCTIONS[by].combine(combined[place], update)
    return combined
