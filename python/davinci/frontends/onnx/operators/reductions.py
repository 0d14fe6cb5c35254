"""Sums, extrema and norms over some axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.tensor import Tensor

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import Call


def reduced_axes(node: Call, x: Tensor) -> list[int]:
    """Axes of a reduction: an attribute, an input in newer operator sets, or all."""
    axes = node.integers("axes", 1)
    if axes or (axes is not None and node.attr("noop_with_empty_axes")):
        return ops.axes_of(axes, x.rank)
    return [] if node.attr("noop_with_empty_axes") else list(range(x.rank))


@operator("ReduceSum")
def lower_reduce_sum(node: Call) -> Tensor:
    x = node.take(0)
    return ops.reduce("add", x, reduced_axes(node, x), bool(node.attr("keepdims")))


@operator("ReduceMean")
def lower_reduce_mean(node: Call) -> Tensor:
    x = node.take(0)
    return ops.mean(x, reduced_axes(node, x), bool(node.attr("keepdims")))


@operator("Softmax")
def lower_softmax(node: Call) -> Tensor:
    """Before operator set 13, over all dimensions from `axis` on."""
    x = node.take(0)
    axis = ops.axis_of(node.attr("axis"), max(1, x.rank))
    if node.version >= 13:
        return ops.softmax(x, axis)
    rows = ops.reshape(
        x, [-1 if not x.count else _product(x.shape[:axis]), _product(x.shape[axis:])]
    )
    return ops.reshape(ops.softmax(rows, 1), x.shape)


def _product(sizes: tuple[int, ...]) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result
