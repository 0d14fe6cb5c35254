"""Operators that put elements in other places."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from davinci.element_types import dtype_of
from davinci.errors import require
from davinci.operators.call import Call
from davinci.operators.constraints import require_dims, require_length, same_types
from davinci.operators.core import NONE, Array, operator
from davinci.operators.layouts import (
    any_layout,
    is_view,
    one_layout,
    rows_or_that_of_result,
    view_in_layout,
)
from davinci.operators.tensors import Tensor
from davinci.operators.windows import (
    WindowAxis,
    WindowDim,
    Windows,
    along,
    axes_of_result,
    in_order,
    same_place,
    whole,
)


def same_elements(call: Call) -> None:
    """Element types are equal."""
    call.same_element("the result", call.outputs[0].element, call.inputs[0].element)


@operator(windows=same_place, constraints=(same_types,), layouts=one_layout)
def copy(a: Array) -> Array:
    """The operand as it is; bufferization makes it."""
    return a


def dims_of_operand(call: Call) -> None:
    """`dims` has an entry for each dimension of the operand."""
    require_length("dims", call.array("dims"), call.inputs[0])


def dims_of_result(call: Call) -> None:
    """They are distinct dimensions of the result."""
    require_dims("dims", call.array("dims"), call.outputs[0].rank)


def sizes_or_one(call: Call) -> None:
    """Sizes are equal, or 1 in the operand."""
    (operand,), (result,) = call.inputs, call.outputs
    for size, dim in zip(operand.shape, call.array("dims"), strict=True):
        role = f"size of dimension {dim} of the result"
        require(size in (1, result.shape[dim]), role, result.shape[dim], f"{size}, the operand's")


def repeated(call: Call) -> Windows:
    """What repeats stays where it is."""
    (operand,), (result,) = call.inputs, call.outputs
    dims = call.array("dims")
    read = [along(d, n, result.shape[d]) for n, d in zip(operand.shape, dims, strict=True)]
    return Windows(axes_of_result(call), in_order(result.rank), (tuple(read),))


@operator(
    windows=repeated,
    constraints=(dims_of_operand, dims_of_result, sizes_or_one, same_elements),
    layouts=rows_or_that_of_result,
)
def broadcast(a: Array, *, dims: Sequence[int], result: Tensor) -> Array:
    """Operand dimension i becomes result dimension dims[i]; the others repeat."""
    order = np.argsort(dims, kind="stable")
    spread = [1] * result.rank
    for i, dim in enumerate(dims):
        spread[dim] = a.shape[i]
    return np.broadcast_to(a.transpose(order).reshape(spread), result.shape)


def same_count(call: Call) -> None:
    """Operand and result have the same number of elements."""
    (operand,), (result,) = call.inputs, call.outputs
    require(operand.count == result.count, "number of elements", result.count, operand.count)


def regrouped(call: Call) -> Windows:
    """Axes are what dimensions of operand and result are made of, as far as they divide."""
    axes: list[WindowAxis] = []
    read: list[WindowDim] = []
    written: list[WindowDim] = []
    for sources, results in runs(call.inputs[0].shape, call.outputs[0].shape):
        factors = common_factors(sources, results)
        first = len(axes)
        axes += map(WindowAxis, results if factors is None else factors)
        if factors is None:
            read += map(whole, sources)
            written += (WindowDim(first + i) for i in range(len(results)))
        else:
            read += grouped(sources, factors, first)
            written += grouped(results, factors, first)
    return Windows(tuple(axes), tuple(written), (tuple(read),))


Sizes = tuple[int, ...]


def runs(sources: Sizes, results: Sizes) -> Iterator[tuple[Sizes, Sizes]]:
    """The shortest runs of dimensions, of operand and result, of equally many elements."""
    if 0 in sources:
        yield sources, results
        return
    i = j = 0
    while i < len(sources) or j < len(results):
        first_i, first_j = i, j
        a, i = (sources[i], i + 1) if i < len(sources) else (1, i)
        b, j = (results[j], j + 1) if j < len(results) else (1, j)
        while a != b:
            if a < b:
                a, i = a * sources[i], i + 1
            else:
                b, j = b * results[j], j + 1
        yield sources[first_i:i], results[first_j:j]


def common_factors(sources: Sizes, results: Sizes) -> Sizes | None:
    """Sizes, outermost first, of which both rows of dimensions are products; None if none are."""
    if 0 in sources:
        return None
    ends = {math.prod(row[i:]) for row in (sources, results) for i in range(len(row) + 1)}
    ordered = sorted(ends, reverse=True)
    if any(a % b for a, b in pairwise(ordered)):
        return None
    return tuple(a // b for a, b in pairwise(ordered))


def grouped(sizes: Sizes, factors: Sizes, first: int) -> Iterator[WindowDim]:
    """Dimensions of these sizes that follow the axes `first`, `first` + 1, ... of the factors."""
    axis = 0
    for size in sizes:
        dims: list[WindowDim] = []
        while size > 1:
            size //= factors[axis]
            dims.append(WindowDim(first + axis, size))
            axis += 1
        yield nested(dims)


def nested(dims: Sequence[WindowDim]) -> WindowDim:
    """A dimension whose place is the sum of those of others."""
    found: WindowDim | None = None
    for dim in reversed(dims):
        found = WindowDim(dim.axis, dim.stride, inner=found)
    return found or WindowDim(None)


@operator(
    windows=regrouped,
    constraints=(same_count, same_elements),
    unit=NONE,
    layouts=view_in_layout,
)
def reshape(a: Array, *, result: Tensor) -> Array:
    """Row-major order in another shape."""
    return a.reshape(result.shape)


def each_dimension_once(call: Call) -> None:
    """`permutation` has each dimension of the operand once."""
    permutation = call.array("permutation")
    require_length("permutation", permutation, call.inputs[0])
    require_dims("permutation", permutation, call.inputs[0].rank)


def permuted_shape(call: Call) -> None:
    """The result has the permuted shape and the operand's element type."""
    (operand,) = call.inputs
    call.expect_output([operand.shape[p] for p in call.array("permutation")], operand.element)


