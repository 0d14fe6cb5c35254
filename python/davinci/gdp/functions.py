"""Functions of symbolic arrays, named as NumPy's where they mean the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from davinci.errors import InputError
from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators.reductions import place_of
from davinci.frontends.onnx.tensor import OnnxTensor, Refused, constant
from davinci.gdp.arrays import Array, Compute, caller, of
from davinci.gdp.indexing import Border, margins_of, padded

Axes = int | Sequence[int] | None


def where(condition: Any, a: Any, b: Any) -> Array:
    """Elements of `a` where `condition` holds, else of `b`; two numbers become f32."""
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        a = np.float32(a)

    def chosen(flags: OnnxTensor, x: Any, y: Any) -> OnnxTensor:
        if not isinstance(flags, OnnxTensor) or flags.dtype != ops.BOOL:
            raise Refused("a condition that is no array of booleans", "a comparison of arrays")
        return ops.where(flags, x, y)

    return of(chosen, condition, a, b)


def maximum(a: Any, b: Any) -> Array:
    """The larger of two elements."""
    return of(ops.maximum, a, b)


def minimum(a: Any, b: Any) -> Array:
    """The smaller of two elements."""
    return of(ops.minimum, a, b)


def clip(x: Array, low: Any, high: Any) -> Array:
    """Elements between `low` and `high`."""
    return of(ops.clip, x, low, high)


def power(a: Any, b: Any) -> Array:
    """a to the power of b."""
    return of(ops.power, a, b)


def _of_float(compute: Compute, x: Array) -> Array:
    """An elementwise function that only floats have."""

    def checked(tensor: OnnxTensor) -> OnnxTensor:
        if not tensor.is_float:
            raise Refused(f"a function of floats on {tensor.dtype}", "x.astype(np.float16)")
        return compute(tensor)

    return of(checked, x)


def sqrt(x: Array) -> Array:
    """Square roots."""
    return _of_float(ops.sqrt, x)


def exp(x: Array) -> Array:
    """Exponentials."""
    return _of_float(ops.exp, x)


def log(x: Array) -> Array:
    """Natural logarithms."""
    return _of_float(ops.log, x)


def tanh(x: Array) -> Array:
    """Hyperbolic tangents."""
    return _of_float(ops.tanh, x)


def floor(x: Array) -> Array:
    """The largest whole number that is not above."""
    return _of_float(ops.floor, x)


def round(x: Array) -> Array:
    """The nearest whole number, the even one of two."""
    return _of_float(ops.round_half_even, x)


def abs(x: Array) -> Array:
    """Magnitudes."""
    return of(ops.absolute, x)


def reduced(name: str, x: Array, axis: Axes, keepdims: bool) -> Array:
    """A reduction of StableHLO over some dimensions, all of them for None."""

    def compute(tensor: OnnxTensor) -> OnnxTensor:
        return ops.reduce(name, tensor, axes_of(axis, tensor), keepdims)

    return of(compute, x)


def axes_of(axis: Axes, x: OnnxTensor) -> list[int]:
    """The dimensions that `axis` names, counted from the front."""
    if axis is None:
        return list(range(x.rank))
    return ops.axes_of([axis] if isinstance(axis, (int, np.integer)) else list(axis), x.rank)


def sum(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """Sums over some dimensions; those of f16 are accumulated in f32."""
    return reduced("add", x, axis, keepdims)


def max(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """The largest elements."""
    return reduced("maximum", x, axis, keepdims)


def min(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """The smallest elements."""
    return reduced("minimum", x, axis, keepdims)


def any(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """Whether one of the booleans holds."""
    return reduced("or", x, axis, keepdims)


def all(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """Whether all of the booleans hold."""
    return reduced("and", x, axis, keepdims)


def _wide(x: Array) -> Array:
    """f32, in which a count of pixels and sums of as many are numbers."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


