"""Values of images at places that are computed, between elements and outside.

An image [N, C, ..sizes] is a table with a row of C values for each element, and one of zeros for
what is outside; places are tensors of
single precision, one for each spatial dimension, in elements.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.tensor import OnnxTensor, convert

Outside = Callable[[OnnxTensor, int], OnnxTensor]
"""Brings the index along an axis (rounded, but a float) into the image."""


@dataclass(frozen=True)
class ImageTable:
    """A table of elements, and the number of the first row for each place."""

    table: OnnxTensor
    sizes: Sequence[int]
    first: OnnxTensor

    @staticmethod
    def of(x: OnnxTensor, numbers: OnnxTensor) -> ImageTable:
        """`x` [N, C, ..sizes]; `numbers` says which of the N each place is in."""
        sizes = x.shape[2:]
        rows = ops.move_axis(x, 1, -1)
        table = ops.reshape(rows, [x.shape[0] * math.prod(sizes), x.shape[1]])
        return ImageTable(ops.pad(table, [0, 0], [1, 0]), sizes, numbers * math.prod(sizes))

    def at(self, indices: Sequence[OnnxTensor], inside: OnnxTensor | None = None) -> OnnxTensor:
        """[..places, C]; indices are whole floats within the image, zeros where not `inside`."""
        whole = [convert(index, np.int32) for index in indices]
        rows = self.first + ops.row_numbers(whole, self.sizes)
        if inside is not None:
            rows = ops.where(inside, rows, self.table.shape[0] - 1)
        return ops.take_rows(self.table, rows)


def clamp(index: OnnxTensor, size: int) -> OnnxTensor:
    return ops.clip(index, 0, size - 1)


def is_inside(index: OnnxTensor, size: int) -> OnnxTensor:
    return ops.compare("GE", index, 0) & ops.compare("LE", index, size - 1)


def sample(
    image: ImageTable,
    places: Sequence[OnnxTensor],
    offsets: Sequence[int],
    weights: Callable[[OnnxTensor], Sequence[OnnxTensor]],
    outside: Outside | None,
) -> OnnxTensor:
    """Weighted sums of the neighbours of each place: [..places, C].

    Args:
        offsets: the neighbours along an axis, from the element before the place on.
        weights: one for each of them, from how far behind that element the place is.
        outside: brings indices into the image; if None, there are zeros outside.
    """
    befores = [ops.floor(place) for place in places]
    axes = [
        list(zip(offsets, weights(place - before), strict=True))
        for place, before in zip(places, befores, strict=True)
    ]
    total: OnnxTensor | None = None
    for chosen in itertools.product(*axes):
        indices = [before + float(o) for before, (o, _) in zip(befores, chosen, strict=True)]
        weight = functools.reduce(lambda a, b: a * b, [w for _, w in chosen])
        term = value_at(image, indices, outside) * ops.expand_dims(weight, [-1])
        total = term if total is None else total + term
    assert total is not None, "every place has neighbours"
    return total


def value_at(
    image: ImageTable, indices: Sequence[OnnxTensor], outside: Outside | None
) -> OnnxTensor:
    """The elements at indices that may be outside."""
    pairs = list(zip(indices, image.sizes, strict=True))
    if outside is not None:
        return image.at([clamp(outside(index, size), size) for index, size in pairs])
    inside = functools.reduce(lambda a, b: a & b, [is_inside(*pair) for pair in pairs])
    return image.at([clamp(*pair) for pair in pairs], inside)


def linear(
    image: ImageTable, places: Sequence[OnnxTensor], outside: Outside | None = None
) -> OnnxTensor:
    return sample(image, places, (0, 1), lambda r: (1 - r, r), outside)


def corners(image: ImageTable, places: Sequence[OnnxTensor]) -> list[OnnxTensor]:
    """The elements around places, each times its weight.

    Places are brought inside, but those more than an element away count nothing.
    """
    pairs = list(zip(places, image.sizes, strict=True))
    within = functools.reduce(lambda a, b: a & b, [is_within(*pair) for pair in pairs])
    inside = [clamp(place, size) for place, size in pairs]
    befores = [ops.floor(place) for place in inside]
    axes = [
        [(before, 1 - (place - before)), (clamp(before + 1.0, size), place - before)]
        for before, place, size in zip(befores, inside, image.sizes, strict=True)
    ]
    return [
        image.at([index for index, _ in chosen], within)
        * ops.expand_dims(functools.reduce(lambda a, b: a * b, [w for _, w in chosen]), [-1])
        for chosen in itertools.product(*axes)
    ]


def is_within(place: OnnxTensor, size: int) -> OnnxTensor:
    """Whether a place is in the image or at most one element outside."""
    return ops.compare("GE", place, -1) & ops.compare("LE", place, size)


def cubic(
    image: ImageTable, places: Sequence[OnnxTensor], outside: Outside | None = None
) -> OnnxTensor:
    return sample(image, places, (-1, 0, 1, 2), cubic_weights, outside)


def nearest(
    image: ImageTable, places: Sequence[OnnxTensor], outside: Outside | None = None
) -> OnnxTensor:
    """Halves go to the even element."""
    return value_at(image, [ops.round_half_even(place) for place in places], outside)


CUBIC_SLOPE = -0.75


def cubic_weights(r: OnnxTensor) -> list[OnnxTensor]:
    """Weights of the elements at -1, 0, 1 and 2 in cubic interpolation (Keys, 1981)."""
    a = CUBIC_SLOPE

    def near(d: OnnxTensor) -> OnnxTensor:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: OnnxTensor) -> OnnxTensor:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [far(r + 1), near(r), near(1 - r), far(2 - r)]