def permuted(call: Call) -> Windows:
    rank = call.inputs[0].rank
    place = {p: i for i, p in enumerate(call.array("permutation"))}
    read = tuple(WindowDim(place[d]) for d in range(rank))
    return Windows(axes_of_result(call), in_order(rank), (read,))


@operator(windows=permuted, constraints=(each_dimension_once, permuted_shape))
def transpose(a: Array, *, permutation: Sequence[int]) -> Any:
    """Result dimension i is operand dimension permutation[i]."""
    return a.transpose(permutation)


def regrouped_elements(call: Call) -> None:
    """`shape` has as many elements as the operand, and so has the result, of the same type."""
    (operand,), shape = call.inputs, call.array("shape")
    require(math.prod(shape) == operand.count, "elements of 'shape'", shape, operand.count)
    same_count(call)
    same_elements(call)


def dims_of_shape_once(call: Call) -> None:
    """`permutation` has each dimension of `shape` once."""
    permutation, rank = call.array("permutation"), len(call.array("shape"))
    require(len(permutation) == rank, "number of 'permutation'", permutation, rank)
    require_dims("permutation", permutation, rank)


def bytes_stay(call: Call) -> None:
    """Raises unless the result is a view of the operand, whose bytes stay where they are."""
    (operand,), (result,) = call.inputs, call.outputs
    stays = is_view(operand, result, call.array("shape"), call.array("permutation"))
    require(stays, "not a view", result, "the operand's bytes")


def anywhere(call: Call) -> Windows:
    """Any of the operand may be read: what is read where follows from `shape`, not from sizes."""
    return Windows(axes_of_result(call), in_order(call.outputs[0].rank), (None,))


def another_type(call: Call) -> None:
    """The result has the operand's shape, and elements of another type of the same size."""
    (operand,), (result,) = call.inputs, call.outputs
    call.expect_output(operand.shape, result.element)
    role = "bytes of an element of the result"
    require(result.bytes_each == operand.bytes_each, role, result.bytes_each, operand.bytes_each)


@operator(windows=same_place, constraints=(another_type,), unit=NONE)
def reinterpret(a: Array, *, result: Tensor) -> Any:
    """The bytes of the operand as elements of another type."""
    return a.view(dtype_of(result.element))


@operator(
    windows=anywhere,
    constraints=(regrouped_elements, dims_of_shape_once, bytes_stay),
    unit=NONE,
    layouts=any_layout,
)
def view(a: Array, *, shape: Sequence[int], permutation: Sequence[int], result: Tensor) -> Any:
    """The bytes of the operand as another tensor: reshaped to `shape`, transposed, reshaped."""
    return a.reshape(shape).transpose(permutation).reshape(result.shape)
