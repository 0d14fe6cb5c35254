"""Reductions over some axes, and what is made of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from davinci.frontends.onnx.ops.arithmetic import BOOL, compare, exp, where
from davinci.frontends.onnx.ops.shapes import axes_of, expand_dims, iota
from davinci.frontends.onnx.tensor import (
    OnnxTensor,
    binary,
    bounds,
    constant,
    convert,
    emit_all,
    is_float,
)
from davinci.mlir import ir


def lowest(dtype: Any) -> Any:
    """The neutral element of a maximum: -inf, or the least value."""
    if np.dtype(dtype) == BOOL:
        return False
    return -np.inf if is_float(dtype) else bounds(dtype)[0]


def highest(dtype: Any) -> Any:
    """The neutral element of a minimum."""
    if np.dtype(dtype) == BOOL:
        return True
    return np.inf if is_float(dtype) else bounds(dtype)[1]


NEUTRAL: dict[str, Callable[[Any], Any]] = {
    "add": lambda dtype: 0,
    "multiply": lambda dtype: 1,
    "maximum": lowest,
    "minimum": highest,
    "and": lambda dtype: True,
    "or": lambda dtype: False,
}


def start_of(name: str, x: OnnxTensor) -> OnnxTensor:
    """The number from which a reduction of `x` starts, the neutral one."""
    return constant(np.asarray(NEUTRAL[name](x.dtype)).astype(x.dtype))


def reduce(name: str, x: OnnxTensor, axes: Sequence[int], keepdims: bool = False) -> OnnxTensor:
    """Over some axes, with `add`, `multiply`, `maximum`, `minimum`, `and` or `or`.

    Over no elements the result is the neutral one.
    """
    gone = axes_of(axes, x.rank)
    kept = [size for i, size in enumerate(x.shape) if i not in gone]
    result = combined("reduce", name, x, kept, dimensions=gone) if gone else x
    return expand_dims(result, gone) if keepdims else result


def reduce_window(
    name: str,
    x: OnnxTensor,
    sizes: Sequence[int],
    *,
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: Sequence[tuple[int, int]],
    shape: Sequence[int],
) -> OnnxTensor:
    """Over windows, padded with the neutral element; names as of `reduce`.

    Args:
        shape: of the result.
    """
    return combined(
        "reduce_window",
        name,
        x,
        shape,
        window_dimensions=list(sizes),
        window_strides=list(strides),
        window_dilations=list(dilations),
        padding=ir.DenseIntElementsAttr.get(np.array(padding, np.int64)),
    )


def combined(
    operation: str, name: str, x: OnnxTensor, shape: Sequence[int], **attributes: Any
) -> OnnxTensor:
    """An operation that combines elements from the neutral one on."""
    start = start_of(name, x)
    scalar = (x.dtype, ())
    body = ([scalar, scalar], lambda a, b: [binary(name, a, b)])
    return emit_all(operation, [x, start], [(x.dtype, shape)], [body], **attributes)[0]


def extreme_place(name: str, x: OnnxTensor, axis: int) -> OnnxTensor:
    """The int32 index along `axis`, which goes, of the first extremum, or of the first NaN.

    Args:
        name: `maximum` or `minimum`.
        x: of f16, f32 or i32.
    """
    direction = "GT" if name == "maximum" else "LT"

    def better(a: OnnxTensor, i: OnnxTensor, b: OnnxTensor, j: OnnxTensor) -> list[OnnxTensor]:
        first = compare(direction, a, b) | compare("NE", a, a)
        equal = compare("EQ", a, b) & compare("LT", i, j)
        return [where(first, a, b), where(first | equal, i, j)]

    gone = axes_of([axis], x.rank)
    shape = [size for d, size in enumerate(x.shape) if d not in gone]
    start = start_of(name, x)
    operands = [x, iota(np.int32, x.shape, gone[0]), start, constant(np.int32(0))]
    kinds = [(x.dtype, shape), (np.int32, shape)]
    body = ([(x.dtype, ()), (np.int32, ())] * 2, better)
    return emit_all("reduce", operands, kinds, [body], dimensions=gone)[1]


def mean(x: OnnxTensor, axes: Sequence[int], keepdims: bool = False) -> OnnxTensor:
    """Average over some axes, of floats; of more elements than their type can count in f32."""
    count = math.prod(x.shape[i] for i in axes_of(axes, x.rank))
    # Not always: what is converted is rounded to its type before, squares of halves for example.
    limits: Any = ml_dtypes.finfo(x.dtype)  # type: ignore[no-untyped-call]
    wide = convert(x, np.float32) if count > float(limits.max) else x
    return convert(reduce("add", wide, axes, keepdims) / count, x.dtype)


def softmax(x: OnnxTensor, axis: int) -> OnnxTensor:
    shifted = exp(x - reduce("maximum", x, [axis], keepdims=True))
    return shifted / reduce("add", shifted, [axis], keepdims=True)