def mean(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """Averages of floats; of f16 they are computed in f32."""
    made = _of_float(lambda t: ops.mean(t, axes_of(axis, t), keepdims), _wide(x))
    return made.astype(x.dtype)


def var(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """Averages of the squared distances from the mean; of f16 they are computed in f32."""
    wide = _wide(x)
    apart = wide - mean(wide, axis, keepdims=True)
    return mean(apart * apart, axis, keepdims).astype(x.dtype)


def std(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """Square roots of `var`."""
    return sqrt(var(_wide(x), axis, keepdims)).astype(x.dtype)


def _place(name: str, x: Array, axis: int | None, keepdims: bool) -> Array:
    def compute(tensor: OnnxTensor) -> OnnxTensor:
        given = tensor if axis is not None else ops.reshape(tensor, [tensor.count])
        at = ops.axis_of(axis or 0, given.rank)
        if not given.shape[at]:
            raise Refused("the place of an element among none", "a dimension that is not empty")
        found = place_of(name, given, at, last=False)
        return found if keepdims and axis is not None else ops.squeeze(found, [at])

    return of(compute, x)


def argmax(x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    """The index (i32) of the first largest element, of the flattened array without an axis."""
    return _place("maximum", x, axis, keepdims)


def argmin(x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    """The index (i32) of the first smallest element, of the flattened array without an axis."""
    return _place("minimum", x, axis, keepdims)


def concatenate(arrays: Sequence[Array], axis: int = 0) -> Array:
    """Arrays behind each other along a dimension."""
    return of(lambda *parts: ops.concat(parts, axis), *arrays)


def stack(arrays: Sequence[Array], axis: int = 0) -> Array:
    """Arrays of one shape along a new dimension."""
    return of(lambda *parts: ops.stack(parts, axis), *arrays)


def matmul(a: Any, b: Any) -> Array:
    """Products of matrices, by the cube."""
    return of(ops.matmul, a, b)


def convolve(
    x: Array,
    weights: Any,
    strides: Sequence[int] | int = 1,
    padding: Sequence[int] | int = 0,
    groups: int = 1,
) -> Array:
    """Images [n, c, h, w] and weights [m, c / groups, kh, kw] make [n, m, h', w'].

    Args:
        strides, padding: of rows and columns; padding is zeros on both sides.
    """
    steps, sides = pair(strides), pair(padding)

    def compute(image: OnnxTensor, w: OnnxTensor) -> OnnxTensor:
        if image.rank != 4 or w.rank != 4 or image.shape[1] != w.shape[1] * groups:
            raise Refused(
                "shapes of a convolution that do not fit",
                "[n, c, h, w] and [m, c / groups, kh, kw]",
            )
        return ops.convolution(image, w, steps, sides, sides, (1, 1), groups)

    return of(compute, x, weights)


def pair(given: Sequence[int] | int) -> tuple[int, int]:
    """One number for rows and columns, or both."""
    if isinstance(given, (int, np.integer)):
        return int(given), int(given)
    rows, columns = given
    return int(rows), int(columns)


def filter2d(
    image: Array, kernel: npt.ArrayLike, border: str = "constant", value: float = 0
) -> Array:
    """OpenCV's filter2D: each pixel is the sum of its neighbours times a kernel, plane by plane.

    Args:
        image: [.., h, w] of floats; every plane is filtered by itself, zeros or another border
            around it.
        kernel: [kh, kw] of odd sizes, its middle on the pixel; it is not mirrored.
        border, value: as of `gdp.border`.

    Raises:
        InputError: the kernel has no middle, or the image no rows and columns.
    """
    place, taps = caller(), np.asarray(kernel)
    if taps.ndim != 2 or any_even(taps.shape):
        raise InputError(
            "no kernel of a filter",
            where=str(place),
            found=f"shape {list(taps.shape)}",
            expected="two odd sizes, so that there is a middle",
        )
    if image.ndim < 2 or image.dtype.kind != "f":
        raise InputError(
            "no image to filter", where=str(place), found=repr(image), expected="floats [.., h, w]"
        )
    reach = [size // 2 for size in taps.shape]
    rule = Border(border, value)

    def compute(x: OnnxTensor) -> OnnxTensor:
        *planes, height, width = x.shape
        count = int(np.prod(planes, dtype=np.int64))
        images = ops.reshape(x, [count, 1, height, width])
        sides = reach
        if rule != Border():
            images = padded(images, rule, reach)
            sides = [r - m for r, m in zip(reach, margins_of(x.shape, reach), strict=True)]
        weights = constant(taps.astype(x.dtype)[None, None])
        made = ops.convolution(images, weights, (1, 1), sides, sides, (1, 1))
        return ops.reshape(made, x.shape)

    return of(compute, image)


def any_even(sizes: Sequence[int]) -> bool:
    return 0 in [size % 2 for size in sizes]
