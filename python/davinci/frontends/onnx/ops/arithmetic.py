"""Elementwise operations with NumPy's broadcasting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from davinci.frontends.onnx.tensor import (
    OnnxTensor,
    Operand,
    binary,
    broadcast,
    constant,
    emit,
    spread,
    typed,
    unary,
)

BOOL = np.dtype(np.bool_)


def full(shape: Sequence[int], dtype: Any, value: Any) -> OnnxTensor:
    return broadcast(constant(np.asarray(value).astype(dtype)), shape)


def like(x: OnnxTensor, value: Any) -> OnnxTensor:
    """A tensor of the shape and type of `x` with one value everywhere."""
    return full(x.shape, x.dtype, value)


def maximum(a: Operand, b: Operand) -> OnnxTensor:
    return binary("maximum", a, b)


def minimum(a: Operand, b: Operand) -> OnnxTensor:
    return binary("minimum", a, b)


def power(a: Operand, b: Operand) -> OnnxTensor:
    return binary("power", a, b)


def remainder(a: Operand, b: Operand) -> OnnxTensor:
    """With the sign of the dividend, as C's fmod."""
    return binary("remainder", a, b)


def absolute(x: OnnxTensor) -> OnnxTensor:
    return x if x.is_unsigned or x.dtype == BOOL else unary("abs", x)


def exp(x: OnnxTensor) -> OnnxTensor:
    return unary("exponential", x)


def log(x: OnnxTensor) -> OnnxTensor:
    return unary("log", x)


def sqrt(x: OnnxTensor) -> OnnxTensor:
    return unary("sqrt", x)


def tanh(x: OnnxTensor) -> OnnxTensor:
    return unary("tanh", x)


def sigmoid(x: OnnxTensor) -> OnnxTensor:
    return unary("logistic", x)


def floor(x: OnnxTensor) -> OnnxTensor:
    return unary("floor", x)


def round_half_even(x: OnnxTensor) -> OnnxTensor:
    return unary("round_nearest_even", x)


def erf(x: OnnxTensor) -> OnnxTensor:
    return unary("chlo.erf", x)


def compare(direction: str, a: Operand, b: Operand) -> OnnxTensor:
    """Booleans; `direction` is EQ, NE, LT, LE, GT or GE."""
    a, b = spread(*typed(a, b))
    return emit(
        "compare",
        [a, b],
        BOOL,
        a.shape,
        comparison_direction=f"#stablehlo<comparison_direction {direction}>",
    )


def where(condition: OnnxTensor, a: Operand, b: Operand) -> OnnxTensor:
    """Elements of `a` where `condition` holds, else of `b`; all three broadcast."""
    a, b = typed(a, b)
    condition, a, b = spread(condition, a, b)
    return emit("select", [condition, a, b], a.dtype, a.shape)


def clip(x: OnnxTensor, low: Operand, high: Operand) -> OnnxTensor:
    """Elements between `low` and `high`, each a number or of rank 0 or the shape of `x`."""
    x, low, high = typed(x, low, high)
    return minimum(maximum(x, low), high)


def is_nan(x: OnnxTensor) -> OnnxTensor:
    return compare("NE", x, x)


def is_zero(x: OnnxTensor) -> OnnxTensor:
    return compare("EQ", x, 0)


def as_bool(x: OnnxTensor) -> OnnxTensor:
    """Whether elements are not zero; NaN is not."""
    return x if x.dtype == BOOL else compare("NE", x, 0)


def bitcast(x: OnnxTensor, dtype: Any) -> OnnxTensor:
    """The same bits as another type of the same width."""
    return emit("bitcast_convert", [x], dtype, x.shape)
