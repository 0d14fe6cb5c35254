"""Arithmetic of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from davinci.operators.core import NUMBERS, Array, elementwise
from davinci.operators.division import divided, float_remainder, floored
from davinci.operators.formulas import kind_of
from davinci.operators.long_division import long_quotient, long_remainder
from davinci.operators.long_integers import long_add, long_choice, long_mul, long_sub
from davinci.operators.vector_program import Operand, Value, VectorProgram

ALL = NUMBERS | {"i64"}

FINITE = "finite"
"""Attribute of sums of finite numbers."""


def total(a: Array, b: Array, *, finite: bool = False) -> Any:
    return np.add(a, b)


@elementwise(values=total, types=ALL)
def add(p: VectorProgram, a: Operand, b: Operand, *, finite: bool = False) -> Value:
    """a + b.

    `finite` says that neither has infinities, or that what is computed is lost anyway where they
    do, so that the cube may add one to sums: it would spread infinities.
    """
    return long_add(p, a, b) if kind_of(a, b) == "s64" else p.add(a, b)


@elementwise(values=np.subtract, types=ALL)
def sub(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """a - b."""
    return long_sub(p, a, b) if kind_of(a, b) == "s64" else p.sub(a, b)


@elementwise(values=np.multiply, types=ALL)
def mul(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """a * b."""
    return long_mul(p, a, b) if kind_of(a, b) == "s64" else p.mul(a, b)


def max_of(p: VectorProgram, a: Operand, b: Operand) -> Value:
    return long_choice(p, "ge", a, b) if kind_of(a, b) == "s64" else p.max(a, b)


def min_of(p: VectorProgram, a: Operand, b: Operand) -> Value:
    return long_choice(p, "le", a, b) if kind_of(a, b) == "s64" else p.min(a, b)


@elementwise(values=np.maximum, types=ALL)
def max_(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """The larger of a and b."""
    return max_of(p, a, b)


@elementwise(values=np.minimum, types=ALL)
def min_(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """The smaller of a and b."""
    return min_of(p, a, b)


def quotient(a: Array, b: Array, *, exact: bool = False) -> Array:
    """a / b; of integers, towards zero, -1 where b is 0. It is always `exact`."""
    del exact
    if a.dtype.kind == "f":
        return np.divide(a, b)
    rest = remainder_of(a, b)
    return np.where(b == 0, -1, (a - rest) // np.where(b == 0, 1, b))


def remainder_of(a: Array, b: Array, *, down: bool = False) -> Array:
    """The remainder of a / b with the quotient rounded towards zero, or `down`; a where integers
    are divided by 0."""
    if a.dtype.kind == "f":
        rest = np.fmod(a, b)
    else:
        rest = np.where(b == 0, a, np.fmod(a, np.where(b == 0, 1, b)))
    return np.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest) if down else rest


@elementwise(values=quotient, types=ALL)
def div(p: VectorProgram, a: Operand, b: Operand, *, exact: bool = False) -> Value:
    """a / b. A product where that is exact. Integers truncate; -1 where b is 0.

    `exact` asks for a quotient that is rounded once, as its last bit decides a result in another
    kernel; without it, rows may be multiplied by the inverse of a divisor that each has one of.
    """
    del exact  # whoever records the program asks for it
    if kind_of(a, b) == "s64":
        return long_quotient(p, a, b)
    if kind_of(a, b) == "s32":
        return divided(p, a, b)[0]
    if isinstance(b, (int, float)) and is_power_of_two(b):
        return p.mul(a, 1.0 / b)
    return p.div(a, b)


@elementwise(values=remainder_of, types=ALL)
def remainder(p: VectorProgram, a: Operand, b: Operand, *, down: bool = False) -> Value:
    """What a division that truncates leaves of a, with the sign of a, exactly; where b is 0, a of
    integers and NaN of floats.

    `down` adds b where something is left that has not the sign of b: the quotient is rounded down.
    """
    kind = kind_of(a, b)
    if kind == "s64":
        return long_remainder(p, a, b, down)
    if kind == "s32":
        rest = divided(p, a, b)[1]
        return floored(p, rest, b) if down else rest
    x, y = (p.convert(v, "f32", exact=True) if isinstance(v, Value) else v for v in (a, b))
    return p.convert(float_remainder(p, x, y, down), kind)


def is_power_of_two(number: float) -> bool:
    """Whether 1 / number is exact in f16 and f32."""
    return any(abs(number) == 2.0**i for i in range(-14, 15))


@elementwise(values=np.negative, types=ALL)
def neg(p: VectorProgram, a: Value) -> Value:
    """-a."""
    if a.dtype == "s64":
        return long_sub(p, 0, a)
    return p.sub(0, a) if a.dtype == "s32" else p.mul(a, -1.0)


@elementwise(values=np.abs, types=ALL)
def abs_(p: VectorProgram, a: Value) -> Value:
    """|a|."""
    if a.dtype == "s64":
        return max_of(p, a, long_sub(p, 0, a))
    return p.max(a, p.sub(0, a)) if a.dtype == "s32" else p.unary("vabs", a)


@elementwise(values=lambda a: np.where(a == 0, a, np.sign(a)), types=ALL)
def sign(p: VectorProgram, a: Value) -> Value:
    """-1, 0 or 1; zeros and NaN stay as they are."""
    if a.dtype in ("s32", "s64"):
        return min_of(p, max_of(p, a, -1), 1)
    return p.choose("lt", a, 0.0, -1.0, p.choose("gt", a, 0.0, 1.0, a))


@elementwise(values=lambda low, x, high: np.minimum(np.maximum(low, x), high), types=ALL)
def clamp(p: VectorProgram, low: Operand, x: Operand, high: Operand) -> Value:
    """min(high, max(low, x))."""
    if not isinstance(low, Value) and not isinstance(x, Value):
        return min_of(p, max(low, x), high)
    return min_of(p, max_of(p, low, x), high)
