"""Arithmetic of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from davinci.operators.core import FLOATS, NUMBERS, Array, elementwise
from davinci.operators.vector_program import Operand, Value, VectorProgram

FINITE = "finite"
"""Attribute of sums of finite numbers."""


def total(a: Array, b: Array, *, finite: bool = False) -> Any:
    return np.add(a, b)


@elementwise(values=total, types=NUMBERS)
def add(p: VectorProgram, a: Operand, b: Operand, *, finite: bool = False) -> Value:
    """a + b.

    `finite` says that neither has infinities, or that what is computed is lost anyway where they
    do, so that the cube may add one to sums: it would spread infinities.
    """
    return p.add(a, b)


@elementwise(values=np.subtract, types=NUMBERS)
def sub(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """a - b."""
    return p.sub(a, b)


@elementwise(values=np.multiply, types=NUMBERS)
def mul(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """a * b."""
    return p.mul(a, b)


@elementwise(values=np.maximum, types=NUMBERS)
def max_(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """The larger of a and b."""
    return p.max(a, b)


@elementwise(values=np.minimum, types=NUMBERS)
def min_(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """The smaller of a and b."""
    return p.min(a, b)


def quotient(a: Array, b: Array) -> Any:
    """a / b; of integers, towards zero, 0 where b is."""
    if a.dtype.kind == "f":
        return np.divide(a, b)
    divisor = np.where(b == 0, 1, b)
    down = a // divisor
    rounded_up = (down * divisor != a) & ((a < 0) != (divisor < 0))
    return np.where(b == 0, 0, down + rounded_up)


@elementwise(values=quotient, types=FLOATS)
def div(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """a / b; integers truncate. A product where that is exact."""
    if isinstance(b, (int, float)) and is_power_of_two(b):
        return p.mul(a, 1.0 / b)
    return p.div(a, b)


def is_power_of_two(number: float) -> bool:
    """Whether 1 / number is exact in f16 and f32."""
    return any(abs(number) == 2.0**i for i in range(-14, 15))


@elementwise(values=np.negative, types=NUMBERS)
def neg(p: VectorProgram, a: Value) -> Value:
    """-a."""
    return p.sub(0, a) if a.dtype == "s32" else p.mul(a, -1.0)


@elementwise(values=np.abs, types=NUMBERS)
def abs_(p: VectorProgram, a: Value) -> Value:
    """|a|."""
    return p.max(a, p.sub(0, a)) if a.dtype == "s32" else p.unary("vabs", a)


@elementwise(values=lambda a: np.where(a == 0, a, np.sign(a)), types=NUMBERS)
def sign(p: VectorProgram, a: Value) -> Value:
    """-1, 0 or 1; zeros and NaN stay as they are."""
    if a.dtype == "s32":
        return p.min(p.max(a, -1), 1)
    return p.choose("lt", a, 0.0, -1.0, p.choose("gt", a, 0.0, 1.0, a))


@elementwise(values=lambda low, x, high: np.minimum(np.maximum(low, x), high), types=NUMBERS)
def clamp(p: VectorProgram, low: Operand, x: Operand, high: Operand) -> Value:
    """min(high, max(low, x))."""
    if not isinstance(low, Value) and not isinstance(x, Value):
        return p.min(max(low, x), high)
    return p.min(p.max(low, x), high)
