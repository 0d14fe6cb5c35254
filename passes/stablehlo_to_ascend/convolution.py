"""Conversion of `stablehlo.convolution` to `conv` on images [n, h w, c].

    %x [n, c, h, w] -> transpose, reshape -> [n, h w, c]  \
    %w [o, c, kh, kw] -> a matrix for each group            conv -> [n, oh ow, o] -> [n, o, oh, ow]

One spatial dimension is an image of one row. Zeros between the elements of the operand (a
transposed convolution), and padding that is negative or more than load3d has, are a `pad` in front.
Groups are put together until they are whole blocks of 16 channels, or one group, their weights
zero where they meet channels of others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.elements import Array, to_array
from davinci.mlir import Op, ir, stablehlo
from davinci.operators.conv import (
    LENGTHS,
    MOST_DILATION,
    MOST_KERNEL,
    MOST_PADDING,
    MOST_SIDE,
    MOST_STRIDE,
    TYPES,
    Geometry,
    geometry,
)
from davinci.operators.parts import pad_shape
from davinci.operators.tensors import Tensor
from davinci.passes.ascend.tensor_ops import TensorOps, constant_array, definition
from davinci.passes.stablehlo_to_ascend import conversion
from davinci.units import FRACTAL_SIDE, ceil_div, round_up


@dataclass(frozen=True)
class Order:
    """Dimensions of an array: batch or outputs, channels, and those of space."""

    first: int
    channels: int
    space: tuple[int, ...]


@conversion("convolution")
def convert_convolution(op: Op, ops: TensorOps) -> Sequence[Any] | None:
    """Of one or two spatial dimensions and one group of the batch, of floats, none empty."""
    x, w = op.operands
    given, result = tensor_of(x.type), tensor_of(op.results[0].type)
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    space = list(numbers.input_spatial_dimensions)
    rank, groups = len(space), attribute(op, "feature_group_count")
    reversed_ = any(attribute(op, "window_reversal") or [])
    if not 1 <= rank <= 2 or attribute(op, "batch_group_count") != 1 or reversed_:
        return None
    kinds = {value.element for value in (given, tensor_of(w.type), result)}
    if len(kinds) > 1 or not kinds <= TYPES or 0 in (given.count, result.count):
        return None
    of_x = Order(numbers.input_batch_dimension, numbers.input_feature_dimension, tuple(space))
    image, found = padded_image(op, x, of_x, ops)
    if image is None or found is None:
        return None
    of_w = Order(
        numbers.kernel_output_feature_dimension,
        numbers.kernel_input_feature_dimension,
        tuple(numbers.kernel_spatial_dimensions),
    )
    weights = matrices(w, of_w, groups, ops)
    batch, outputs = given.shape[of_x.first], tensor_of(w.type).shape[of_w.first]
    rows, columns = found.windows
    made = ops.emit(
        "conv",
        [image, weights],
        Tensor((batch, rows * columns, outputs), "f32"),
        image=list(found.image),
        kernel=list(found.kernel),
        strides=list(found.strides),
        dilations=list(found.dilations),
        pads=list(found.pads),
        groups=groups,
    )
    made = ops.cast(made, result.element)
    spatial = tuple(numbers.output_spatial_dimensions)
    sizes = [result.shape[dim] for dim in spatial]
    made = ops.reshape(made, [batch, *sizes, outputs])
    places = [numbers.output_batch_dimension, *spatial, numbers.output_feature_dimension]
    return [ops.transpose(made, [places.index(dim) for dim in range(result.rank)])]


def padded_image(op: Op, x: ir.Value, order: Order, ops: TensorOps) -> tuple[Any, Geometry | None]:
    """The operand as images [n, h w, c], and how windows lie on them; None if load3d cannot."""
    rank, given = len(order.space), tensor_of(x.type)
    ones = [1] * rank
    strides, inside, apart = (
        attribute(op, name) or ones for name in ("window_strides", "lhs_dilation", "rhs_dilation")
    )
    edges = np.zeros((rank, 2), np.int64)
    if "padding" in op.attributes:
        edges = to_array(op.attributes["padding"]).reshape(rank, 2)
    w = tensor_of(op.operands[1].type)
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    kernel = [w.shape[dim] for dim in numbers.kernel_spatial_dimensions]
    x = ops.transpose(x, [order.first, *order.space, order.channels])
    pads = edges.tolist()
    if any(n > 1 for n in inside) or not all(0 <= p <= MOST_PADDING for p in edges.flat):
        zero = ops.full((), given.element, 0)
        low, high = ([0, *(int(p) for p in edges[:, side]), 0] for side in (0, 1))
        interior = [0, *(n - 1 for n in inside), 0]
        found = tensor_of(x.type)
        shape = pad_shape(found.shape, low, high, interior)
        if 0 in shape:
            return None, None
        made = Tensor(shape, found.element)
        x = ops.emit("pad", [x, zero], made, low=low, high=high, interior=interior)
        pads = [[0, 0]] * rank
    batch, *sizes, channels = tensor_of(x.type).shape
    one_row = [1] * (2 - rank)
    pairs = [[*one_row, *each] for each in (sizes, kernel, strides, apart)]
    sides = [*([0, 0] * (2 - rank)), *(p for pair in pads for p in pair)]
    limits = (MOST_SIDE, MOST_KERNEL, MOST_STRIDE, MOST_DILATION)
    if any(max(pair) > most for pair, most in zip(pairs, limits, strict=True)):
        return None, None
    lies = geometry(dict(zip(LENGTHS, [*pairs, sides], strict=True)))
    return ops.reshape(x, [batch, math.prod(sizes), channels]), lies


def matrices(w: ir.Value, order: Order, groups: int, ops: TensorOps) -> Any:
    """Weights as `conv` has them, [groups, rows, columns], with groups of whole blocks."""
    found = tensor_of(w.type)
    outputs, channels = found.shape[order.first] // groups, found.shape[order.channels]
    joined = joined_groups(groups, channels, outputs)
    turn = [*order.space, order.channels, order.first]
    known = definition(w)
    if known is not None:
        array = np.transpose(constant_array(known), turn)
        return ops.constant(laid_out(array, groups, joined), found.element)
    kernel = [found.shape[dim] for dim in order.space]
    elements = int(np.prod(kernel))
    w = ops.reshape(ops.transpose(w, turn), [elements, channels, groups, outputs])
    if joined > 1:
        shape = [elements, joined, channels, groups // joined, joined, outputs]
        w = ops.reshape(w, [elements, channels, groups // joined, joined, outputs])
        own = ops.constant(np.eye(joined, dtype=np.float32), "f32")
        own = ops.broadcast(ops.cast(own, found.element), shape, [1, 4])
        w = ops.binary("mul", ops.broadcast(w, shape, [0, 2, 3, 4, 5]), own)
    inner, outer, count = joined * channels, joined * outputs, groups // joined
    w = ops.reshape(w, [elements, inner, count, outer])
    blocks = ceil_div(inner, FRACTAL_SIDE)
    more = blocks * FRACTAL_SIDE - inner
    if more:
        zero = ops.full((), found.element, 0)
        wide = Tensor((elements, blocks * FRACTAL_SIDE, count, outer), found.element)
        high, none = [0, more, 0, 0], [0] * 4
        w = ops.emit("pad", [w, zero], wide, low=none, high=high, interior=none)
    w = ops.reshape(w, [elements, blocks, FRACTAL_SIDE, count, outer])
    w = ops.transpose(w, [3, 1, 0, 2, 4])
    return ops.reshape(w, [count, blocks * elements * FRACTAL_SIDE, outer])


def joined_groups(groups: int, channels: int, outputs: int) -> int:
    """How many groups make one of whole blocks of channels; all of them if none do.

    >>> joined_groups(32, 4, 4), joined_groups(17, 1, 1), joined_groups(1, 3, 64)
    (4, 17, 1)
    """
    for joined in range(1, groups):
        whole = joined * channels % FRACTAL_SIDE == 0 and joined * outputs % FRACTAL_SIDE == 0
        if groups % joined == 0 and whole:
            return joined
    return groups


def laid_out(w: Array, groups: int, joined: int) -> Array:
    """Weights [kh, kw, channels of a group, outputs], of which so many groups are joined."""
    channels, total = w.shape[-2:]
    outputs, count = total // groups, groups // joined
    parts = w.reshape(-1, channels, count, joined, outputs)
    inner = round_up(joined * channels, FRACTAL_SIDE)
    found = np.zeros((parts.shape[0], inner, count, joined, outputs), w.dtype)
    for i in range(joined):
        found[:, i * channels : (i + 1) * channels, :, i] = parts[:, :, :, i]
    blocks = inner // FRACTAL_SIDE
    split = found.reshape(parts.shape[0], blocks, FRACTAL_SIDE, count, joined * outputs)
    return split.transpose(3, 1, 0, 2, 4).reshape(count, -1, joined * outputs)
