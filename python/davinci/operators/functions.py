"""Exponentials, logarithms, roots and powers."""

from __future__ import annotations

import math

import numpy as np

from davinci.operators.core import FLOATS, REAL, elementwise
from davinci.operators.formulas import kind_of, whole
from davinci.operators.vector_program import Operand, Value, VectorProgram

LARGEST_POWER = 64
"""Constant integer exponents up to this become products."""


@elementwise(values=np.exp, types=FLOATS, constraints=REAL)
def exp(p: VectorProgram, a: Value) -> Value:
    """e to the power of a."""
    return p.unary("vexp", a)


@elementwise(values=np.log, types=FLOATS, constraints=REAL)
def log(p: VectorProgram, a: Value) -> Value:
    """Natural logarithm."""
    return p.unary("vln", a)


@elementwise(values=np.sqrt, types=FLOATS, constraints=REAL)
def sqrt(p: VectorProgram, a: Value) -> Value:
    """Square root."""
    return p.unary("vsqrt", a)


@elementwise(values=lambda a: 1 / np.sqrt(a), types=FLOATS, constraints=REAL)
def rsqrt(p: VectorProgram, a: Value) -> Value:
    """1 / square root."""
    return p.unary("vrsqrt", a)


@elementwise(values=np.power, types=FLOATS, constraints=REAL)
def pow_(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """a to the power of b; a product or a root for constants where that is exact."""
    if isinstance(a, Value) and not isinstance(b, Value):
        found = constant_power(p, a, b)
        if found is not None:
            return found
    x, y = (
        p.convert(v, "f32") if isinstance(v, Value) else p.constant("f32", float(v)) for v in (a, b)
    )
    return p.convert(general_power(p, x, y), kind_of(a, b))


def constant_power(p: VectorProgram, a: Value, b: float) -> Value | None:
    """a to the power of a number of which that is a root or a few products, else None."""
    if b == 0:
        return p.constant(a.dtype, 1.0)
    if b in (0.5, -0.5):
        # Unlike its roots, powers of -inf and -0 are those of inf and 0.
        unsigned = p.add(p.choose("eq", a, -math.inf, math.inf, a), 0.0)
        return p.unary("vsqrt" if b > 0 else "vrsqrt", unsigned)
    if not math.isfinite(b) or b != int(b) or abs(b) > LARGEST_POWER:
        return None
    if b > 0:
        return repeated(p, a, int(b))
    product = repeated(p, p.convert(a, "f32"), int(-b))
    return p.convert(p.unary("vrec", product), a.dtype)


def general_power(p: VectorProgram, x: Value, y: Value) -> Value:
    """x ** y in f32: exp(y log |x|), relative error up to 1e-5 near the ends of the range.

    Below zero the result is negative for odd y and NaN for y that are not whole. A zero or an
    infinity has its sign in x + 1 / x.
    """
    size = p.unary("vabs", x)
    power = p.unary("vexp", p.mul(p.unary("vln", size), y))
    power = p.choose("eq", size, 1.0, 1.0, power)
    odd = p.sub(y, p.mul(whole(p, p.mul(y, 0.5), "floor"), 2.0))
    signed = p.choose("eq", odd, 1.0, p.mul(power, -1.0), power)
    outside = p.choose("lt", x, 0.0, math.nan, power)
    outside = p.choose("eq", size, math.inf, power, outside)
    negative = p.choose("eq", whole(p, y, "floor"), y, signed, outside)
    sign = p.add(x, p.unary("vrec", x))
    result = p.choose("lt", sign, 0.0, negative, power)
    result = p.choose("eq", x, 1.0, 1.0, result)
    return p.choose("eq", y, 0.0, 1.0, result)


def repeated(p: VectorProgram, x: Value, times: int) -> Value:
    """x multiplied `times` times, by squaring."""
    if times == 1:
        return x
    half = repeated(p, x, times // 2)
    square = p.mul(half, half)
    return p.mul(square, x) if times % 2 else square
