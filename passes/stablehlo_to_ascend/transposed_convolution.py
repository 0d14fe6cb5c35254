"""Transposed convolutions as plain ones, whose results are parted into neighbouring pixels.

With s - 1 zeros between the elements of x and p in front of them

    y[s q + a] = sum over j of x[q + j] w[s j + p - a]        a = 0 .. s - 1

so for each a there is a convolution of x as it is, with every s-th weight. All of them together are
one with s times the outputs; those of a pixel then become neighbours. No zero is multiplied.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from davinci.dialects.base import attribute
from davinci.mlir import Op, ir, stablehlo
from davinci.operators.parts import pad_shape
from davinci.passes.stablehlo_to_ascend import tensors as t
from davinci.passes.stablehlo_to_ascend.padding import edges_of
from davinci.units import ceil_div

Part = tuple[str, int]
"""A dimension of which an array's is made: what it is, and which of these."""


@dataclass(frozen=True)
class SpatialAxis:
    """A spatial dimension.

    Attributes:
        size: of the result.
        step: zeros between elements of the operand, and one.
        taps: of the weights.
        low: zeros in front of the operand, or less than 0.
        inputs: size of the operand.
    """

    size: int
    step: int
    taps: int
    low: int
    inputs: int

    @property
    def count(self) -> int:
        """Results of one phase a."""
        return ceil_div(self.size, self.step)

    @property
    def last(self) -> int:
        """The largest j of any phase."""
        return (self.taps - 1 - self.low + self.step - 1) // self.step

    @property
    def kernel(self) -> int:
        """Weights of one phase."""
        return self.last + self.low // self.step + 1

    @property
    def pads(self) -> tuple[int, int]:
        """Zeros around the operand as it is."""
        return self.low // self.step, self.count - 1 + self.last - (self.inputs - 1)

    @property
    def weights_low(self) -> int:
        """Zeros in front of the weights: those of j are s in a row, the last phase first."""
        return self.step - 1 - self.low % self.step


def expand_transposed(op: Op) -> list[ir.Value] | None:
    """The result of a `stablehlo.convolution`; None if it is a plain one already, or one with
    strides or of groups of the batch."""
    inside = attribute(op, "lhs_dilation") or []
    strides, apart = attribute(op, "window_strides") or [], attribute(op, "rhs_dilation") or []
    others = [*strides, attribute(op, "batch_group_count")]
    turned = any(attribute(op, "window_reversal") or [])
    result = op.results[0].type
    if max(inside, default=1) == 1 or set(others) != {1} or turned or 0 in result.shape:
        return None
    x, w = op.operands
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    taps_of = list(numbers.kernel_spatial_dimensions)
    pixels_of = list(numbers.output_spatial_dimensions)
    if max(apart, default=1) > 1:
        interior = [0] * w.type.rank
        for dim, distance in zip(taps_of, apart, strict=True):
            interior[dim] = distance - 1
        w = padded(w, [0] * w.type.rank, [0] * w.type.rank, interior)
    edges = edges_of(op, len(inside))
    axes = [
        SpatialAxis(result.shape[y], step, w.type.shape[k], int(edge[0]), x.type.shape[n])
        for y, step, k, edge, n in zip(
            pixels_of, inside, taps_of, edges, numbers.input_spatial_dimensions, strict=True
        )
    ]
    groups = attribute(op, "feature_group_count")
    weights = phase_weights(w, axes, taps_of, numbers.kernel_output_feature_dimension, groups)
    phases = math.prod(inside)
    shape = [*result.shape]
    shape[numbers.output_feature_dimension] *= phases
    for dim, axis in zip(pixels_of, axes, strict=True):
        shape[dim] = axis.count
    ones = [1] * len(axes)
    pads = np.array([axis.pads for axis in axes], np.int64)
    made = t.op(
        "convolution",
        [x, weights],
        ir.RankedTensorType.get(shape, result.element_type),
        dimension_numbers=op.attributes["dimension_numbers"],
        window_strides=ones,
        padding=ir.DenseIntElementsAttr.get(pads),
        lhs_dilation=ones,
        rhs_dilation=ones,
        feature_group_count=groups,
        batch_group_count=1,
    )
    return [neighbours(made, result, axes, pixels_of, numbers.output_feature_dimension, groups)]


