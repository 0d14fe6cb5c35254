"""Convolutions whose windows are larger, or further apart, than the unit that makes them can reach.

Where windows step over s pixels, s pixels beside each other are channels of one, and windows step
over one of those:

    Y[z] = sum over k of X[z s + k] W[k] = sum over (j, b) of X'[z + j, b] W'[j, b]
                                           X'[u, b] = X[u s + b]    W'[j, b] = W[j s + b]

A kernel of K = f K' taps is one of K' taps on f copies of the image beside each other as channels:

    Y[z] = sum over (j, k) of X''[z s + k d, j] W''[k, j]
                                           X''[u, j] = X[u + j K' d]    W''[k, j] = W[j K' + k]

Groups of the batch, as gradients of grouped convolutions have them, are groups of channels: image n
of group g meets the outputs of g alone.
"""

from __future__ import annotations

import numpy as np

from davinci.dialects.base import attribute
from davinci.mlir import Op, ir, stablehlo
from davinci.operators.conv import MOST_KERNEL, MOST_STRIDE
from davinci.passes.stablehlo_to_ascend import tensors as t
from davinci.passes.stablehlo_to_ascend.deep_convolution import Dimension, dimensions
from davinci.passes.stablehlo_to_ascend.transposed_convolution import padded
from davinci.units import FRACTAL_SIDE, ceil_div


def expand_far(op: Op) -> list[ir.Value] | None:
    """The result of a `stablehlo.convolution` by one whose windows can be reached; None if they can
    be, or if something else is to be done to it first."""
    if attribute(op, "batch_group_count") != 1:
        return [expand_batch_groups(op)]
    empty = 0 in (*op.operands[0].type.shape, *op.operands[1].type.shape, *op.result.type.shape)
    if empty or any(attribute(op, "window_reversal") or []):
        return None
    for each in dimensions(op):
        plain = each.inside == 1
        if plain and each.stride > MOST_STRIDE and each.dilation == 1:
            return [packed(op, each)]
        if plain and each.taps > MOST_KERNEL and each.stride <= MOST_STRIDE:
            return [folded(op, each)]
    return None


def expand_batch_groups(op: Op) -> ir.Value:
    """Groups of the batch as groups of channels: [g n, c] is [n, g c]."""
    x, w = op.operands
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    groups = attribute(op, "batch_group_count")
    batch, feature = numbers.input_batch_dimension, numbers.input_feature_dimension
    x = joined_to(x, batch, feature, groups)
    attributes = {name: op.attributes[name] for name in op.attributes}
    attributes["batch_group_count"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 1)
    attributes["feature_group_count"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), groups)
    made = ir.Operation.create(
        "stablehlo.convolution", [op.result.type], [x, w], attributes=attributes
    )
    return made.result


def joined_to(x: ir.Value, source: int, target: int, count: int) -> ir.Value:
    """Moves the outer `count` parts of a dimension in front of those of another."""
    shape = list(x.type.shape)
    size = shape[source] // count
    parts = t.reshape(x, [*shape[:source], count, size, *shape[source + 1 :]])
    order = [d for d in range(len(shape) + 1) if d != source]
    order.insert(order.index(target + (target > source)), source)
    shape[source], shape[target] = size, shape[target] * count
    return t.reshape(t.transpose(parts, order), shape)


def packed(op: Op, along: Dimension) -> ir.Value:
    """With as many pixels as windows step over as channels."""
    step = along.stride
    kernel = ceil_div(along.taps, step)
    x, w, space, taps, features = operands_of(op, along)
    x = of_length(x, space, along.edges[0], (along.size - 1 + kernel) * step)
    x = parted(x, space, step, features[0])
    w = parted(of_length(w, taps, 0, kernel * step), taps, step, features[1])
    return convolution(op, x, w, along, stride=1)


def folded(op: Op, along: Dimension) -> ir.Value:
    """With copies of the image, as far apart as parts of the kernel are, as channels."""
    x, w, space, taps, features = operands_of(op, along)
    count = ceil_div(along.taps, MOST_KERNEL)
    if attribute(op, "feature_group_count") == 1:
        count = max(count, FRACTAL_SIDE // x.type.shape[features[0]])
    kernel = ceil_div(along.taps, count)
    length = (along.size - 1) * along.stride + (kernel - 1) * along.dilation + 1
    apart = kernel * along.dilation
    x = of_length(x, space, along.edges[0], length + (count - 1) * apart)
    parts = []
    for number in range(count):
        part = t.cut(x, space, number * apart, number * apart + length)
        parts.append(t.reshape(part, [*part.type.shape, 1]))
    x = beside(t.concatenate(parts, x.type.rank), features[0])
    sizes = list(w.type.shape)
    w = of_length(w, taps, 0, count * kernel)
    w = t.reshape(w, [*sizes[:taps], count, kernel, *sizes[taps + 1 :]])
    w = t.transpose(w, [*(d for d in range(len(sizes) + 1) if d != taps), taps])
    return convolution(op, x, beside(w, features[1]), along, stride=along.stride)


def operands_of(op: Op, along: Dimension) -> tuple[ir.Value, ir.Value, int, int, tuple[int, int]]:
    """Image and weights, their dimensions `along` a dimension of space, and those of channels."""
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    space = list(numbers.input_spatial_dimensions)[along.number]
    taps = list(numbers.kernel_spatial_dimensions)[along.number]
    features = (numbers.input_feature_dimension, numbers.kernel_input_feature_dimension)
    return op.operands[0], op.operands[1], space, taps, features


def of_length(x: ir.Value, dim: int, before: int, size: int) -> ir.Value:
    """A dimension with so many zeros in front, cut or padded to a size."""
    none = [0] * x.type.rank
    low, high = [*none], [*none]
    low[dim], high[dim] = before, size - before - x.type.shape[dim]
    return padded(x, low, high, none)


def parted(x: ir.Value, dim: int, step: int, channels: int) -> ir.Value:
    """Elements `step` of a dimension that lie beside each other become channels."""
    shape = list(x.type.shape)
    x = t.reshape(x, [*shape[:dim], shape[dim] // step, step, *shape[dim + 1 :]])
    order = [d for d in range(len(shape) + 1) if d != dim + 1]
    return beside(t.transpose(x, [*order, dim + 1]), channels)


def beside(x: ir.Value, channels: int) -> ir.Value:
    """The last dimension joined to one of channels, whose parts it is."""
    shape = list(x.type.shape)
    last = len(shape) - 1
    order = list(range(last))
    order.insert(channels + 1, last)
    count = shape.pop()
    shape[channels] *= count
    return t.reshape(t.transpose(x, order), shape)


def convolution(op: Op, x: ir.Value, w: ir.Value, along: Dimension, stride: int) -> ir.Value:
    """The same convolution of other operands, without padding along a dimension."""
    attributes = {name: op.attributes[name] for name in op.attributes}
    rank = len(dimensions(op))
    edges = [[0, 0] if d.number == along.number else list(d.edges) for d in dimensions(op)]
    attributes["padding"] = ir.DenseIntElementsAttr.get(np.array(edges, np.int64))
    strides = list(attribute(op, "window_strides") or [1] * rank)
    strides[along.number] = stride
    attributes["window_strides"] = ir.DenseI64ArrayAttr.get(strides)
    made = ir.Operation.create(
        "stablehlo.convolution", [op.result.type], [x, w], attributes=attributes
    )
    return made.result
