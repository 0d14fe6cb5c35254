"""Operators that read or write elements at indices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.tensor import BadNode, OnnxTensor, broadcast, constant, convert

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall

Combine = Callable[[OnnxTensor, OnnxTensor], OnnxTensor]

REDUCTIONS: dict[str, Combine] = {
    "none": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "max": ops.maximum,
    "min": ops.minimum,
}


FEW = 16
"""Indices along an axis up to which each is compared with all places at once, on the vector unit;
more of them are sorted or scattered one by one, on the scalar unit."""


@operator("Gather")
def lower_gather(node: NodeCall) -> OnnxTensor:
    x, indices = node.take(0), node.take(1)
    axis = ops.axis_of(node.attr("axis"), x.rank)
    # As they are: the kernel that reads them wraps them.
    chosen = ops.wrap_indices(indices, x.shape[axis], indices.dtype)
    if chosen.known is None:
        return ops.take(x, chosen, axis)
    check_indices(chosen, x.shape[axis])
    taken = ops.take_known(x, chosen.known.reshape(-1), axis)
    return ops.reshape(taken, [*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]])


def check_indices(indices: OnnxTensor, size: int) -> None:
    """Known indices, counted from the front, must lie within a dimension."""
    found = indices.known
    if found is not None and found.size and (found.min() < 0 or found.max() >= size):
        raise BadNode("an index is out of range", f"{-size} to {size - 1}")


@operator("GatherElements")
def lower_gather_elements(node: NodeCall) -> OnnxTensor:
    x, indices = node.take(0), node.take(1)
    axis = ops.axis_of(node.attr("axis"), x.rank)
    if indices.known is None and x.rank == indices.rank:
        alike = [n == m for n, m in zip(x.shape, indices.shape, strict=True)]
        if all(alike[:axis] + alike[axis + 1 :]):
            return ops.take_along(x, ops.wrap_indices(indices, x.shape[axis], indices.dtype), axis)
    rows = element_numbers(x, indices, axis)
    return ops.reshape(ops.take_rows(ops.reshape(x, [x.count]), rows), indices.shape)


def element_numbers(x: OnnxTensor, indices: OnnxTensor, axis: int) -> OnnxTensor:
    """The number in `x` of the element with the place of an index, but along `axis` the index.

    Returns:
        One number for each index, as a vector.
    """
    if x.rank != indices.rank:
        raise BadNode(f"indices of rank {indices.rank} into a tensor of rank {x.rank}")
    chosen = ops.wrap_indices(indices, x.shape[axis])
    check_indices(chosen, x.shape[axis])
    if chosen.known is not None:
        known = list(np.indices(indices.shape))
        known[axis] = chosen.known
        return flat_numbers(known, x.shape)
    places = [
        convert(chosen, np.int32) if i == axis else ops.iota(np.int32, indices.shape, i)
        for i in range(x.rank)
    ]
    return ops.reshape(ops.row_numbers(places, x.shape), [indices.count])


@operator("GatherND")
def lower_gather_nd(node: NodeCall) -> OnnxTensor:
    """Rows at tuples of indices, which are the last dimension; batch dimensions go together."""
    x, indices, batch = node.take(0), node.take(1), node.attr("batch_dims") or 0
    depth = indices.shape[-1]
    rows = tuple_numbers(x, indices, batch)
    behind = x.shape[batch + depth :]
    table = ops.reshape(x, [math.prod(x.shape[: batch + depth]), *behind])
    return ops.reshape(ops.take_rows(table, rows), [*indices.shape[:-1], *behind])


def tuple_numbers(x: OnnxTensor, indices: OnnxTensor, batch: int = 0) -> OnnxTensor:
    """Tuples of indices into the dimensions of `x` behind `batch` ones, as numbers of rows."""
    depth, outer = indices.shape[-1], indices.shape[:-1]
    if batch + depth > x.rank or x.shape[:batch] != indices.shape[:batch]:
        raise BadNode(f"tuples {list(indices.shape)} do not index {list(x.shape)}")
    if batch + depth == 0:
        return constant(np.zeros(math.prod(outer), np.int32))
    columns = [
        ops.wrap_indices(column, size)
        for column, size in zip(last_unstacked(indices), x.shape[batch:], strict=False)
    ]
    for column, size in zip(columns, x.shape[batch:], strict=False):
        check_indices(column, size)
    if indices.known is not None:
        known = [*np.indices(outer)[:batch], *(column.known for column in columns)]
        return flat_numbers(known, x.shape[: batch + depth])
    places = [ops.iota(np.int32, outer, i) for i in range(batch)]
    places += [convert(column, np.int32) for column in columns]
    return ops.reshape(ops.row_numbers(places, x.shape[: batch + depth]), [math.prod(outer)])


def last_unstacked(x: OnnxTensor) -> list[OnnxTensor]:
    """The slices of the last dimension, known if `x` is."""
    if x.known is not None:
        return [constant(x.known[..., i]) for i in range(x.shape[-1])]
    return ops.unstack(x, -1)


def flat_numbers(places: Sequence[Any], shape: Sequence[int]) -> OnnxTensor:
    """Known places in several dimensions as numbers of rows, a vector."""
    if not math.prod(shape):
        return constant(np.zeros(0, np.int32))
    numbers = np.ravel_multi_index(tuple(places), tuple(shape))
    return constant(np.asarray(numbers, np.int32).reshape(-1))


@operator("ScatterElements", "Scatter")
def lower_scatter_elements(node: NodeCall) -> OnnxTensor:
    x, indices, updates = node.take(0), node.take(1), node.take(2)
    axis = ops.axis_of(node.attr("axis"), x.rank)
    if indices.known is None and indices.rank == x.rank and indices.shape[axis] <= FEW:
        others = [i for i in range(x.rank) if i != axis]
        if all(indices.shape[i] == x.shape[i] for i in others):
            return scatter_few(x, indices, updates, axis, reduction(node))
    rows = element_numbers(x, indices, axis)
    flat, new = ops.reshape(x, [x.count]), ops.reshape(updates, [updates.count])
    return ops.reshape(scatter_rows(flat, rows, new, reduction(node)), x.shape)


def scatter_few(
    x: OnnxTensor, indices: OnnxTensor, updates: OnnxTensor, axis: int, combine: Combine
) -> OnnxTensor:
    """`x` with updates combined into the places along `axis` that the indices of a line name."""
    chosen = ops.wrap_indices(indices, x.shape[axis])
    places = ops.iota(chosen.dtype, x.shape, axis)
    for i in range(indices.shape[axis]):
        place, new = (ops.cut_axis(t, axis, i, i + 1) for t in (chosen, updates))
        hit = ops.compare("EQ", places, broadcast(place, x.shape))
        x = ops.where(hit, combine(x, broadcast(new, x.shape)), x)
    return x


@operator("ScatterND")
def lower_scatter_nd(node: NodeCall) -> OnnxTensor:
    x, indices, updates = node.take(0), node.take(1), node.take(2)
    depth = indices.shape[-1]
    if indices.known is None and depth and reduction(node) is REDUCTIONS["none"]:
        return scatter_blocks(x, indices, updates)
    box = box_of(indices, x.shape) if reduction(node) is REDUCTIONS["none"] else None
    if box is not None:
        starts, sizes = box
        block = [*sizes, *x.shape[depth:]]
        whole = [*starts, *[0] * (x.rank - depth)]
        return ops.update_slice(x, ops.reshape(updates, block), whole)
    rows = tuple_numbers(x, indices)
    behind = x.shape[depth:]
    table = ops.reshape(x, [math.prod(x.shape[:depth]), *behind])
    new = ops.reshape(updates, [rows.count, *behind])
    return ops.reshape(scatter_rows(table, rows, new, reduction(node)), x.shape)


def box_of(indices: OnnxTensor, shape: Sequence[int]) -> tuple[list[int], list[int]] | None:
    """Where a box begins and how large it is whose places known tuples name in order, as those of a
    cache that a step writes; None if they are no box, or one of several dimensions' parts."""
    depth = indices.shape[-1]
    if indices.known is None or not 0 < depth <= len(shape) or not indices.count:
        return None
    tuples = indices.known.reshape(-1, depth)
    tuples = np.where(tuples < 0, tuples + np.array(shape[:depth]), tuples)
    first, sizes = tuples[0], tuples[-1] - tuples[0] + 1
    inside = first.min() >= 0 and (tuples[-1] < shape[:depth]).all()
    if not inside or sizes.min() < 1 or np.prod(sizes) != len(tuples):
        return None
    if (sizes < shape[:depth]).sum() > 1:
        return None
    ordered = np.indices(sizes).reshape(depth, -1).T + first
    return (first.tolist(), sizes.tolist()) if np.array_equal(ordered, tuples) else None