def phase_weights(
    w: ir.Value, axes: Sequence[SpatialAxis], taps_of: Sequence[int], outputs: int, groups: int
) -> ir.Value:
    """Weights of all phases; phases are outputs within their group, in front of the others."""
    low, high = [0] * w.type.rank, [0] * w.type.rank
    for dim, axis in zip(taps_of, axes, strict=True):
        low[dim] = axis.weights_low
        high[dim] = axis.step * axis.kernel - axis.taps - axis.weights_low
    w = padded(w, low, high, [0] * w.type.rank)
    before: list[dict[Part, int]] = [{("other", i): n} for i, n in enumerate(w.type.shape)]
    behind: list[list[Part]] = [[("other", i)] for i in range(w.type.rank)]
    before[outputs] = {("group", 0): groups, ("output", 0): w.type.shape[outputs] // groups}
    phases = [("phase", i) for i in range(len(axes))]
    behind[outputs] = [("group", 0), *phases, ("output", 0)]
    for i, (dim, axis) in enumerate(zip(taps_of, axes, strict=True)):
        before[dim] = {("tap", i): axis.kernel, ("phase", i): axis.step}
        behind[dim] = [("tap", i)]
    return regrouped(w, before, behind, phases)


def neighbours(
    made: ir.Value,
    result: ir.RankedTensorType,
    axes: Sequence[SpatialAxis],
    pixels_of: Sequence[int],
    features: int,
    groups: int,
) -> ir.Value:
    """Phases, which are features, become pixels beside each other; what is too much is cut."""
    phases = {("phase", i): axis.step for i, axis in enumerate(axes)}
    outputs = result.shape[features] // groups
    before: list[dict[Part, int]] = [{("other", i): n} for i, n in enumerate(made.type.shape)]
    behind: list[list[Part]] = [[("other", i)] for i in range(result.rank)]
    before[features] = {("group", 0): groups, **phases, ("output", 0): outputs}
    behind[features] = [("group", 0), ("output", 0)]
    for i, dim in enumerate(pixels_of):
        behind[dim].append(("phase", i))
    whole = regrouped(made, before, behind)
    if whole.type == result:
        return whole
    none, ones = [0] * result.rank, [1] * result.rank
    limits = list(result.shape)
    return t.op("slice", [whole], result, start_indices=none, limit_indices=limits, strides=ones)


def regrouped(
    x: ir.Value,
    before: Sequence[dict[Part, int]],
    behind: Sequence[Sequence[Part]],
    reversed_: Sequence[Part] = (),
) -> ir.Value:
    """Dimensions parted, moved, and joined again.

    Args:
        before: parts of each dimension with their sizes.
        behind: parts that each dimension of the result is made of.
        reversed_: parts whose order is turned round.
    """
    sizes = {part: size for parts in before for part, size in parts.items()}
    order = list(sizes)
    x = t.reshape(x, list(sizes.values()))
    for part in reversed_:
        x = turned_round(x, order.index(part))
    x = t.transpose(x, [order.index(part) for part in itertools.chain(*behind)])
    return t.reshape(x, [math.prod(sizes[part] for part in parts) for parts in behind])


def turned_round(x: ir.Value, dim: int) -> ir.Value:
    """`x` from the last to the first index of a dimension of few, as slices that are put together:
    `reverse` runs on the scalar unit."""
    shape, element, count = list(x.type.shape), x.type.element_type, x.type.shape[dim]
    if count == 1:
        return x
    kind = ir.RankedTensorType.get([*shape[:dim], 1, *shape[dim + 1 :]], element)
    parts = []
    for i in reversed(range(count)):
        starts = [i if d == dim else 0 for d in range(len(shape))]
        limits = [i + 1 if d == dim else n for d, n in enumerate(shape)]
        ones = [1] * len(shape)
        parts.append(
            t.op("slice", [x], kind, start_indices=starts, limit_indices=limits, strides=ones)
        )
    return t.op("concatenate", parts, x.type, dimension=dim)


def padded(x: ir.Value, low: list[int], high: list[int], interior: list[int]) -> ir.Value:
    """With zeros around it and between its elements; itself where there are none."""
    if not any((*low, *high, *interior)):
        return x
    shape = list(pad_shape(x.type.shape, low, high, interior))
    element = x.type.element_type
    zero = t.full(ir.RankedTensorType.get([], element), 0)
    edges = {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": interior}
    return t.op("pad", [x, zero], ir.RankedTensorType.get(shape, element), **edges)
