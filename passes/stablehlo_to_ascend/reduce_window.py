"""Conversion of reductions over windows, of images to `pool` on [n, h w, c].

Others go dimension by dimension, covered elements doubled:

    y[i] = x[i] + .. + x[i + 6]     two = x[i] + x[i + 1]     four = two[i] + two[i + 2]
                                    y = four[i] + two[i + 4] + x[i + 6]

So a window of k elements takes log2(k) operations on the whole tensor, and as many more as k has
ones; a running sum, whose windows reach back to the first element, is one of these. Windows of
three dimensions go so along the first, then as images.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.elements import Array
from davinci.mlir import Op, ir
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
from davinci.operators.pool import KINDS, has_pixels
from davinci.operators.tensors import Tensor
from davinci.passes.ascend.tensor_ops import TensorOps, full_value
from davinci.passes.stablehlo_to_ascend import conversion
from davinci.passes.stablehlo_to_ascend.padding import edges_of, padded
from davinci.passes.stablehlo_to_ascend.reduced_values import KINDS_OF_ORDER, neutral
from davinci.passes.stablehlo_to_ascend.reductions import kind_of_body
from davinci.units import FRACTAL_SIDE


@dataclass(frozen=True)
class WindowShape:
    """How windows lie on an array; for each of its dimensions.

    Attributes:
        edges: elements of the start value before and behind, [rank, 2]; negative ones are cut.
        inside: distance of elements, between which are others of the start value.
    """

    sizes: list[int]
    strides: list[int]
    apart: list[int]
    inside: list[int]
    edges: Array

    @staticmethod
    def of(op: Op) -> WindowShape:
        """Those of an operation; where there is one window along a dimension, the least stride."""
        shape, made = (tensor_of(value.type).shape for value in (op.operands[0], op.results[0]))
        rank = len(shape)
        strides, inside, apart = (
            attribute(op, name) or [1] * rank
            for name in ("window_strides", "base_dilations", "window_dilations")
        )
        sizes, edges = attribute(op, "window_dimensions"), edges_of(op, rank)
        lengths = (np.array(shape) - 1) * inside + 1 + edges.sum(1)
        behind = lengths - ((np.array(sizes) - 1) * apart + 1)
        strides = [
            int(left) + 1 if count == 1 else stride
            for count, left, stride in zip(made, behind, strides, strict=True)
        ]
        return WindowShape(sizes, strides, apart, inside, edges)

    @property
    def space(self) -> list[int]:
        """Dimensions that are not as they were."""
        return [
            dim
            for dim, (size, stride) in enumerate(zip(self.sizes, self.strides, strict=True))
            if (size, stride) != (1, 1) or self.edges[dim].any()
        ]

    def permuted(self, order: list[int]) -> WindowShape:
        """Those on a transposed array, whose dimensions are these of the array."""
        lengths = (self.sizes, self.strides, self.apart, self.inside)
        sizes, strides, apart, inside = ([values[dim] for dim in order] for values in lengths)
        return WindowShape(sizes, strides, apart, inside, self.edges[order])

    def along(self, dims: list[int]) -> WindowShape:
        """Along some dimensions only."""

        def kept(values: list[int]) -> list[int]:
            return [n if dim in dims else 1 for dim, n in enumerate(values)]

        edges = np.where(np.isin(np.arange(len(self.sizes)), dims)[:, None], self.edges, 0)
        return WindowShape(
            kept(self.sizes), kept(self.strides), kept(self.apart), kept(self.inside), edges
        )


@conversion("reduce_window")
def convert_reduce_window(op: Op, ops: TensorOps) -> Sequence[ir.Value] | None:
    """Converts reductions over windows of one operand that is no boolean, whose body is one
    operation. Sums and products begin with the neutral value; extremes with any, which is compared
    with those of windows."""
    kind = kind_of_body(op)
    operand, start = op.operands[0], op.operands[-1]
    found, result = tensor_of(operand.type), tensor_of(op.results[0].type)
    value = full_value(start)
    if kind is None or value is None or found.element == "i1" or not result.count:
        return None
    begins = value != neutral(kind, value.dtype)
    if (begins and kind not in KINDS_OF_ORDER) or not found.count:
        return None
    windows = WindowShape.of(op)
    wide = found.element == "f16" and kind in ("add", "mul")
    x, space = operand, windows.space
    # Images have two dimensions; along those in front windows are combined as whole images.
    deep = space[:-2] if set(windows.inside) == {1} else []
    if deep:
        x = ops.cast(x, "f32") if wide else x
        x = by_dimension(x, start, windows.along(deep), kind, result, ops)
        windows = windows.along(space[-2:])
    images = images_of(tensor_of(x.type), deep, kind, windows)
    if images is not None:
        made = images.emit(x, result.shape, ops)
    else:
        x = ops.cast(x, "f32") if wide else x
        made = by_dimension(x, start, windows, kind, result, ops)
    made = ops.cast(made, found.element)
    return [
        ops.binary(kind, made, ops.full(result.shape, found.element, value)) if begins else made
    ]


def by_dimension(
    x: ir.Value, start: ir.Value, windows: WindowShape, kind: str, result: Tensor, ops: TensorOps
) -> ir.Value:
    """Windows along one dimension after the other, as many as the result has."""
    order = scan_order(windows, tensor_of(x.type).shape, result.shape)
    back = [order.index(dim) for dim in range(len(order))]
    windows, shape = windows.permuted(order), [result.shape[dim] for dim in order]
    x = surrounded(ops.transpose(x, order), start, windows, ops)
    lengths = zip(windows.sizes, windows.strides, windows.apart, strict=True)
    space = windows.space
    for dim, (size, stride, step) in enumerate(lengths):
        if dim in space or windows.inside[dim] > 1:
            x = combined(x, dim, size, step, stride, shape[dim], kind, ops)
    return ops.transpose(x, back)


LONG = 16
"""Elements of windows of rows that are worth a transposition there and back."""

LEAST_ROWS = 8
"""Rows whose elements fill a block of 32 bytes."""


def scan_order(windows: WindowShape, shape: Sequence[int], result: Sequence[int]) -> list[int]:
    """The order of dimensions in which windows are combined: long ones of rows along the first,
    where elements that are combined lie whole rows apart, so that blocks of 32 bytes meet."""
    *outer, last = range(len(shape))
    rows = math.prod(shape[dim] for dim in outer)
    several = windows.space == [last] and result[last] > 1
    if several and windows.sizes[last] >= LONG and rows >= LEAST_ROWS:
        return [last, *outer]
    return [*outer, last]


LEAST_CHANNELS = 4
"""Channels, of the 16 lanes of a block, below which the other way takes no longer."""

MOST_BYTES = 1 << 16
"""Pixels that a row of windows may reach, as f32: of those every UB holds what a tile takes."""


@dataclass(frozen=True)
class WindowedImages:
    """A reduction over windows as one of images.

    Attributes:
        order: dimensions of the operand: those of the batch, of height and width, of channels.
        space: how many are of height and width.
    """

    order: list[int]
    space: int
    geometry: Geometry
    kind: str

    def emit(self, operand: ir.Value, made_shape: tuple[int, ...], ops: TensorOps) -> ir.Value:
        """As `pool`, of a shape."""
        shape, element = tensor_of(operand.type).shape, tensor_of(operand.type).element
        batch = math.prod(shape[dim] for dim in self.order[: -self.space - 1])
        channels, (height, width) = shape[self.order[-1]], self.geometry.image
        x = ops.reshape(ops.transpose(operand, self.order), [batch, height * width, channels])
        rows, columns = self.geometry.windows
        lies = {name: list(getattr(self.geometry, name)) for name in LENGTHS}
        kind = Tensor((batch, rows * columns, channels), element)
        made = ops.emit("pool", [x], kind, kind=self.kind, **lies)
        made = ops.reshape(made, [made_shape[dim] for dim in self.order])
        return ops.transpose(made, [self.order.index(dim) for dim in range(len(made_shape))])


def images_of(
    found: Tensor, deep: list[int], kind: str, windows: WindowShape
) -> WindowedImages | None:
    """The images of windows along one or two dimensions; None if there are no such images.

    Args:
        deep: dimensions that are no channels, for windows lay along them.
    """
    sizes, strides, apart, edges = windows.sizes, windows.strides, windows.apart, windows.edges
    space = windows.space
    if found.rank == 4 and len(space) == 1:
        # Images whose other side is left alone have as many channels as they can.
        sides = [pair for pair in ((2, 3), (1, 2)) if space[0] in pair]
        space = [
            *max(sides, key=lambda pair: found.shape[1 if pair == (2, 3) else 3], default=space)
        ]
    others = [dim for dim in range(found.rank) if dim not in (*space, *deep)]
    if not 1 <= len(space) <= 2 or not others or found.shape[others[-1]] < LEAST_CHANNELS:
        return None
    if kind not in KINDS or found.element not in FLOATS or set(windows.inside) != {1}:
        return None
    one_row = [1] * (2 - len(space))
    image, kernel, steps, dilations = (
        (*one_row, *(values[dim] for dim in space))
        for values in (found.shape, sizes, strides, apart)
    )
    pads = (*([0, 0] * len(one_row)), *(int(n) for dim in space for n in edges[dim]))
    values = zip(LENGTHS, (image, kernel, steps, dilations, pads), strict=True)
    lies = geometry(dict(values))
    limits = (MOST_SIDE, MOST_KERNEL, MOST_STRIDE, MOST_DILATION)
    pairs = (image, kernel, steps, dilations)
    if any(max(pair) > most for pair, most in zip(pairs, limits, strict=True)):
        return None
    if not all(0 <= n <= MOST_PADDING for n in pads) or not has_pixels(lies):
        return None
    reached = lies.extent[0] * (image[1] + pads[2] + pads[3]) * 4 * FRACTAL_SIDE
    if reached > MOST_BYTES:
        return None
    return WindowedImages([*others[:-1], *deep, *space, others[-1]], len(space), lies, kind)


def surrounded(
    operand: ir.Value, start: ir.Value, windows: WindowShape, ops: TensorOps
) -> ir.Value:
    """The operand with the start value around it and between its elements."""
    found = tensor_of(operand.type)
    low, high = (windows.edges[:, side].tolist() for side in (0, 1))
    interior = [n - 1 for n in windows.inside]
    return padded(operand, ops.cast(start, found.element), low, high, interior, ops)


def combined(
    x: ir.Value, dim: int, size: int, step: int, stride: int, count: int, kind: str, ops: TensorOps
) -> ir.Value:
    """Windows of `size` elements, `step` apart, along a dimension: `count` of them."""
    length = tensor_of(x.type).shape[dim]
    reach = (count - 1) * stride + 1
    if count == 1 and step == 1 and size > 1:
        whole = part(x, dim, 0, size, 1, ops)
        shape = list(tensor_of(whole.type).shape)
        shape[dim] = 1
        return ops.reshape(ops.reduce(whole, kind, [dim]), shape)
    at, covered = 0, 1
    result: ir.Value | None = None
    while True:
        if size & covered:
            piece = part(x, dim, at * step, at * step + reach, stride, ops)
            result = piece if result is None else ops.binary(kind, result, piece)
            at += covered
        if result is not None and at == size:
            return result
        length -= covered * step
        first, second = (
            part(x, dim, begin, begin + length, 1, ops) for begin in (0, covered * step)
        )
        x, covered = ops.binary(kind, first, second), 2 * covered


def part(x: ir.Value, dim: int, start: int, limit: int, stride: int, ops: TensorOps) -> ir.Value:
    """x[.., start : limit : stride, ..]."""
    shape = tensor_of(x.type).shape
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[dim], limits[dim], strides[dim] = start, limit, stride
    return ops.cut(x, starts, limits, strides)