def scatter_blocks(x: OnnxTensor, indices: OnnxTensor, updates: OnnxTensor) -> OnnxTensor:
    """`x` with updates [.., rest] in place of what tuples of indices [.., depth] name, in order."""
    depth, outer = indices.shape[-1], indices.rank - 1
    if depth > x.rank or updates.shape != indices.shape[:-1] + x.shape[depth:]:
        raise BadNode(f"tuples {list(indices.shape)} do not index {list(x.shape)}")
    if not updates.count:
        return x
    sizes = constant(np.array(x.shape[:depth], indices.dtype))
    from_end = indices + broadcast(sizes, indices.shape)
    chosen = ops.where(ops.compare("LT", indices, 0), from_end, indices)
    numbers = (
        f"update_window_dims = {list(range(outer, updates.rank))}, "
        f"inserted_window_dims = {list(range(depth))}, "
        f"scatter_dims_to_operand_dims = {list(range(depth))}, index_vector_dim = {outer}"
    )
    return ops.scatter(x, chosen, updates, numbers, REDUCTIONS["none"])


def reduction(node: NodeCall) -> Combine:
    name = node.attr("reduction") or "none"
    if name not in REDUCTIONS:
        node.refuse(f"reduction {name!r} is not supported", ", ".join(REDUCTIONS))
    return REDUCTIONS[name]


