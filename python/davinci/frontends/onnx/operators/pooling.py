"""Pooling: one number for each window, or for each channel."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.operators.indexing import REDUCTIONS, scatter_rows
from davinci.frontends.onnx.tensor import Array, OnnxTensor, constant, convert
from davinci.frontends.onnx.windows import SpatialWindows, fold, padded, shifted, windows_of

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall


@operator("MaxPool")
def lower_max_pool(node: NodeCall) -> OnnxTensor | tuple[OnnxTensor, OnnxTensor]:
    x, windows, columns = (
        node.take(0),
        windows_of(node, node.take(0)),
        node.attr("storage_order", 0),
    )
    if not node.wants(1):
        return fold(x, windows, "maximum")
    return largest_and_number(x, windows, bool(columns))


def largest_and_number(
    x: OnnxTensor, windows: SpatialWindows, columns: bool
) -> tuple[OnnxTensor, OnnxTensor]:
    """The largest elements, and the number of each (of equal ones the first) in the whole tensor.

    Args:
        columns: count the first spatial dimension fastest, not the last.
    """
    values = padded(x, windows, ops.lowest(x.dtype))
    numbers = padded(element_numbers(x.shape, columns), windows, OUTSIDE)
    for i in reversed(range(windows.rank)):
        pairs = zip(
            shifted(values, i + 2, windows, i), shifted(numbers, i + 2, windows, i), strict=True
        )
        values, numbers = functools.reduce(larger, pairs)
    return values, convert(numbers, np.int64)


Numbered = tuple[OnnxTensor, OnnxTensor]
"""Elements and their numbers."""


def larger(best: Numbered, other: Numbered) -> Numbered:
    """The larger of two elements, the first of equal ones; nothing outside if one is inside."""
    outside = ops.compare("EQ", best[1], OUTSIDE) & ops.compare("NE", other[1], OUTSIDE)
    better = ops.compare("GT", other[0], best[0]) | outside
    return ops.where(better, other[0], best[0]), ops.where(better, other[1], best[1])


OUTSIDE = -1
"""The number of what stands in the padding."""


def element_numbers(shape: tuple[int, ...], columns: bool) -> OnnxTensor:
    """The number of each element: [N, C, ..]."""
    if not columns:
        return ops.reshape(ops.iota(np.int32, [math.prod(shape)], 0), shape)
    planes, spatial = math.prod(shape[:2]), shape[2:]
    within = np.arange(math.prod(spatial), dtype=np.int32).reshape(spatial, order="F")
    first = np.arange(planes, dtype=np.int32) * within.size
    return constant((first.reshape(*shape[:2], *[1] * len(spatial)) + within).reshape(shape))


@operator("AveragePool")
def lower_average_pool(node: NodeCall) -> OnnxTensor:
    return average_pool(node, node.take(0))


def average_pool(node: NodeCall, x: OnnxTensor) -> OnnxTensor:
    """Sums of windows over the number of their elements, without padding if that is asked."""
    windows = windows_of(node, x)
    sums = fold(summable(x), windows, "add")
    counts = [
        elements_inside(x.shape[i + 2], windows, i, bool(node.attr("count_include_pad", 0)))
        for i in range(windows.rank)
    ]
    if all((count == count[0]).all() for count in counts):
        return convert(sums / float(math.prod(int(count[0]) for count in counts)), x.dtype)
    divisors = math.prod(np.ix_(*counts), start=np.float64(1))
    return convert(sums / constant(np.asarray(divisors, sums.dtype)), x.dtype)


def summable(x: OnnxTensor) -> OnnxTensor:
    """Half precision as single: sums are made in it."""
    return convert(x, np.float32) if x.is_float and x.dtype.itemsize < 4 else x


def elements_inside(size: int, windows: SpatialWindows, axis: int, padding: bool) -> Array:
    """How many elements of each window along an axis are in the input, or in its padding too."""
    i = axis
    starts = np.arange(windows.counts[i]) * windows.strides[i] - windows.low[i]
    places = starts[:, None] + np.arange(windows.kernel[i]) * windows.dilations[i]
    low, high = (-windows.low[i], size + windows.high[i]) if padding else (0, size)
    inside = (places >= low) & (places < high)
    return np.array([max(1, int(row.sum())) for row in inside])


@operator("LpPool")
def lower_lp_pool(node: NodeCall) -> OnnxTensor:
    x, windows, p = node.take(0), windows_of(node, node.take(0)), float(node.attr("p") or 2)
    sums = fold(raised(summable(x), p), windows, "add")
    return convert(root(sums, p), x.dtype)


def raised(x: OnnxTensor, p: float) -> OnnxTensor:
    """|x| ** p."""
    if p == 2:
        return x * x
    return ops.absolute(x) if p == 1 else ops.power(ops.absolute(x), p)


def root(x: OnnxTensor, p: float) -> OnnxTensor:
    """x ** (1 / p) of what is not negative."""
    if p == 2:
        return ops.sqrt(x)
    return x if p == 1 else ops.power(x, 1 / p)


@operator("GlobalAveragePool")
def lower_global_average_pool(node: NodeCall) -> OnnxTensor:
    x = node.take(0)
    return convert(ops.mean(summable(x), range(2, x.rank), keepdims=True), x.dtype)


@operator("GlobalMaxPool")
def lower_global_max_pool(node: NodeCall) -> OnnxTensor:
    x = node.take(0)
    return ops.reduce("maximum", x, range(2, x.rank), keepdims=True)


@operator("GlobalLpPool")
def lower_global_lp_pool(node: NodeCall) -> OnnxTensor:
    x, p = node.take(0), float(node.attr("p") or 2)
    sums = ops.reduce("add", raised(summable(x), p), range(2, x.rank), keepdims=True)
    return convert(root(sums, p), x.dtype)


@operator("MaxUnpool")
def lower_max_unpool(node: NodeCall) -> OnnxTensor:
    """Elements at the numbers that MaxPool gave, zeros elsewhere."""
    x, numbers, wanted = node.take(0), node.take(1), node.integers("output_shape", 2)
    rank, kernel = x.rank - 2, node.attr("kernel_shape")
    strides = node.attr("strides") or [1] * rank
    pads = node.attr("pads") or [0] * (2 * rank)
    terms = zip(x.shape[2:], strides, kernel, pads[:rank], pads[rank:], strict=True)
    shape = [*x.shape[:2], *((n - 1) * s + k - a - b for n, s, k, a, b in terms)]
    zeros = ops.full([math.prod(shape)], x.dtype, 0)
    rows, updates = ops.reshape(numbers, [x.count]), ops.reshape(x, [x.count])
    placed = ops.reshape(scatter_rows(zeros, rows, updates, REDUCTIONS["none"]), shape)
    if wanted is None:
        return placed
    more = [size - n for size, n in zip(wanted, shape, strict=True)]
    return ops.pad(placed, [0] * x.rank, more)
