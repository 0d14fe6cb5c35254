"""Normalizations: softmax and its kin, and those by mean and variance."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from onnx import helper

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.operators.reductions import place_of
from davinci.frontends.onnx.tensor import OnnxTensor, convert

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall


def log_softmax(x: OnnxTensor, axis: int) -> OnnxTensor:
    shifted = x - ops.reduce("maximum", x, [axis], keepdims=True)
    return shifted - ops.log(ops.reduce("add", ops.exp(shifted), [axis], keepdims=True))


def hardmax(x: OnnxTensor, axis: int) -> OnnxTensor:
    """1 at the first largest element, else 0."""
    places = ops.iota(np.int32, x.shape, axis)
    return convert(ops.compare("EQ", places, place_of("maximum", x, axis)), x.dtype)


ALONG_AN_AXIS: dict[str, Callable[[OnnxTensor, int], OnnxTensor]] = {
    "Softmax": ops.softmax,
    "LogSoftmax": log_softmax,
    "Hardmax": hardmax,
}


@operator(*ALONG_AN_AXIS)
def lower_along_an_axis(node: NodeCall) -> OnnxTensor:
    """Before operator set 13, along all dimensions from `axis` on."""
    x, along = node.take(0), ALONG_AN_AXIS[node.op_type]
    wide = x if x.rank else ops.reshape(x, [1])
    axis = ops.axis_of(node.attr("axis"), wide.rank)
    if not x.count:
        return x
    if node.version >= 13:
        return ops.reshape(along(wide, axis), x.shape)
    rows = [math.prod(wide.shape[:axis]), math.prod(wide.shape[axis:])]
    return ops.reshape(along(ops.reshape(x, rows), 1), x.shape)


@operator("LpNormalization")
def lower_lp_normalization(node: NodeCall) -> OnnxTensor:
    """Zero where the norm is."""
    x, p = node.take(0), node.attr("p")
    axis = ops.axis_of(node.attr("axis"), x.rank)
    if p not in (1, 2):
        node.refuse(f"p={p}", "1 or 2")
    norm = ops.reduce("add", ops.absolute(x) if p == 1 else x * x, [axis], keepdims=True)
    norm = ops.sqrt(norm) if p == 2 else norm
    return ops.where(ops.is_zero(norm), 0, x / norm)


def moments(x: OnnxTensor, axes: Sequence[int]) -> tuple[OnnxTensor, OnnxTensor]:
    """Mean and variance over some axes, kept; of what is left of the mean, so nothing cancels."""
    mean = ops.mean(x, axes, keepdims=True)
    centred = x - mean
    return mean, ops.mean(centred * centred, axes, keepdims=True)


def standardized(x: OnnxTensor, axes: Sequence[int], epsilon: float) -> OnnxTensor:
    """(x - mean) / sqrt(variance + epsilon)."""
    mean, variance = moments(x, axes)
    return (x - mean) / ops.sqrt(variance + epsilon)


def per_channel(value: OnnxTensor, rank: int, axis: int = 1) -> OnnxTensor:
    """A vector as one that broadcasts along dimension `axis` of `rank`."""
    return ops.reshape(value, [value.count if i == axis else 1 for i in range(rank)])


def computed(node: NodeCall, x: OnnxTensor) -> OnnxTensor:
    """`x` in the type that statistics are computed in: `stash_type`, or a wider one it has."""
    stash = np.dtype(helper.tensor_dtype_to_np_dtype(node.attr("stash_type") or 1))
    return convert(x, stash) if stash.itemsize > x.dtype.itemsize else x


@operator("MeanVarianceNormalization")
def lower_mean_variance(node: NodeCall) -> OnnxTensor:
    x = node.take(0)
    if node.version < 9:
        across = node.attr("across_channels")
        axes = [0, *range(1 if across else 2, x.rank)]
        mean, variance = moments(x, axes)
        return (x - mean) / ops.sqrt(variance) if node.attr("normalize_variance") else x - mean
    mean, variance = moments(x, ops.axes_of(node.attr("axes"), x.rank))
    return (x - mean) / (ops.sqrt(variance) + 1e-9)


@operator("InstanceNormalization")
def lower_instance_normalization(node: NodeCall) -> OnnxTensor:
    node.ignore("consumed_inputs")
    x, scale, bias = node.take(0), node.take(1), node.take(2)
    found = standardized(x, range(2, x.rank), node.attr("epsilon"))
    return found * per_channel(scale, x.rank) + per_channel(bias, x.rank)


@operator("GroupNormalization")
def lower_group_normalization(node: NodeCall) -> OnnxTensor:
    x, groups = node.take(0), node.attr("num_groups")
    scale, bias = node.take(1), node.take(2)
    if x.rank < 2 or x.shape[1] % groups:
        node.refuse(f"{groups} groups of shape {list(x.shape)}", "groups of equal size")
    grouped = ops.reshape(
        computed(node, x), [x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]]
    )
    found = convert(standardized(grouped, range(2, grouped.rank), node.attr("epsilon")), x.dtype)
    found = ops.reshape(found, x.shape)
    return found * per_channel(scale, x.rank) + per_channel(bias, x.rank)


@operator("LayerNormalization")
def lower_layer_normalization(node: NodeCall) -> tuple[OnnxTensor, ...]:
    x, scale, bias = node.take(0), node.take(1), node.optional(2)
    axes = range(ops.axis_of(node.attr("axis"), x.rank), x.rank)
    wide = computed(node, x)
    mean, variance = moments(wide, axes)
    deviation = ops.sqrt(variance + node.attr("epsilon"))
    found = convert((wide - mean) / deviation, x.dtype) * scale
    found = found if bias is None else found + bias
    stash = node.dtype("stash_type")
    if not node.wants(1) and not node.wants(2):
        return (found,)
    return found, convert(mean, stash), convert(1 / deviation, stash)


@operator("RMSNormalization")
def lower_rms_normalization(node: NodeCall) -> OnnxTensor:
    x, scale = node.take(0), node.take(1)
    axes = range(ops.axis_of(node.attr("axis"), x.rank), x.rank)
    wide = computed(node, x)
    square = ops.mean(wide * wide, axes, keepdims=True)
    return convert(wide / ops.sqrt(square + node.attr("epsilon")), scale.dtype) * scale


@operator("LRN")
def lower_lrn(node: NodeCall) -> OnnxTensor:
    """Divides by a power of the squares of the channels around."""
    x, size = node.take(0), node.attr("size")
    alpha, beta, bias = node.attr("alpha"), node.attr("beta"), node.attr("bias")
    before, square = (size - 1) // 2, x * x
    around = square
    for distance in range(-before, size - before):
        around = around + ops.shift(square, 1, -distance) if distance else around
    return x / ops.power(bias + alpha / size * around, beta)


@operator("BatchNormalization")
def lower_batch_normalization(node: NodeCall) -> tuple[OnnxTensor, ...]:
    """In training, statistics of the batch are used, and returned as the running ones.

    Operator sets before 14 train where a second output is used; those before 9 may have statistics
    for each element (`spatial` 0).
    """
    node.ignore("consumed_inputs", "is_test")
    x, rank = node.take(0), node.take(0).rank
    epsilon, momentum = node.attr("epsilon"), node.attr("momentum")
    over = [0] if node.attr("spatial") == 0 else [0, *range(2, rank)]
    kept = [1 if i in over else size for i, size in enumerate(x.shape)]
    scale, bias, mean, variance = (ops.reshape(node.take(i), kept) for i in range(1, 5))
    extra = sum(node.wants(i) for i in range(1, 5))
    if not (node.attr("training_mode") if node.version >= 14 else extra):
        return (_batch_normalized(x, mean, variance, scale, bias, epsilon),)
    found = moments(convert(x, mean.dtype), over)
    result = _batch_normalized(x, *found, scale, bias, epsilon)
    statistics = [
        ops.reshape(old * momentum + new * (1 - momentum), node.take(i).shape)
        for i, old, new in ((3, mean, found[0]), (4, variance, found[1]))
    ]
    saved = [ops.reshape(value, node.take(3).shape) for value in found] if extra > 2 else []
    return result, *statistics, *saved


def _batch_normalized(
    x: OnnxTensor,
    mean: OnnxTensor,
    variance: OnnxTensor,
    scale: OnnxTensor,
    bias: OnnxTensor,
    epsilon: float,
) -> OnnxTensor:
    """One product and one sum with numbers of the channel, in the widest type among them."""
    factor = convert(scale, mean.dtype) / ops.sqrt(variance + epsilon)
    offset = convert(bias, mean.dtype) - mean * factor
    return convert(convert(x, mean.dtype) * factor + offset, x.dtype)