def scatter_rows(
    table: OnnxTensor, rows: OnnxTensor, updates: OnnxTensor, combine: Combine
) -> OnnxTensor:
    """`table` with `updates` [n, ..] combined into its rows at `rows` [n], in order."""
    if not updates.count:
        return table
    if rows.known is not None and combine is REDUCTIONS["none"]:
        source = np.arange(table.shape[0])
        source[rows.known] = table.shape[0] + np.arange(rows.count)
        return ops.take_known(ops.concat([table, updates], 0), source, 0)
    numbers = (
        f"update_window_dims = {list(range(1, updates.rank))}, inserted_window_dims = [0], "
        "scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
    )
    return ops.scatter(table, rows, updates, numbers, combine)


@operator("TensorScatter")
def lower_tensor_scatter(node: NodeCall) -> OnnxTensor:
    """A cache [batch, .., steps, ..] with new steps written from an index of each batch on."""
    cache, new, first = node.take(0), node.take(1), node.optional(2)
    mode = node.attr("mode")
    axis = ops.axis_of(node.attr("axis"), cache.rank)
    size, count = cache.shape[axis], new.shape[axis]
    shape = (cache.shape[0], count)
    step = ops.iota(np.int32, shape, 1)
    if first is not None:
        step = step + broadcast(convert(first, np.int32), shape, [0])
    if mode == "circular":
        step = ops.remainder(step, size)
    front = [i for i in range(cache.rank) if i not in (0, axis)]
    order = [0, axis, *front]
    moved, update = ops.transpose(cache, order), ops.transpose(new, order)
    rows = ops.reshape(ops.iota(np.int32, shape, 0) * size + step, [shape[0] * count])
    table = ops.reshape(moved, [shape[0] * size, *moved.shape[2:]])
    updates = ops.reshape(update, [shape[0] * count, *moved.shape[2:]])
    written = ops.reshape(scatter_rows(table, rows, updates, REDUCTIONS["none"]), moved.shape)
    return ops.transpose(written, np.argsort(order).tolist())


@operator("TopK")
def lower_top_k(node: NodeCall) -> tuple[OnnxTensor, OnnxTensor]:
    """Lowers TopK: of equal elements the first comes first, and results are sorted also where they
    need not be."""
    node.ignore("sorted")
    x = node.take(0)
    axis = ops.axis_of(node.attr("axis"), x.rank)
    count = (node.integers("k", 1) or [0])[0]
    if not 0 <= count <= x.shape[axis]:
        raise BadNode(f"{count} of {x.shape[axis]} elements")
    largest = bool(node.attr("largest", 1))
    direction = "GT" if largest else "LT"
    number = ops.iota(np.int32, x.shape, axis)
    values, order = ops.sort(
        [x, number], axis, lambda a, b, i, j: ops.compare(direction, a, b), stable=True
    )
    kept = [ops.cut_axis(t, axis, 0, count) for t in (values, order)]
    return kept[0], convert(kept[1], np.int64)
