"""Sums, extrema, norms and places of extrema over some axes; running sums and products."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.tensor import OnnxTensor, binary, convert

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall

Reduction = Callable[[OnnxTensor, list[int]], OnnxTensor]
"""Reduces a tensor over axes, which stay as dimensions of size 1."""


def total(x: OnnxTensor, axes: list[int]) -> OnnxTensor:
    return ops.reduce("add", x, axes, keepdims=True)


def largest(x: OnnxTensor, axes: list[int]) -> OnnxTensor:
    return ops.reduce("or" if x.dtype == np.bool_ else "maximum", x, axes, keepdims=True)


def least(x: OnnxTensor, axes: list[int]) -> OnnxTensor:
    return ops.reduce("and" if x.dtype == np.bool_ else "minimum", x, axes, keepdims=True)


def average(x: OnnxTensor, axes: list[int]) -> OnnxTensor:
    """The mean over axes: rounded towards zero for integers; over no elements NaN, or 0 for
    integers."""
    if x.is_float:
        return ops.mean(x, axes, keepdims=True)
    return total(x, axes) / max(1, math.prod(x.shape[i] for i in axes))


def log_sum_exp(x: OnnxTensor, axes: list[int]) -> OnnxTensor:
    """No exponential overflows: the largest element is taken out, unless it is infinite."""
    peak = largest(x, axes)
    peak = ops.where(ops.compare("LT", ops.absolute(peak), np.inf), peak, 0)
    return peak + ops.log(total(ops.exp(x - peak), axes))


REDUCTIONS: dict[str, Reduction] = {
    "ReduceSum": total,
    "ReduceMean": average,
    "ReduceMax": largest,
    "ReduceMin": least,
    "ReduceProd": lambda x, axes: ops.reduce("multiply", x, axes, keepdims=True),
    "ReduceL1": lambda x, axes: total(ops.absolute(x), axes),
    "ReduceL2": lambda x, axes: ops.sqrt(total(x * x, axes)),
    "ReduceLogSum": lambda x, axes: ops.log(total(x, axes)),
    "ReduceLogSumExp": log_sum_exp,
    "ReduceSumSquare": lambda x, axes: total(x * x, axes),
}

OF_FLOATS = frozenset({"ReduceL2", "ReduceLogSum", "ReduceLogSumExp"})
"""Integers are computed as f32 and rounded towards zero."""


def reduced_axes(node: NodeCall, x: OnnxTensor) -> list[int]:
    """Axes of a reduction: an attribute, an input in newer operator sets, or all."""
    axes, stay = node.integers("axes", 1), node.attr("noop_with_empty_axes")
    return ops.axes_of(axes, x.rank) if axes else [] if stay else list(range(x.rank))


@operator(*REDUCTIONS)
def lower_reduce(node: NodeCall) -> OnnxTensor:
    x, reduce = node.take(0), REDUCTIONS[node.op_type]
    axes, keepdims = reduced_axes(node, x), node.attr("keepdims")
    if x.is_integer and node.op_type in OF_FLOATS:
        found = convert(reduce(convert(x, np.float32), axes), x.dtype)
    else:
        found = reduce(x, axes)
    return found if keepdims else ops.squeeze(found, axes)


PAIRED = tuple(map(np.dtype, (np.float16, np.float32, np.int32)))
"""Types of which values and places are reduced in pairs."""


def place_of(name: str, x: OnnxTensor, axis: int, last: bool = False) -> OnnxTensor:
    """The int32 index along `axis`, kept as a dimension, of the first or last extremum or NaN.

    Args:
        name: `maximum` or `minimum`.
    """
    size = x.shape[axis]
    if x.dtype in PAIRED and size and not last:
        return ops.expand_dims(ops.extreme_place(name, x, axis), [axis])
    hits = ops.compare("EQ", x, ops.reduce(name, x, [axis], keepdims=True))
    hits = hits | ops.is_nan(x) if x.is_float else hits
    places = ops.iota(np.int32, x.shape, axis)
    if last:
        return ops.reduce("maximum", ops.where(hits, places, -1), [axis], keepdims=True)
    return ops.reduce("minimum", ops.where(hits, places, size), [axis], keepdims=True)


@operator("ArgMax", "ArgMin")
def lower_place(node: NodeCall) -> OnnxTensor:
    x, name = node.take(0), "maximum" if node.op_type == "ArgMax" else "minimum"
    axis = ops.axis_of(node.attr("axis"), max(1, x.rank))
    last, keepdims = bool(node.attr("select_last_index")), node.attr("keepdims")
    if not x.rank:
        return ops.full((), np.int64, 0)
    if not x.shape[axis]:
        node.refuse("the largest of no elements", "a dimension that is not empty")
    found = convert(place_of(name, x, axis, last), np.int64)
    return found if keepdims else ops.squeeze(found, [axis])


RUNNING = {"CumSum": ("add", 0), "CumProd": ("multiply", 1)}


@operator(*RUNNING)
def lower_running(node: NodeCall) -> OnnxTensor:
    """Doubles how many elements each result covers: log2(n) operations on the whole tensor."""
    name, neutral = RUNNING[node.op_type]
    x, axes = node.take(0), node.known(1)
    backwards, exclusive = bool(node.attr("reverse")), node.attr("exclusive")
    if axes is None or axes.size != 1:
        node.refuse("an axis of another size than 1")
    axis = ops.axis_of(int(axes.item()), x.rank)
    found = ops.shift(x, axis, -1 if backwards else 1, neutral) if exclusive else x
    covered = 1
    while covered < x.shape[axis]:
        distance = -covered if backwards else covered
        found = binary(name, found, ops.shift(found, axis, distance, neutral))
        covered *= 2
    return found
