"""`x[0]`, `x[:, 2:8]` and neighbours `x[i - 1, j + 1]` of symbolic arrays.

Neighbours are named with the indices that `gdp.indices()` gives; an image's last dimensions are
indexed, others come along:

    i, j = gdp.indices()
    edge = gdp.where(img[i, j] > img[i - 1, j], 1.0, 0.0)      # [..., h, w]

What lies outside of the image is said by a border rule, zeros if there is none:

    img = gdp.border(img, "reflect")                            # replicate, constant

Every neighbour that a program asks of one array with one border is a part of one padded array,
which `davinci.gdp.lowering` makes as large as the farthest of them needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from davinci.errors import InputError, did_you_mean
from davinci.frontends.onnx import ops
from davinci.frontends.onnx.tensor import BadNode, OnnxTensor, broadcast, emit
from davinci.gdp.arrays import Array, Number, SourceLine, caller, inferred, of
from davinci.units import FRACTAL_SIDE as BLOCK
from davinci.units import round_up

RULES = ("constant", "replicate", "reflect")
"""Border rules: a number, the nearest pixel (aaa|abcd|ddd), or the image mirrored at its outermost
pixels (dcb|abcd|cba), which is OpenCV's BORDER_REFLECT_101."""


@dataclass(frozen=True)
class Index:
    """The index of a pixel along one spatial dimension, moved by a number of pixels.

    Attributes:
        axis: number of the spatial dimension, 0 for the first.
        of: how many spatial dimensions there are.
        offset: pixels behind (in front of, if negative) the one that is computed.
    """

    axis: int
    of: int
    offset: int = 0

    def __add__(self, pixels: int) -> Index:
        return Index(self.axis, self.of, self.offset + whole(pixels))

    def __radd__(self, pixels: int) -> Index:
        return self + pixels

    def __sub__(self, pixels: int) -> Index:
        return self + -whole(pixels)


def whole(pixels: Any) -> int:
    if isinstance(pixels, bool) or not isinstance(pixels, (int, np.integer)):
        raise InputError(
            "indices move by whole pixels",
            where=str(caller()),
            found=repr(pixels),
            expected="an integer, as in img[i - 1, j]",
        )
    return int(pixels)


def indices(count: int = 2) -> tuple[Index, ...]:
    """One index for each of the last `count` dimensions, the rows first."""
    return tuple(Index(axis, count) for axis in range(count))


@dataclass(frozen=True)
class Border:
    """What lies around an image: one of `RULES`, and the number of `constant`."""

    rule: str = "constant"
    value: Number = 0


class Bordered:
    """An array with a border rule, to be indexed by `gdp.indices()`."""

    def __init__(self, array: Array, border: Border) -> None:
        self.array, self.border = array, border

    def __getitem__(self, key: Any) -> Array:
        keys = key if isinstance(key, tuple) else (key,)
        if not keys or not all(isinstance(each, Index) for each in keys):
            raise InputError(
                "an array with a border is indexed by pixels",
                where=str(caller()),
                found=repr(key),
                expected="i, j = gdp.indices(); img[i - 1, j]",
            )
        return neighbour(self.array, self.border, keys)


def border(array: Array, rule: str, value: Number = 0) -> Bordered:
    """`array` with a rule for what lies around it: "constant" (the number `value`), "replicate" or
    "reflect".

    Raises:
        InputError: there is no such rule, or a value with one that has none.
    """
    if rule not in RULES or (rule != "constant" and value != 0):
        raise InputError(
            "no border rule" if rule not in RULES else f"{rule} takes no value",
            where=str(caller()),
            found=repr(rule) if rule not in RULES else repr(value),
            expected=", ".join(RULES),
            hint=did_you_mean(rule, RULES) if rule not in RULES else "",
        )
    return Bordered(array, Border(rule, value))


