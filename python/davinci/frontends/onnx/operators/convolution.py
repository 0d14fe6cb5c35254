"""Convolutions."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.tensor import BadNode, OnnxTensor, constant
from davinci.frontends.onnx.windows import SpatialWindows, halves

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall


def convolution(
    x: OnnxTensor, w: OnnxTensor, windows: SpatialWindows, groups: int = 1, dtype: Any = None
) -> OnnxTensor:
    """[N, C, ..] and weights [M, C / groups, ..] make [N, M, ..]; a product where it is one."""
    if x.shape[1] != w.shape[1] * groups or w.shape[0] % max(1, groups):
        raise BadNode(f"weights {list(w.shape)} in {groups} groups on {list(x.shape)}")
    if list(w.shape[2:]) != windows.kernel:
        raise BadNode(f"weights {list(w.shape)} are no windows of {windows.kernel}")
    pointwise = set(windows.kernel) == {1} and not any(windows.low) and not any(windows.high)
    # Of floats or bytes in one or two dimensions it stays one, so that images stay as they lie.
    images = (x.is_float and dtype is None) or x.dtype == np.int8
    images = images and len(windows.kernel) <= 2
    if pointwise and groups == 1 and x.count and not images:
        return pointwise_product(x, w, windows, dtype)
    return ops.convolution(
        x, w, windows.strides, windows.low, windows.high, windows.dilations, groups, dtype
    )


def pointwise_product(
    x: OnnxTensor, w: OnnxTensor, windows: SpatialWindows, dtype: Any
) -> OnnxTensor:
    """A convolution with windows of one element: a product of matrices."""
    limits = [(n - 1) * s + 1 for n, s in zip(windows.counts, windows.strides, strict=True)]
    batch, channels = x.shape[:2]
    x = ops.cut(x, [0] * x.rank, [batch, channels, *limits], [1, 1, *windows.strides])
    columns = ops.reshape(x, [batch, channels, math.prod(windows.counts)])
    weights = ops.reshape(w, w.shape[:2])
    product = ops.dot_general(weights, columns, ([1], [1]), dtype=dtype)
    return ops.reshape(ops.transpose(product, [1, 0, 2]), [batch, w.shape[0], *windows.counts])


def add_bias(y: OnnxTensor, bias: OnnxTensor | None) -> OnnxTensor:
    """`y` [N, M, ..] with a bias [M]."""
    if bias is None:
        return y
    return y + ops.reshape(bias, [bias.count, *[1] * (y.rank - 2)])


@operator("ConvTranspose")
def lower_conv_transpose(node: NodeCall) -> OnnxTensor:
    """A convolution of the input with zeros between its elements, by the weights turned round."""
    x, w, bias, groups = node.take(0), node.take(1), node.optional(2), node.attr("group")
    rank = x.rank - 2
    kernel = node.attr("kernel_shape", None) or w.shape[2:]
    strides = node.attr("strides", None) or [1] * rank
    dilations = node.attr("dilations", None) or [1] * rank
    if tuple(kernel) != w.shape[2:] or x.shape[1] != w.shape[0] or w.shape[0] % groups:
        raise BadNode(f"weights {list(w.shape)} in {groups} groups on {list(x.shape)}")
    extents = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
    spread = [(n - 1) * s + 1 for n, s in zip(x.shape[2:], strides, strict=True)]
    low, sizes = transposed_window(node, x.shape[2:], extents, strides)
    before = [e - 1 - a for e, a in zip(extents, low, strict=True)]
    behind = [
        size + e - 1 - n - a for size, e, n, a in zip(sizes, extents, spread, before, strict=True)
    ]
    turned, ones = transposed_weights(w, groups), [1] * rank
    y = ops.convolution(x, turned, ones, before, behind, dilations, groups, spread=strides)
    return add_bias(y, bias)


def transposed_window(
    node: NodeCall, inputs: Sequence[int], extents: Sequence[int], strides: Sequence[int]
) -> tuple[list[int], list[int]]:
    """What is cut at the begin of the full result along each axis, and the sizes left."""
    rank, mode = len(inputs), node.attr("auto_pad")
    more = node.attr("output_padding", None) or [0] * rank
    wanted = node.attr("output_shape", None)
    pads = node.attr("pads", None) or [0] * (2 * rank)
    full = [(n - 1) * s + e + m for n, s, e, m in zip(inputs, strides, extents, more, strict=True)]
    if wanted is None and mode not in ("SAME_UPPER", "SAME_LOWER"):
        pads = pads if mode != "VALID" else [0] * (2 * rank)
        sizes = [n - a - b for n, a, b in zip(full, pads[:rank], pads[rank:], strict=True)]
        return list(pads[:rank]), sizes
    sizes = (
        list(wanted[-rank:]) if wanted else [n * s for n, s in zip(inputs, strides, strict=True)]
    )
    totals = [max(0, n - size) for n, size in zip(full, sizes, strict=True)]
    return halves(totals, larger_first=mode != "SAME_UPPER")[0], sizes


def transposed_weights(w: OnnxTensor, groups: int) -> OnnxTensor:
    """[C, M / groups, ..] as [M, C / groups, ..], turned round along the spatial axes."""
    inputs, outputs, *kernel = w.shape
    spatial = tuple(range(3, 3 + len(kernel)))
    shape = [groups, inputs // groups, outputs, *kernel]
    if w.known is not None:
        array = np.flip(w.known.reshape(shape), spatial)
        array = np.ascontiguousarray(np.swapaxes(array, 1, 2))
        return constant(array.reshape(groups * outputs, inputs // groups, *kernel), name=w.name)
    turned = ops.transpose(ops.reverse(ops.reshape(w, shape), spatial), [0, 2, 1, *spatial])
    return ops.reshape(turned, [groups * outputs, inputs // groups, *kernel])


@operator("CausalConvWithState")
def lower_causal_conv(node: NodeCall) -> tuple[OnnxTensor, OnnxTensor]:
    """Each channel [N, C, length] by its own window, which ends at the element; and what is left.

    A state [N, C, window - 1] stands before the elements, or zeros.
    """
    x, w, bias, state = node.take(0), node.take(1), node.optional(2), node.optional(3)
    activation = node.attr("activation")
    if activation not in ("none", "silu", "swish"):
        node.refuse(f"activation {activation!r} is not supported", "none, silu or swish")
    length, before = x.shape[2], w.shape[2] - 1
    whole = ops.pad(x, [0, 0, before], [0, 0, 0]) if state is None else ops.concat([state, x], 2)
    y, left = depthwise(whole, w, length), ops.cut_axis(whole, 2, length, length + before)
    y = add_bias(y, bias)
    return (y if activation == "none" else y * ops.sigmoid(y)), left


def depthwise(x: OnnxTensor, w: OnnxTensor, length: int) -> OnnxTensor:
    """Sums over the elements of windows [C, 1, k] of one dimension, as sums of slices."""
    terms = [
        ops.cut_axis(x, 2, k, k + length) * ops.squeeze(ops.cut_axis(w, 2, k, k + 1), [1])
        for k in range(w.shape[2])
    ]
    return functools.reduce(lambda a, b: a + b, terms)
