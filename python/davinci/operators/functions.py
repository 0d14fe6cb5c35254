"""Exponentials, logarithms, roots and powers."""

from __future__ import annotations

import math

import numpy as np

from davinci.operators.core import FLOATS, REAL, elementwise
from davinci.operators.formulas import horner, in_f32, kind_of, whole, with_sign
from davinci.operators.vector_program import Operand, Value, VectorProgram

LARGEST_POWER = 64
"""Constant integer exponents up to this become products."""


@elementwise(values=np.exp, types=FLOATS, constraints=REAL)
def exp(p: VectorProgram, a: Value) -> Value:
    """e to the power of a; error below 3 ulp + 2^-126."""
    return p.unary("vexp", a)


@elementwise(values=np.log, types=FLOATS, constraints=REAL)
def log(p: VectorProgram, a: Value) -> Value:
    """Natural logarithm; error below 4 ulp."""
    return p.unary("vln", a)


EXPONENTIAL_SMALL = 0.5
"""Below this |x| the difference exp(x) - 1 loses digits and the polynomial is used."""

EXPONENTIAL_POLYNOMIAL = (
    1.0000000005820529,
    0.5000000417192139,
    0.16666662913862498,
    0.041665318203523725,
    0.008333634676536989,
    0.0013997324341223092,
    0.00019841181590872031,
)
"""(exp(x) - 1) / x in powers of x for |x| <= EXPONENTIAL_SMALL, fitted to minimise the largest
relative error, 3e-9 before rounding."""


@elementwise(values=lambda a: np.expm1(a.astype(np.float64)), types=FLOATS, constraints=REAL)
@in_f32
def expm1(p: VectorProgram, a: Value) -> Value:
    """e to the power of a, less 1; error below 5 ulp also near 0."""
    small = p.mul(horner(p, a, EXPONENTIAL_POLYNOMIAL), a)
    large = p.add(p.unary("vexp", a), -1.0)
    return p.choose("lt", p.unary("vabs", a), EXPONENTIAL_SMALL, small, large)


@elementwise(values=lambda a: np.log1p(a.astype(np.float64)), types=FLOATS, constraints=REAL)
@in_f32
def log1p(p: VectorProgram, a: Value) -> Value:
    """Natural logarithm of 1 + a; error below 4 ulp also near 0.

    What rounding takes from the sum comes back as its share of it.
    """
    total = p.add(a, 1.0)
    lost = p.sub(a, p.add(total, -1.0))
    result = p.add(p.unary("vln", total), p.div(lost, p.max(total, TINY)))
    result = p.choose("eq", total, 1.0, a, result)
    return p.choose("eq", total, math.inf, total, result)


TINY = 2.0**-126
"""The least f32 number of full precision."""


@elementwise(values=lambda a: np.cbrt(a.astype(np.float64)), types=FLOATS, constraints=REAL)
@in_f32
def cbrt(p: VectorProgram, a: Value) -> Value:
    """Cube root, by the logarithm and a step of Newton's; error below 3 ulp."""
    size = p.unary("vabs", a)
    root = p.unary("vexp", p.mul(p.unary("vln", size), 1 / 3))
    excess = p.sub(root, p.div(size, p.mul(root, root)))
    root = p.sub(root, p.mul(excess, 1 / 3))
    signed = p.choose("lt", a, 0.0, p.mul(root, -1.0), root)
    return p.choose("eq", p.mul(a, 0.5), a, a, signed)  # zeros and infinities


@elementwise(values=np.sqrt, types=FLOATS, constraints=REAL)
def sqrt(p: VectorProgram, a: Value) -> Value:
    """Square root."""
    return p.unary("vsqrt", a)


@elementwise(values=lambda a: 1 / np.sqrt(a), types=FLOATS, constraints=REAL)
def rsqrt(p: VectorProgram, a: Value) -> Value:
    """1 / square root; error below 2 ulp."""
    return p.unary("vrsqrt", a)


@elementwise(values=np.power, types=FLOATS, constraints=REAL)
def pow_(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """a to the power of b; error below 8 ulp, and 3.5 for each unit of the result's logarithm; a
    product or a root for constants where that is exact."""
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
    """x ** y in f32: exp(y log |x|), whose error grows with the exponent that it rounds.

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
    result = p.choose("lt", with_sign(p, x), 0.0, negative, power)
    result = p.choose("eq", x, 1.0, 1.0, result)
    return p.choose("eq", y, 0.0, 1.0, result)


def repeated(p: VectorProgram, x: Value, times: int) -> Value:
    """x multiplied `times` times, by squaring."""
    if times == 1:
        return x
    half = repeated(p, x, times // 2)
    square = p.mul(half, half)
    return p.mul(square, x) if times % 2 else square
