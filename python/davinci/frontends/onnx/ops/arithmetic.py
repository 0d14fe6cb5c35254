"""Elementwise operations with NumPy's broadcasting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from davinci.frontends.onnx.tensor import (
    Operand,
    Tensor,
    binary,
    broadcast,
    constant,
    emit,
    spread,
    typed,
    unary,
)

BOOL = np.dtype(np.bool_)


def full(shape: Sequence[int], dtype: Any, value: Any) -> Tensor:
    return broadcast(constant(np.asarray(value).astype(dtype)), shape)


def like(x: Tensor, value: Any) -> Tensor:
    """A tensor of the shape and type of `x` with one value everywhere."""
    return full(x.shape, x.dtype, value)


def maximum(a: Operand, b: Operand) -> Tensor:
    return binary("maximum", a, b)


def minimum(a: Operand, b: Operand) -> Tensor:
    return binary("minimum", a, b)


def power(a: Operand, b: Operand) -> Tensor:
    return binary("power", a, b)


def remainder(a: Operand, b: Operand) -> Tensor:
    """With the sign of the dividend, as C's fmod."""
    return binary("remainder", a, b)


def absolute(x: Tensor) -> Tensor:
    return x if x.is_unsigned or x.dtype == BOOL else unary("abs", x)


def exp(x: Tensor) -> Tensor:
    return unary("exponential", x)


def log(x: Tensor) -> Tensor:
    return unary("log", x)


def sqrt(x: Tensor) -> Tensor:
    return unary("sqrt", x)


def tanh(x: Tensor) -> Tensor:
    return unary("tanh", x)


def sigmoid(x: Tensor) -> Tensor:
    return unary("logistic", x)


def floor(x: Tensor) -> Tensor:
    return unary("floor", x)


def round_half_even(x: Tensor) -> Tensor:
    return unary("round_nearest_even", x)


def erf(x: Tensor) -> Tensor:
    return unary("chlo.erf", x)


def compare(direction: str, a: Operand, b: Operand) -> Tensor:
    """Booleans; `direction` is EQ, NE, LT, LE, GT or GE."""
    a, b = spread(*typed(a, b))
    return emit(
        "compare",
        [a, b],
        BOOL,
        a.shape,
        comparison_direction=f"#stablehlo<comparison_direction {direction}>",
    )


def where(condition: Tensor, a: Operand, b: Operand) -> Tensor:
    """Elements of `a` where `condition` holds, else of `b`; all three broadcast."""
    a, b = typed(a, b)
    condition, a, b = spread(condition, a, b)
    return emit("select", [condition, a, b], a.dtype, a.shape)


def clip(x: Tensor, low: Operand, high: Operand) -> Tensor:
    """Elements between `low` and `high`, each a number or of rank 0 or the shape of `x`."""
    x, low, high = typed(x, low, high)
    return minimum(maximum(x, low), high)


def is_nan(x: Tensor) -> Tensor:
    return compare("NE", x, x)


def is_zero(x: Tensor) -> Tensor:
    return compare("EQ", x, 0)


def as_bool(x: Tensor) -> Tensor:
    """Whether elements are not zero; NaN is not."""
    return x if x.dtype == BOOL else compare("NE", x, 0)


def bitcast(x: Tensor, dtype: Any) -> Tensor:
    """The same bits as another type of the same width."""
    return emit("bitcast_convert", [x], dtype, x.shape)
