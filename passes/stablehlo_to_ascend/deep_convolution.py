"""Convolutions of three and more spatial dimensions as ones of two, whose channels hold the rest.

With K taps along a dimension, of which each result meets those that begin at its element

    Y[n, o, z] = sum over (k, c) of X[n, c, z s + k d] W[o, c, k]
               = sum over (k, c) of X'[(n, z), (k, c)] W'[o, (k, c)]

so the dimension joins the batch, and its taps the channels: X' is a strided slice of X for each
tap. The dimension with the fewest taps is the one that goes, for it has the fewest slices.

Convolutions of one or two dimensions lose one in the same way whose taps are further apart than the
unit that makes windows can reach.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from davinci.dialects.base import attribute
from davinci.mlir import Op, ir, stablehlo
from davinci.operators.conv import MOST_DILATION, MOST_STRIDE
from davinci.passes.stablehlo_to_ascend import tensors as t
from davinci.passes.stablehlo_to_ascend.padding import edges_of
from davinci.passes.stablehlo_to_ascend.transposed_convolution import padded

MOST_DIMENSIONS = 2
"""Spatial dimensions of an image."""

NONE = 1
"""Size of the dimension that a convolution has where its only one has gone."""


@dataclass(frozen=True)
class Dimension:
    """A spatial dimension of a convolution.

    Attributes:
        number: which of them it is.
        size: of the result.
        edges: elements before and behind those of the operand, negative ones are cut.
        inside: distance of elements of the operand, between which zeros are.
    """

    number: int
    size: int
    taps: int
    stride: int
    dilation: int
    inside: int
    edges: tuple[int, int]

    def slices(self, x: ir.Value) -> ir.Value:
        """Those of all taps of [n, size, .., c], beside each other along the last dimension."""
        none, last = [0] * x.type.rank, x.type.rank - 1
        low, high, interior = [*none], [*none], [*none]
        (low[1], high[1]), interior[1] = self.edges, self.inside - 1
        x = padded(x, low, high, interior)
        reach = (self.size - 1) * self.stride + 1
        shape, strides = list(x.type.shape), [1] * x.type.rank
        shape[1], strides[1] = self.size, self.stride
        kind, parts = ir.RankedTensorType.get(shape, x.type.element_type), []
        for tap in range(self.taps):
            starts, limits = [*none], list(x.type.shape)
            starts[1] = tap * self.dilation
            limits[1] = starts[1] + reach
            places = {"start_indices": starts, "limit_indices": limits, "strides": strides}
            parts.append(x if kind == x.type else t.op("slice", [x], kind, **places))
        return t.concatenate(parts, last)


def dimensions(op: Op) -> list[Dimension]:
    """The spatial dimensions of a `stablehlo.convolution`."""
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    rank = len(list(numbers.input_spatial_dimensions))
    strides, inside, apart = (
        attribute(op, name) or [1] * rank
        for name in ("window_strides", "lhs_dilation", "rhs_dilation")
    )
    sizes = [op.results[0].type.shape[dim] for dim in numbers.output_spatial_dimensions]
    taps = [op.operands[1].type.shape[dim] for dim in numbers.kernel_spatial_dimensions]
    ends = [(int(low), int(high)) for low, high in edges_of(op, rank)]
    fields = zip(range(rank), sizes, taps, strides, apart, inside, ends, strict=True)
    return [Dimension(*each) for each in fields]


def expand_deep(op: Op) -> list[ir.Value] | None:
    """The result of a `stablehlo.convolution` by one of a dimension less, pixels by channels; None
    if it has no more than two and no taps too far apart, is empty, or one of groups of the
    batch."""
    x, w = op.operands
    found, result = dimensions(op), op.results[0].type
    turned = any(attribute(op, "window_reversal") or [])
    empty = 0 in (*x.type.shape, *w.type.shape, *result.shape)
    far = [each for each in found if is_far(each)]
    fits = len(found) <= MOST_DIMENSIONS and not far
    if fits or empty or turned or attribute(op, "batch_group_count") != 1:
        return None
    gone = min(far or found, key=lambda each: each.taps)
    others = [each for each in found if each is not gone]
    rest = others or [Dimension(0, NONE, NONE, 1, 1, 1, (0, 0))]
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    first, last = numbers.output_batch_dimension, numbers.output_feature_dimension
    groups = attribute(op, "feature_group_count")
    sizes = [each.size for each in rest]
    batch, outputs = result.shape[first], result.shape[last]
    made = t.op(
        "convolution",
        [images(x, numbers, gone, groups), kernels(w, numbers, gone)],
        ir.RankedTensorType.get([batch * gone.size, *sizes, outputs], result.element_type),
        dimension_numbers=channels_last(len(rest)),
        window_strides=[each.stride for each in rest],
        padding=ir.DenseIntElementsAttr.get(np.array([each.edges for each in rest], np.int64)),
        lhs_dilation=[each.inside for each in rest],
        rhs_dilation=[each.dilation for each in rest],
        feature_group_count=groups,
        batch_group_count=1,
    )
    order = [first, *moved_to_front(list(numbers.output_spatial_dimensions), gone), last]
    made = t.reshape(made, [batch, gone.size, *(each.size for each in others), outputs])
    return [t.transpose(made, [order.index(dim) for dim in range(result.rank)])]


def is_far(each: Dimension) -> bool:
    """Whether windows, or their taps, are further apart than can be reached."""
    return each.stride > MOST_STRIDE or (each.taps > 1 and each.dilation > MOST_DILATION)


def moved_to_front(dims: list[int], gone: Dimension) -> list[int]:
    """Spatial dimensions of an array, the one that goes first."""
    return [dims[gone.number], *dims[: gone.number], *dims[gone.number + 1 :]]


def images(
    x: ir.Value, numbers: stablehlo.ConvDimensionNumbers, gone: Dimension, groups: int
) -> ir.Value:
    """The operand as [n size, .., c taps], taps in front of the channels of a group."""
    space = moved_to_front(list(numbers.input_spatial_dimensions), gone)
    order = [numbers.input_batch_dimension, *space, numbers.input_feature_dimension]
    x = t.transpose(x, order)
    batch, _, *sizes, channels = x.type.shape
    if groups > 1:
        x = t.reshape(x, [*x.type.shape[:-1], groups, channels // groups])
    left = sizes or [NONE]
    return t.reshape(gone.slices(x), [batch * gone.size, *left, channels * gone.taps])


def kernels(w: ir.Value, numbers: stablehlo.ConvDimensionNumbers, gone: Dimension) -> ir.Value:
    """The weights as [.., taps c, o]."""
    tap, *space = moved_to_front(list(numbers.kernel_spatial_dimensions), gone)
    inner, outer = numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension
    w = t.transpose(w, [*space, tap, inner, outer])
    *taps, count, channels, outputs = w.type.shape
    return t.reshape(w, [*(taps or [NONE]), count * channels, outputs])


def channels_last(rank: int) -> ir.Attribute:
    """Dimension numbers of images [n, .., c] and weights [.., c, o]."""
    space = ", ".join(map(str, range(rank)))
    return ir.Attribute.parse(f"#stablehlo.conv<[b, {space}, f]x[{space}, i, o]->[b, {space}, f]>")
