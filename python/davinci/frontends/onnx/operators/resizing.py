"""Resize and Upsample: each axis on its own, from elements at known places with known weights.

Where onnxruntime and ONNX's reference implementation differ, networks mean what onnxruntime and
PyTorch compute:

* The new length is the product of length and scale in f32, rounded down: 10 x 0.7 is 7.
* `align_corners` and `tf_crop_and_resize` take the last element of the result to the last one of
  the input or region: 4 x 1.7 has 6 elements. The reference takes 6.8 for the new length.
* A result of the input's shape is the input, whatever the scales are, and with `antialias` every
  axis that keeps its length is left as it is; the reference interpolates with scale 1.1 there.
* Integers are rounded behind each axis with `antialias`, the last axis first, as Pillow does; else
  they are truncated once. (onnxruntime's `antialias` takes int8 for uint8; ours does not.)
* An axis that `pytorch_half_pixel` makes of length 1 takes element 0; the reference -0.5.
* Coordinates are f32, and 1e-6 from the middle between two elements is in the middle.
* `tf_half_pixel_for_nn` was removed from ONNX, and the reference knows it no more.

In one case it is onnxruntime that is left: its `tf_crop_and_resize` ignores the region on axes that
keep their length. TensorFlow, whose mode this is, and the reference take it from every axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.tensor import Array, BadNode, OnnxTensor, constant, convert

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall

CROP = "tf_crop_and_resize"

MOST_TERMS = 16
"""Neighbours of an element above which they are taken and summed at once."""

MOST_PHASES = 4
"""Elements made of each one above which an axis is no longer resized phase by phase."""


@dataclass(frozen=True)
class ResizedAxis:
    """How one axis is resized: sizes, their ratio as given (an f32), and the part that is taken."""

    number: int
    old: int
    new: int
    scale: float
    start: float = 0.0
    end: float = 1.0


def half_pixel(axis: ResizedAxis, i: Array) -> Array:
    return (i + 0.5) / axis.scale - 0.5


def half_pixel_symmetric(axis: ResizedAxis, i: Array) -> Array:
    """Centres of what is shown before and after lie on each other, though a length is rounded."""
    share = np.float32(axis.new) / np.float32(scaled(axis.old, axis.scale))
    offset = np.float32(axis.old / 2) * (np.float32(1) - share)
    return offset + (i.astype(np.float64) + 0.5) / axis.scale - 0.5


def pytorch_half_pixel(axis: ResizedAxis, i: Array) -> Array:
    return half_pixel(axis, i) if axis.new > 1 else 0 * i


def align_corners(axis: ResizedAxis, i: Array) -> Array:
    return i * (axis.old - 1) / (axis.new - 1) if axis.new > 1 else 0 * i


def asymmetric(axis: ResizedAxis, i: Array) -> Array:
    return i / axis.scale


def tf_half_pixel_for_nn(axis: ResizedAxis, i: Array) -> Array:
    return (i + 0.5) / axis.scale


def tf_crop_and_resize(axis: ResizedAxis, i: Array) -> Array:
    last = axis.old - 1
    if axis.new == 1:
        return np.full_like(i, (axis.start + axis.end) * last / 2)
    return axis.start * last + i * (axis.end - axis.start) * last / (axis.new - 1)


COORDINATES: dict[str, Callable[[ResizedAxis, Array], Array]] = {
    coordinate.__name__: coordinate
    for coordinate in (
        *(half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners, asymmetric),
        *(tf_half_pixel_for_nn, tf_crop_and_resize),
    )
}
"""Where element i of the result lies among those of the input."""

TIE = 1e-6
"""Coordinates this near to the middle of two elements lie in it, as in onnxruntime: 4.5 / (6 / 20)
is 15 less one unit of f32."""


def above_middle(x: Array, ties: bool) -> Array:
    """Whether coordinates are nearer to the element above; `ties` are, or are not."""
    beyond = x - np.floor(x) - np.float32(0.5)
    return beyond >= -TIE if ties else beyond > TIE


NEAREST: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda x: np.floor(x) + above_middle(x, ties=False),
    "round_prefer_ceil": lambda x: np.floor(x) + above_middle(x, ties=True),
    "floor": np.floor,
    "ceil": np.ceil,
}


OF_OTHER_MODES = {
    "nearest": ("cubic_coeff_a", "exclude_outside", "antialias"),
    "linear": ("nearest_mode", "cubic_coeff_a"),
    "cubic": ("nearest_mode",),
}
"""Attributes that change nothing in a mode; exporters write them all."""


@operator("Resize", "Upsample")
def lower_resize(node: NodeCall) -> OnnxTensor:
    """Upsample, and Resize of operator set 10, count as `asymmetric`."""
    x, mode = node.take(0), node.attr("mode")
    old = node.op_type == "Upsample" or node.version < 11
    way = "asymmetric" if old else node.attr("coordinate_transformation_mode")
    if way not in COORDINATES:
        node.refuse(
            f"coordinate_transformation_mode {way!r} is not supported", ", ".join(COORDINATES)
        )
    node.ignore(*OF_OTHER_MODES.get(mode, ()), *(() if way == CROP else ("extrapolation_value",)))
    axes = changed(resized_axes(node, x), way, bool(node.attr("antialias", 0)))
    if not x.count and all(axis.new for axis in axes):
        raise BadNode("an empty tensor has no elements to resize")
    if mode == "nearest":
        node.ignore("cubic_coeff_a")
        rounding = None if old else node.attr("nearest_mode")
        for axis in axes:
            x = ops.take_known(x, nearest(axis, way, rounding), axis.number)
        return outside(node, x, axes) if way == CROP else x
    return interpolated(node, x, axes, way)


def resized_axes(node: NodeCall, x: OnnxTensor) -> list[ResizedAxis]:
    """The axes with their new sizes: from scales, or from sizes, some of which keep a ratio."""
    numbers = node.attr("axes", None)
    numbers = [ops.axis_of(a, x.rank) for a in (range(x.rank) if numbers is None else numbers)]
    olds = [x.shape[a] for a in numbers]
    scales, sizes = given_scales(node), node.integers("sizes", 3)
    policy = node.attr("keep_aspect_ratio_policy", None) or "stretch"
    if scales and not sizes:
        news = [math.floor(scaled(n, s)) for n, s in zip(olds, scales, strict=True)]
    elif sizes and len(sizes) == len(olds):
        scales = [ratio(new, old) for new, old in zip(sizes, olds, strict=True)]
        news = list(sizes)
        if policy != "stretch":
            scales = [(min if policy == "not_larger" else max)(scales)] * len(scales)
            news = [math.floor(scaled(n, s) + 0.5) for n, s in zip(olds, scales, strict=True)]
    else:
        raise BadNode("neither scales nor sizes of all axes", "one of them, for each axis")
    roi = [float(v) for v in np.ravel(region(node))] or [0.0] * len(olds) + [1.0] * len(olds)
    terms = zip(numbers, olds, news, scales, roi[: len(olds)], roi[len(olds) :], strict=True)
    return [ResizedAxis(*term) for term in terms]


def ratio(new: int, old: int) -> float:
    """The scale that turns a length into another, an f32."""
    return float(np.float32(new) / np.float32(old)) if old else 1.0


def scaled(length: int, scale: float) -> float:
    """A length times a scale, rounded to f32: 10 times 0.7, which f32 has as 0.69999999, is 7."""
    return float(np.float32(length) * np.float32(scale))


def given_scales(node: NodeCall) -> list[float]:
    """An attribute of Upsample once, the second input before operator set 11, then the third."""
    if node.given("scales"):
        return list(node.attr("scales"))
    if node.given("height_scale"):
        return [1.0, 1.0, node.attr("height_scale"), node.attr("width_scale")]
    old = node.op_type == "Upsample" or node.version < 11
    known = node.known(1 if old else 2)
    return [] if known is None else [float(scale) for scale in known]


def region(node: NodeCall) -> Array:
    """The part that `tf_crop_and_resize` takes; other modes take all."""
    if node.op_type == "Upsample" or node.version < 11:
        return np.zeros(0)
    if node.attr("coordinate_transformation_mode") != CROP:
        node.ignore(1)
        return np.zeros(0)
    found = node.known(1)
    return np.zeros(0) if found is None else found


def changed(axes: list[ResizedAxis], way: str, antialias: bool) -> list[ResizedAxis]:
    """The axes that are not left as they are."""
    if way == CROP:
        return axes
    longer = [axis for axis in axes if axis.new != axis.old]
    return longer if antialias or not longer else [a for a in axes if a in longer or a.scale != 1]


def places(axis: ResizedAxis, way: str) -> Array:
    """In single precision, as onnxruntime: it decides which elements are nearest."""
    x = COORDINATES[way](axis, np.arange(axis.new, dtype=np.float32))
    return x.astype(np.float32)


def nearest(axis: ResizedAxis, way: str, rounding: str | None) -> Array:
    """Indices of the nearest elements; without `rounding` what is made smaller rounds up."""
    x = places(axis, way)
    if rounding is None:
        chosen = np.ceil(x) if axis.scale < 1 else np.floor(x)
    elif rounding in NEAREST:
        chosen = NEAREST[rounding](x)
    else:
        raise BadNode(f"nearest_mode {rounding!r}", ", ".join(NEAREST))
    return np.clip(chosen, 0, axis.old - 1).astype(np.int64)


def interpolated(node: NodeCall, x: OnnxTensor, axes: list[ResizedAxis], way: str) -> OnnxTensor:
    """Weighted sums of neighbours, in single precision at least."""
    node.ignore("nearest_mode")
    mode, antialias = node.attr("mode"), bool(node.attr("antialias", 0))
    cubic = node.attr("cubic_coeff_a", None)
    exclude = bool(node.attr("exclude_outside", None))
    if mode not in KERNELS:
        node.refuse(f"mode {mode!r} is not supported", "nearest, linear or cubic")
    wide = x.is_float and x.dtype.itemsize >= 4
    y = x if wide else convert(x, np.float32)
    rounds = antialias and not x.is_float
    for axis in sorted(axes, key=lambda axis: -axis.number) if rounds else axes:
        radius, kernel = KERNELS[mode](-0.75 if cubic is None else cubic)
        stretch = max(1.0, 1 / axis.scale) if antialias else 1.0
        indices, weights = taps(axis, places(axis, way), radius, kernel, stretch, exclude)
        y = weighted(y, axis.number, indices, weights)
        y = within(ops.floor(y + 0.5) if rounds else y, x.dtype)
    return convert(outside(node, y, axes) if way == CROP else y, x.dtype)


def within(x: OnnxTensor, dtype: np.dtype[Any]) -> OnnxTensor:
    """Limits what will be bytes to their range, which cubic pieces leave."""
    if dtype.kind not in "iu" or dtype.itemsize >= 4:
        return x
    return ops.clip(x, np.iinfo(dtype).min, np.iinfo(dtype).max)


Kernel = Callable[[Array], Array]


def linear_kernel(a: float) -> tuple[int, Kernel]:
    return 1, lambda distance: np.clip(1 - np.abs(distance), 0, None)


def cubic_kernel(a: float) -> tuple[int, Kernel]:
    """Convolution by cubic pieces (Keys); `a` is the slope at distance 1."""

    def kernel(distance: Array) -> Array:
        d = np.abs(distance)
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        return np.where(d <= 1, near, np.where(d < 2, far, 0))

    return 2, kernel


KERNELS: dict[str, Callable[[float], tuple[int, Kernel]]] = {
    "linear": linear_kernel,
    "bilinear": linear_kernel,
    "cubic": cubic_kernel,
}
"""How far a kernel reaches, and its weight at a distance."""


def taps(
    axis: ResizedAxis, x: Array, radius: int, kernel: Kernel, stretch: float, exclude: bool
) -> tuple[Array, Array]:
    """Indices and weights of the neighbours of each element of the result: [new, taps].

    Args:
        stretch: how much the kernel is widened, to smooth what is made smaller.
        exclude: elements outside have no weight; else they are those at the border.
    """
    reach = math.ceil(radius * stretch)
    x = x.astype(np.float64)
    first = np.floor(x)[:, None] - reach + 1
    found = first + np.arange(2 * reach)
    weights = kernel((found - x[:, None]) / stretch)
    if exclude:
        weights = np.where((found >= 0) & (found < axis.old), weights, 0)
    if exclude or stretch != 1:
        sums = weights.sum(1, keepdims=True)
        weights = weights / np.where(sums == 0, 1, sums)
    return np.clip(found, 0, axis.old - 1).astype(np.int64), weights


def weighted(x: OnnxTensor, axis: int, indices: Array, weights: Array) -> OnnxTensor:
    """Sums of elements times weights; what has no weight adds nothing, be it infinite."""
    some = weights.any(0)
    if np.count_nonzero(some) > MOST_TERMS:
        return weighted_rows(x, axis, indices[:, some], weights[:, some])
    offsets = phase_offsets(x.shape[axis], indices[:, some])
    if offsets is not None:
        chosen = weights[:, some]
        return ops.on_rows(x, axis, lambda t, at: weighted_phases(t, at, offsets, chosen))
    total: OnnxTensor | None = None
    for index, weight in zip(indices.T, weights.T, strict=True):
        total = added_term(total, weight, axis, partial(ops.take_known, x, index, axis))
    return ops.take_known(x, indices[:, 0], axis) if total is None else total


def added_term(
    total: OnnxTensor | None, weight: Array, axis: int, neighbours: Callable[[], OnnxTensor]
) -> OnnxTensor | None:
    """Adds neighbours times their weights [elements of the axis] to a sum; None is no sum yet."""
    if not weight.any():
        return total
    term = neighbours()
    if (weight != 1).any():
        term = term * column(weight[:1] if (weight == weight[0]).all() else weight, axis, term)
    if not weight.all():
        term = ops.where(column(weight != 0, axis, term), term, 0)
    return term if total is None else total + term


def phase_offsets(length: int, indices: Array) -> Array | None:
    """Places of neighbours relative to element i, for elements i * phases + phase of the result.

    [phases, taps], where each element of an axis becomes several ones; None where the places are
    others: indices [new, taps] that are not i + offset, held within the axis, in each phase.
    """
    phases, rest = divmod(len(indices), max(1, length))
    if rest or not 1 < phases <= MOST_PHASES or not indices.size:
        return None
    middle = length // 2
    offsets = indices[middle * phases : (middle + 1) * phases] - middle
    expected = np.arange(length)[:, None, None] + offsets
    found = indices.reshape(length, phases, -1)
    return offsets if (np.clip(expected, 0, length - 1) == found).all() else None


def weighted_phases(x: OnnxTensor, axis: int, offsets: Array, weights: Array) -> OnnxTensor:
    """The same where each element becomes several ones: slices of the axis with its first and
    last element repeated are weighted and summed for each phase, then the phases interleaved."""
    length, phases = x.shape[axis], len(offsets)
    before, behind = max(0, -int(offsets.min())), max(0, int(offsets.max()))
    first, last = ops.cut_axis(x, axis, 0, 1), ops.cut_axis(x, axis, length - 1, length)
    longer = ops.concat([*[first] * before, x, *[last] * behind], axis)
    made = []
    for phase, places_of_taps in enumerate(offsets):
        total: OnnxTensor | None = None
        for offset, weight in zip(places_of_taps, weights[phase::phases].T, strict=True):
            start = before + int(offset)
            taps_of_phase = partial(ops.cut_axis, longer, axis, start, start + length)
            total = added_term(total, weight, axis, taps_of_phase)
        made.append(ops.full(x.shape, x.dtype, 0) if total is None else total)
    grid = ops.concat([ops.expand_dims(each, [axis + 1]) for each in made], axis + 1)
    return ops.reshape(grid, [*x.shape[:axis], length * phases, *x.shape[axis + 1 :]])


def weighted_rows(x: OnnxTensor, axis: int, indices: Array, weights: Array) -> OnnxTensor:
    """The same for many neighbours: all of them as a further axis, which is summed."""
    shape = [*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]]
    terms = ops.reshape(ops.take_known(x, indices.reshape(-1), axis), shape)
    factors = weights.reshape(*weights.shape, *[1] * (x.rank - axis - 1))
    terms = terms * constant(factors.astype(x.dtype))
    if not weights.all():
        terms = ops.where(constant(factors != 0), terms, 0)
    return ops.reduce("add", terms, [axis + 1])


def column(values: Array, axis: int, x: OnnxTensor) -> OnnxTensor:
    """A vector along an axis of `x`."""
    kind = np.bool_ if values.dtype == np.bool_ else x.dtype
    return constant(values.reshape(-1, *[1] * (x.rank - axis - 1)).astype(kind))


def outside(node: NodeCall, x: OnnxTensor, axes: list[ResizedAxis]) -> OnnxTensor:
    """What lies outside of the input takes `extrapolation_value`."""
    value: Any = node.attr("extrapolation_value")
    for axis in axes:
        at = places(axis, CROP)
        inside = (at >= 0) & (at <= axis.old - 1)
        if not inside.all():
            x = ops.where(column(inside, axis.number, x), x, value)
    return x