class Neighbour(Array):
    """An array moved along its last dimensions, what comes in at the sides by a border rule.

    Attributes:
        border: what lies outside.
        offsets: pixels along each of the last dimensions: element p is the one at p + offset.
    """

    def __init__(
        self, source: Array, border: Border, offsets: Sequence[int], place: SourceLine
    ) -> None:
        self.border, self.offsets = border, tuple(offsets)
        inferred(self.alone, (source,), place)  # refuses what the rule cannot do
        super().__init__(source.dtype, source.shape, place, (source,), self.alone)

    def alone(self, x: OnnxTensor) -> OnnxTensor:
        """The neighbour of `x`, from an array that is padded for it only."""
        reach = [abs(offset) for offset in self.offsets]
        return self.cut(padded(x, self.border, reach), x)

    def cut(self, around: OnnxTensor, x: OnnxTensor) -> OnnxTensor:
        """The part of a padded `x` that is this neighbour.

        Args:
            around: `x` with as many pixels on both sides of each of its last dimensions.
        """
        margins = [(a - b) // 2 for a, b in zip(around.shape, x.shape, strict=True)]
        offsets = [0] * (x.rank - len(self.offsets)) + [*self.offsets]
        starts = [margin + offset for margin, offset in zip(margins, offsets, strict=True)]
        limits = [start + size for start, size in zip(starts, x.shape, strict=True)]
        return ops.cut(around, starts, limits)


def neighbour(source: Array, border: Border, keys: Sequence[Index]) -> Array:
    """The array of the pixels that `keys` name, all of `gdp.indices()` in order."""
    place, count = caller(), keys[0].of
    if [key.axis for key in keys] != list(range(count)) or {key.of for key in keys} != {count}:
        raise InputError(
            "pixels are named by all indices in order",
            where=str(place),
            found=f"indices of dimensions {[key.axis for key in keys]}",
            expected=f"dimensions {list(range(count))} of gdp.indices({count})",
        )
    offsets = [key.offset for key in keys]
    if count > source.ndim:
        raise InputError(
            "more indices than dimensions",
            where=str(place),
            found=repr(source),
            expected=f"{count} dimensions at least",
        )
    if not any(offsets):
        return source
    return Neighbour(source, border, offsets, place)


def margins_of(shape: Sequence[int], reach: Sequence[int]) -> list[int]:
    """Pixels that are put on both sides of each of the last dimensions for neighbours that reach so
    far: rows of whole blocks get whole blocks, so that all pixels are moved in blocks."""
    margins, width = list(reach), shape[-1]
    whole = round_up(reach[-1], BLOCK)
    if width % BLOCK == 0 and width >= LEAST_BLOCKS * max(whole, BLOCK):
        margins[-1] = whole
    return margins


LEAST_BLOCKS = 8
"""Blocks of a row for each of a margin, so that margins take a quarter of the time at most."""


def padded(x: OnnxTensor, border: Border, reach: Sequence[int]) -> OnnxTensor:
    """`x` with the margins of `margins_of` on both sides of each of its last dimensions."""
    others, margins = x.rank - len(reach), margins_of(x.shape, reach)
    if border.rule == "constant":
        sides = [0] * others + margins
        return ops.pad(x, sides, sides, border.value)
    for axis, pixels in enumerate(reach, others):
        check_border(x, border.rule, axis, pixels)
    # Both sides and the middle are as high as needed before they are joined: what is large is
    # moved once.
    parts = around(x, border.rule, x.rank - 1, margins[-1])
    for axis, pixels in enumerate(margins[:-1], others):
        parts = [ops.concat(around(t, border.rule, axis, pixels), axis) for t in parts]
    made = ops.concat(parts, x.rank - 1)
    # Parts of its parts would be moved apart from each other, so that most is moved twice.
    return emit("optimization_barrier", [made], made.dtype, made.shape)


def check_border(x: OnnxTensor, rule: str, axis: int, pixels: int) -> None:
    """Raises `BadNode` if there are no pixels for a border."""
    size = x.shape[axis]
    if pixels and not size:
        raise BadNode(f"no pixels to {rule} along dimension {axis}", "an image that is not empty")
    if pixels and rule == "reflect" and pixels >= size:
        raise BadNode(
            f"{pixels} pixels reflected along dimension {axis} of an image of {size}",
            "a border narrower than the image",
        )


def around(x: OnnxTensor, rule: str, axis: int, pixels: int) -> list[OnnxTensor]:
    """What lies in front of `x` along a dimension, `x`, and what lies behind it."""
    size = x.shape[axis]
    if not pixels:
        return [x]
    if rule == "reflect":
        starts = (1, size - 1 - pixels)
        first, last = (ops.cut_axis(x, axis, at, at + pixels) for at in starts)
        return [mirrored(first, axis), x, mirrored(last, axis)]
    shape = [*x.shape[:axis], pixels, *x.shape[axis + 1 :]]
    first, last = (ops.cut_axis(x, axis, at, at + 1) for at in (0, size - 1))
    return [broadcast(first, shape), x, broadcast(last, shape)]


def mirrored(x: OnnxTensor, axis: int) -> OnnxTensor:
    """A few pixels in the opposite order, as rows of pixels: what is turned moves in blocks."""
    order = [axis, *(at for at in range(x.rank) if at != axis)]
    lines = ops.transpose(x, order)
    count = lines.shape[0]
    turned = ops.concat([ops.cut_axis(lines, 0, at, at + 1) for at in reversed(range(count))], 0)
    return ops.transpose(turned, [order.index(at) for at in range(x.rank)])


def item(array: Array, key: Any) -> Array:
    """`array[key]`: neighbours, or numbers and slices as of NumPy.

    Raises:
        InputError: a key that is none of these, or that lies outside.
    """
    keys = key if isinstance(key, tuple) else (key,)
    if any(isinstance(each, Index) for each in keys):
        return Bordered(array, Border())[keys]
    place = caller()
    missing = array.ndim - sum(each is not Ellipsis for each in keys)
    dots = [at for at, each in enumerate(keys) if each is Ellipsis]
    if dots:
        at = dots[0]
        keys = (*keys[:at], *[slice(None)] * missing, *keys[at + 1 :])
    if missing < 0 or not all(isinstance(each, (int, np.integer, slice)) for each in keys):
        raise InputError(
            "no such index",
            where=str(place),
            found=f"{key!r} of {array!r}",
            expected=f"up to {array.ndim} integers and slices, or indices of gdp.indices()",
        )
    for axis, each in enumerate(keys):
        size = array.shape[axis]
        if not isinstance(each, slice) and not -size <= each < size:
            raise InputError(
                f"index {each} lies outside of dimension {axis}",
                where=str(place),
                found=repr(array),
                expected=f"{-size} to {size - 1}",
            )
        if isinstance(each, slice) and (each.step or 1) < 1:
            raise InputError(
                "a slice goes forward", where=str(place), found=repr(each), expected="a step from 1"
            )

    def parts(x: OnnxTensor) -> OnnxTensor:
        return reduce(lambda t, axis: part(t, axis, keys[axis]), range(len(keys))[::-1], x)

    return of(parts, array)


def part(x: OnnxTensor, axis: int, key: int | slice) -> OnnxTensor:
    """The elements of one dimension that a number or a slice names."""
    if isinstance(key, slice):
        return ops.cut_axis(x, axis, *key.indices(x.shape[axis]))
    start = ops.axis_of(int(key), x.shape[axis])
    return ops.squeeze(ops.cut_axis(x, axis, start, start + 1), [axis])
