"""Conversion of `stablehlo.convolution` to `conv` on images [n, h w, c].

    %x [n, c, h, w] -> transpose, reshape -> [n, h w, c]  \
    %w [o, c, kh, kw] -> a matrix for each group            conv -> [n, oh ow, o] -> [n, o, oh, ow]

One spatial dimension is an image of one row. Zeros between the elements of the operand (a
transposed convolution), and padding that is negative or more than load3d has, are a `pad` in front.
Groups are put together until they are whole blocks of 16 channels, but for the end of the last one,
or one group, their weights zero where they meet channels of others. Where windows step over pixels
and channels are few, pixels become channels (`Packing`). Images of one pixel are the rows of a
product.

Of bytes it is one of bytes where weights are known and groups are whole blocks of 32 channels; they
meet their weights turned (`operators.conv`). Others are sums of exact convolutions of f16, each of
so few channels that f32 holds its sums:

    %y = conv i8 -> i32    ->    cast(conv(%x[c < 64], %w[c < 64])) + cast(conv(%x[c >= 64], ..
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.elements import Array
from davinci.mlir import Op, ir, owner_of, stablehlo
from davinci.operators.conv import (
    LENGTHS,
    MOST_DILATION,
    MOST_KERNEL,
    MOST_PADDING,
    MOST_SIDE,
    MOST_STRIDE,
    Geometry,
    geometry,
)
from davinci.operators.core import FLOATS
from davinci.operators.parts import pad_shape
from davinci.operators.tensors import Tensor, lanes
from davinci.passes.ascend.tensor_ops import (
    TensorOps,
    constant_array,
    defining_op,
    definition,
    full_value,
)
from davinci.passes.stablehlo_to_ascend import conversion
from davinci.passes.stablehlo_to_ascend.padding import edges_of, padded
from davinci.units import FRACTAL_SIDE, ceil_div, round_up


@dataclass(frozen=True)
class DimensionOrder:
    """Dimensions of an array: batch or outputs, channels, and those of space."""

    first: int
    channels: int
    space: tuple[int, ...]

    @property
    def turn(self) -> list[int]:
        """Space first, then channels, then outputs."""
        return [*self.space, self.channels, self.first]


@conversion("convolution")
def convert_convolution(op: Op, ops: TensorOps) -> Sequence[ir.Value] | None:
    """Converts convolutions of one or two spatial dimensions and one group of the batch, of floats,
    or of bytes whose sums are exact; none that is empty."""
    x, w = op.operands
    given, result = tensor_of(x.type), tensor_of(op.results[0].type)
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    rank = len(list(numbers.input_spatial_dimensions))
    reversed_ = any(attribute(op, "window_reversal") or [])
    if not 1 <= rank <= 2 or attribute(op, "batch_group_count") != 1 or reversed_:
        return None
    kinds = [value.element for value in (given, tensor_of(w.type), result)]
    if 0 in (given.count, result.count):
        return None
    if kinds == ["i8", "i8", "i32"]:
        return of_bytes(op, ops)
    if len(set(kinds)) > 1 or given.element not in FLOATS:
        return None
    made = on_images(op, x, w, result.element, ops)
    return None if made is None else [made]


def orders(op: Op) -> tuple[DimensionOrder, DimensionOrder]:
    """Dimensions of the images and of the weights."""
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    of_x = DimensionOrder(
        numbers.input_batch_dimension,
        numbers.input_feature_dimension,
        tuple(numbers.input_spatial_dimensions),
    )
    of_w = DimensionOrder(
        numbers.kernel_output_feature_dimension,
        numbers.kernel_input_feature_dimension,
        tuple(numbers.kernel_spatial_dimensions),
    )
    return of_x, of_w


def on_images(op: Op, x: ir.Value, w: ir.Value, element: str, ops: TensorOps) -> ir.Value | None:
    """The convolution of an operation on images and weights in its orders, in the order of its
    result, whose elements are `element`; None if load3d cannot."""
    result, groups = tensor_of(op.results[0].type), attribute(op, "feature_group_count")
    of_x, of_w = orders(op)
    around = Around.of(op, x, of_x)
    image, found = padded_image(op, around, of_x, ops)
    if image is None or found is None:
        return None
    batch, outputs = tensor_of(x.type).shape[of_x.first], tensor_of(w.type).shape[of_w.first]
    if groups == 1 and found.pointwise and found.image == (1, 1):
        made = of_single_pixels(image, w, of_w, ops)
    else:
        made = of_windows(image, found, w, of_w, groups, ops, around.padding)
    made = ops.cast(made, element)
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    spatial = tuple(numbers.output_spatial_dimensions)
    sizes = [result.shape[dim] for dim in spatial]
    made = ops.reshape(made, [batch, *sizes, outputs])
    places = [numbers.output_batch_dimension, *spatial, numbers.output_feature_dimension]
    return ops.transpose(made, [places.index(dim) for dim in range(result.rank)])


EXACT = 1 << 24
"""Up to here f32 holds all whole numbers."""

BYTE = 128
"""The largest magnitude of a byte."""


def of_bytes(op: Op, ops: TensorOps) -> Sequence[ir.Value] | None:
    """A convolution of bytes to i32; None if the sums of one channel may be too large."""
    x, w = op.operands
    of_x, of_w = orders(op)
    if definition(w) is not None and are_blocks(op, lanes("i8")):
        made = on_images(op, x, w, "i32", ops)
        return None if made is None else [made]
    parts = exact_parts(w, of_w)
    if parts is None or (len(parts) > 1 and attribute(op, "feature_group_count") > 1):
        return None
    images, weights, total = ops.cast(x, "f16"), half(w, ops), None
    for start, end in parts:
        operands = [
            part_of(value, order.channels, start, end, ops)
            for value, order in ((images, of_x), (weights, of_w))
        ]
        if len(parts) == 1:
            operands = [images, weights]
        made = on_images(op, operands[0], operands[1], "i32", ops)
        if made is None:
            return None
        total = made if total is None else ops.binary("add", total, made)
    return None if total is None else [total]


def are_blocks(op: Op, block: int) -> bool:
    """Whether each group is whole blocks of channels; outputs need not be if there is but one."""
    groups = attribute(op, "feature_group_count")
    _, of_w = orders(op)
    shape = tensor_of(op.operands[1].type).shape
    outputs = shape[of_w.first] // groups
    return shape[of_w.channels] % block == 0 and (groups == 1 or outputs % block == 0)


def half(w: ir.Value, ops: TensorOps) -> ir.Value:
    """Weights of bytes in f16."""
    known = definition(w)
    if known is None:
        return ops.cast(w, "f16")
    return ops.constant(constant_array(known).astype(np.float16), "f16")


def part_of(value: ir.Value, dim: int, start: int, end: int, ops: TensorOps) -> ir.Value:
    """Indices `start` to `end` of a dimension; of what is known at once."""
    shape, known = tensor_of(value.type).shape, definition(value)
    if known is not None:
        places = tuple(slice(start, end) if i == dim else slice(None) for i in range(len(shape)))
        return ops.constant(constant_array(known)[places], tensor_of(value.type).element)
    starts = [start if i == dim else 0 for i in range(len(shape))]
    limits = [end if i == dim else size for i, size in enumerate(shape)]
    return ops.cut(value, starts, limits)


def exact_parts(w: ir.Value, order: DimensionOrder) -> list[tuple[int, int]] | None:
    """Ranges of channels of which f32 holds every sum of bytes with these weights, few of them, and
    of whole blocks where there are several. None if one channel is too much."""
    known, shape = definition(w), tensor_of(w.type).shape
    channels, elements = shape[order.channels], math.prod(shape[dim] for dim in order.space)
    largest = np.full((channels, 1), BYTE * elements)
    if known is not None:
        array = np.abs(constant_array(known).astype(np.int64))
        largest = array.sum(order.space, keepdims=True)
        largest = largest.transpose(order.channels, order.first, *order.space)
        largest = largest.reshape(channels, -1)
    most = EXACT // BYTE
    if (largest.sum(0) <= most).all():
        return [(0, channels)]
    parts, start = [], 0
    while start < channels:
        fits = (np.cumsum(largest[start:], 0) <= most).all(1)
        count = channels - start if fits.all() else int(np.argmin(fits))
        if start + count < channels:
            count = count // FRACTAL_SIDE * FRACTAL_SIDE or count
        if not count:
            return None
        parts.append((start, start + count))
        start += count
    return parts


def of_single_pixels(x: ir.Value, w: ir.Value, order: DimensionOrder, ops: TensorOps) -> ir.Value:
    """Images [n, 1, c] of a pixel each are the rows of a product: [n, o]."""
    n, _, channels = tensor_of(x.type).shape
    outputs = tensor_of(w.type).shape[order.first]
    rows, of_bytes = ops.reshape(x, [n, channels]), tensor_of(w.type).element == "i8"
    if of_bytes:
        array = np.moveaxis(constant_array(owner_of(w)), order.first, 0)
        weights = ops.constant(array.reshape(outputs, channels), "i8")
        kind = Tensor((n, outputs), "i32")
        return ops.emit("matmul", [rows, weights], kind, transpose_b=True)
    weights = ops.reshape(ops.transpose(w, order.turn), [channels, outputs])
    return ops.emit("matmul", [rows, weights], Tensor((n, outputs), "f32"))


@dataclass(frozen=True)
class Around:
    """What lies around images.

    Attributes:
        images: as they are given.
        edges: elements before and behind each dimension of space.
        padding: their value.
    """

    images: ir.Value
    edges: Array
    padding: int

    @staticmethod
    def of(op: Op, x: ir.Value, order: DimensionOrder) -> Around:
        """What is put around an image: the padding of the operation, and for bytes also that of a
        `pad` in front of it."""
        edges = edges_of(op, len(order.space))
        owner, plain = defining_op(x), Around(x, edges, 0)
        of_bytes = tensor_of(x.type).element == "i8" and edges.min(initial=0) >= 0
        spread = any(step > 1 for step in attribute(op, "lhs_dilation") or [])
        if not of_bytes or spread or owner is None or owner.name != "ascend.pad":
            return plain
        low, high, inside = (attribute(owner, name) for name in ("low", "high", "interior"))
        value = full_value(owner.operands[1])
        others = [low[i] or high[i] for i in range(len(low)) if i not in order.space]
        whole = np.array([[low[dim], high[dim]] for dim in order.space])
        if value is None or any(inside) or any(others) or whole.min() < 0:
            return plain
        if edges.any() and value != 0:
            return plain
        return Around(owner.operands[0], whole + edges, int(value))


def of_windows(
    image: ir.Value,
    found: Geometry,
    w: ir.Value,
    order: DimensionOrder,
    groups: int,
    ops: TensorOps,
    padding: int,
) -> ir.Value:
    """Images [n, h w, c] in windows: [n, oh ow, o]."""
    batch, _, channels = tensor_of(image.type).shape
    outputs = tensor_of(w.type).shape[order.first]
    array = known_weights(w, order)
    packed = Packing.of(found, channels) if groups == 1 else None
    if packed is not None and array is not None:
        image, array = packed.image(image, ops, padding), packed.weights(array)
        found = packed.geometry
    element = tensor_of(w.type).element
    of_bytes = element == "i8"
    if array is not None:
        laid = laid_out(array, groups, lanes(element))
        laid = np.ascontiguousarray(laid.swapaxes(1, 2)) if of_bytes else laid
        weights = ops.constant(laid, element)
    else:
        weights = matrices(w, order, groups, ops)
    rows, columns = found.windows
    lies = {name: list(getattr(found, name)) for name in LENGTHS}
    result = Tensor((batch, rows * columns, outputs), "i32" if of_bytes else "f32")
    turned = {"transpose_b": True, "padding": padding} if of_bytes else {}
    return ops.emit("conv", [image, weights], result, groups=groups, **turned, **lies)


def padded_image(
    op: Op, around: Around, order: DimensionOrder, ops: TensorOps
) -> tuple[ir.Value | None, Geometry | None]:
    """The operand as images [n, h w, c], and how windows lie on them; None if load3d cannot."""
    x, edges = around.images, around.edges
    rank, given = len(order.space), tensor_of(x.type)
    ones = [1] * rank
    strides, inside, apart = (
        attribute(op, name) or ones for name in ("window_strides", "lhs_dilation", "rhs_dilation")
    )
    w = tensor_of(op.operands[1].type)
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    kernel = [w.shape[dim] for dim in numbers.kernel_spatial_dimensions]
    x = ops.transpose(x, [order.first, *order.space, order.channels])
    pads = edges.tolist()
    if any(n > 1 for n in inside) or not all(0 <= p <= MOST_PADDING for p in edges.flat):
        zero = ops.full((), given.element, around.padding)
        low, high = ([0, *(int(p) for p in edges[:, side]), 0] for side in (0, 1))
        interior = [0, *(n - 1 for n in inside), 0]
        if 0 in pad_shape(tensor_of(x.type).shape, low, high, interior):
            return None, None
        x = padded(x, zero, low, high, interior, ops)
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


def known_weights(w: ir.Value, order: DimensionOrder) -> Array | None:
    """Weights that are constant, [kh, kw, channels of a group, outputs]; kh may be missing."""
    known = definition(w)
    return None if known is None else np.transpose(constant_array(known), order.turn)


WORTH = 2
"""How many times fewer fractals a mad must meet for images to be packed, which moves them once."""


@dataclass(frozen=True)
class Packing:
    """Pixels that windows step over become channels, so that few channels fill more of a block.

        i - top = s a + b            row i of a window, step s
        Y[y] = sum over (a, b) of X'[y + a, b] W[s a + b + top]        X'[u, b] = X[s u + b]

    A 7x7 convolution of 3 channels with a stride of 2 is a 4x4 convolution of 12.

    Attributes:
        before: how windows lie on the images.
        geometry: on the packed ones.
        shift: zeros in front of rows and of columns of the weights.
    """

    before: Geometry
    geometry: Geometry
    shift: tuple[int, int]

    @staticmethod
    def of(found: Geometry, channels: int) -> Packing | None:
        """None where mads would not meet far fewer fractals."""
        if found.strides == (1, 1) or found.dilations != (1, 1):
            return None
        image, kernel, shift, pads = [], [], [], []
        for axis in range(2):
            step, before = found.strides[axis], found.pads[2 * axis]
            size, taps = found.image[axis], found.kernel[axis]
            ahead = ceil_div(before, step)
            shift.append(step * ahead - before)
            image.append(ceil_div(size, step))
            kernel.append(ceil_div(shift[-1] + taps, step))
            behind = found.windows[axis] - 1 + kernel[-1] - ahead - image[-1]
            # What no window reaches is left out.
            image[-1] += min(0, behind)
            pads += [ahead, max(0, behind)]
        values = (image, kernel, (1, 1), (1, 1), pads)
        lies = geometry(dict(zip(LENGTHS, values, strict=True)))
        more = channels * found.strides[0] * found.strides[1]
        fractals = [
            ceil_div(count, FRACTAL_SIDE) * one.elements
            for count, one in ((channels, found), (more, lies))
        ]
        legal = min(image) > 0 and max(pads) <= MOST_PADDING
        if not legal or fractals[0] < WORTH * fractals[1]:
            return None
        return Packing(found, lies, (shift[0], shift[1]))

    def image(self, x: ir.Value, ops: TensorOps, padding: int) -> ir.Value:
        """Images [n, h w, c] packed: [n, h' w', c sh sw]."""
        n, _, channels = tensor_of(x.type).shape
        (high, wide), (sh, sw) = self.geometry.image, self.before.strides
        height, width = self.before.image
        x = ops.reshape(x, [n, height, width, channels])
        x = ops.padded(x, [n, high * sh, wide * sw, channels], padding)
        x = ops.transpose(ops.reshape(x, [n, high, sh, wide, sw, channels]), [0, 1, 3, 5, 2, 4])
        return ops.reshape(x, [n, high * wide, channels * sh * sw])

    def weights(self, w: Array) -> Array:
        """Weights [kh, kw, c, o] packed: [kh', kw', c sh sw, o]."""
        (high, wide), (sh, sw) = self.geometry.kernel, self.before.strides
        *taps, channels, outputs = w.shape
        w = w.reshape(*[1] * (2 - len(taps)), *w.shape)
        ends = [
            (shift, size * step - shift - found)
            for shift, size, step, found in zip(
                self.shift, (high, wide), (sh, sw), w.shape[:2], strict=True
            )
        ]
        w = np.pad(w, (*ends, (0, 0), (0, 0)))
        w = w.reshape(high, sh, wide, sw, channels, outputs).transpose(0, 2, 4, 1, 3, 5)
        return w.reshape(high, wide, channels * sh * sw, outputs)


def matrices(w: ir.Value, order: DimensionOrder, groups: int, ops: TensorOps) -> ir.Value:
    """Weights that are computed as `conv` has them, with groups of whole blocks."""
    found = tensor_of(w.type)
    outputs, channels = found.shape[order.first] // groups, found.shape[order.channels]
    joined = joined_groups(groups, channels, outputs)
    count = ceil_div(groups, joined)
    turn = order.turn
    kernel = [found.shape[dim] for dim in order.space]
    elements = int(np.prod(kernel))
    w = ops.reshape(ops.transpose(w, turn), [elements, channels, groups, outputs])
    w = ops.padded(w, [elements, channels, count * joined, outputs])
    if joined > 1:
        shape = [elements, joined, channels, count, joined, outputs]
        w = ops.reshape(w, [elements, channels, count, joined, outputs])
        own = ops.constant(np.eye(joined, dtype=np.float32), "f32")
        own = ops.broadcast(ops.cast(own, found.element), shape, [1, 4])
        w = ops.binary("mul", ops.broadcast(w, shape, [0, 2, 3, 4, 5]), own)
    inner, outer = joined * channels, joined * outputs
    w = ops.reshape(w, [elements, inner, count, outer])
    blocks = ceil_div(inner, FRACTAL_SIDE)
    w = ops.padded(w, [elements, blocks * FRACTAL_SIDE, count, outer])
    w = ops.reshape(w, [elements, blocks, FRACTAL_SIDE, count, outer])
    w = ops.transpose(w, [3, 1, 0, 2, 4])
    return ops.reshape(w, [count, blocks * elements * FRACTAL_SIDE, outer])


def joined_groups(groups: int, channels: int, outputs: int) -> int:
    """How many groups make one of whole blocks of channels and outputs; all of them if none do.

    What the last one lacks ends inside its last block: 17 channels that do not meet are 16 and 1,
    but 5 groups of 24 are no groups of 48, for 120 channels are 8 blocks and not 9.

    >>> joined_groups(32, 4, 4), joined_groups(17, 1, 1), joined_groups(1, 3, 64)
    (4, 16, 1)
    >>> joined_groups(55, 8, 8), joined_groups(5, 24, 24), joined_groups(20, 1, 2)
    (2, 5, 20)
    """

    def are_blocks(joined: int, each: int) -> bool:
        parts = ceil_div(groups, joined) * joined * each
        return joined * each % FRACTAL_SIDE == 0 and parts == round_up(groups * each, FRACTAL_SIDE)

    found = (n for n in range(1, groups) if are_blocks(n, channels) and are_blocks(n, outputs))
    return next(found, groups)


def laid_out(w: Array, groups: int, block: int = FRACTAL_SIDE) -> Array:
    """Weights [kh, kw, channels of a group, outputs] as `conv` has them; `block`: channels of one,
    which of several groups are whole if it is not 16."""
    channels, total = w.shape[-2:]
    outputs = total // groups
    joined = joined_groups(groups, channels, outputs)
    count = ceil_div(groups, joined)
    parts = w.reshape(-1, channels, groups, outputs)
    parts = np.pad(parts, ((0, 0), (0, 0), (0, count * joined - groups), (0, 0)))
    parts = parts.reshape(-1, channels, count, joined, outputs)
    inner = round_up(joined * channels, block)
    found = np.zeros((parts.shape[0], inner, count, joined, outputs), w.dtype)
    for i in range(joined):
        found[:, i * channels : (i + 1) * channels, :, i] = parts[:, :, :, i]
    blocks = inner // block
    split = found.reshape(parts.shape[0], blocks, block, count, joined * outputs)
    return split.transpose(3, 1, 0, 2, 4).reshape(count, -1, joined * outputs)
