"""Sine, cosine, tangent and arc tangent in f32, over all of its range.

An angle x is taken as k pi + r with |r| <= pi / 2. Digits of x to the base 2^12 are taken off from
the top, and each is replaced by its angle beyond whole turns, 2^(12 j) modulo 2 pi, in three parts
whose products with digits are exact; so the largest numbers of f32 lose nothing either, and no step
asks how large x is. The constants are made with integers of Python, from digits of pi.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from davinci.operators.core import FLOATS, REAL, Array, elementwise
from davinci.operators.formulas import horner, in_f32, kind_of, with_sign
from davinci.operators.vector_program import Operand, Value, VectorProgram

DIGIT_BITS = 12
DIGITS = 10
"""Digits beyond the lowest of the largest f32, below 2^128."""

LOWER = 2.0 ** (DIGIT_BITS * DIGITS // 2)
"""The unit of the first digit of the lower half."""

ANGLE_GRIDS = (9, 20)
"""Fraction bits of the first two parts of the angle of a digit. Of 24 bits of x no more than three
digits are not 0; three products of 2^11 and an angle up to pi with 9 bits behind the point are
exact in f32, and so are those of what that leaves, up to 2^-10, with 20."""

HALF_TURN_GRIDS = (8, 18, 28)
"""Fraction bits of the first parts of pi, whose products with multiples of 1 / 2 up to 2^13 are
exact."""


def digits_of_pi(bits: int) -> Fraction:
    """pi to `bits` binary digits behind the point, by Machin's formula in integers."""
    one = 1 << (bits + 16)

    def arc_cotangent(n: int) -> int:
        term, total, k = one // n, 0, 1
        while term:
            total += term // k if k % 4 == 1 else -(term // k)
            term //= n * n
            k += 2
        return total

    return Fraction(4 * (4 * arc_cotangent(5) - arc_cotangent(239)), one)


PI = digits_of_pi(DIGIT_BITS * DIGITS + 100)


def parts_of(angle: Fraction, grids: Sequence[int]) -> list[float]:
    """An angle as a sum of numbers of f32, all but the last with so many bits behind the point."""
    parts = []
    for bits in grids:
        part = Fraction(round(angle * 2**bits), 2**bits)
        parts.append(float(part))
        angle -= part
    return [*parts, float(angle)]


HALF_TURN = parts_of(PI, HALF_TURN_GRIDS)
"""pi, the largest part first."""

QUARTER_TURN = parts_of(PI / 2, (22,))
"""pi / 2 as f32 holds it, but for the last bits, and what that leaves."""


def of_digit(number: int) -> list[float]:
    """The parts of the nearest whole turns less 2^(12 number), the angle of a digit 1."""
    scale = Fraction(2 ** (DIGIT_BITS * number))
    return parts_of(round(scale / PI / 2) * PI * 2 - scale, ANGLE_GRIDS)


SINE = (
    -0.16666666624887785,
    0.008333331053677936,
    -0.00019840860837584557,
    2.752499729999367e-06,
    -2.3881947494920767e-08,
)
"""(sin(r) / r - 1) / r^2 in powers of r * r for |r| up to 0.003 beyond pi / 2, fitted to
minimise the largest relative error of the sine, 2e-11 before rounding."""

ARC_TANGENT = (
    -0.3333329908765411,
    0.19998548239247677,
    -0.14264241196652244,
    0.10952183233095852,
    -0.08403442886662259,
    0.057957466138323775,
    -0.031177718978524813,
    0.010914537733829787,
    -0.0017936065316454905,
)
"""(atan(q) / q - 1) / q^2 in powers of q * q for |q| <= 1, fitted likewise: 3e-9."""


def odd(p: VectorProgram, x: Value, coefficients: tuple[float, ...]) -> Value:
    """x + x^3 times the polynomial of x^2 with these coefficients."""
    square = p.mul(x, x)
    return p.add(x, p.mul(p.mul(horner(p, square, coefficients), square), x))


@dataclass(frozen=True)
class Angle:
    """An angle modulo whole turns, as the difference `rest` - `back`.

    Attributes:
        rest: what is left of the number without its upper digits, at most 2^11.
        back: three numbers of f32, largest first: sums over the upper digits.
    """

    rest: Value
    back: tuple[Value, Value, Value]


def folded(p: VectorProgram, x: Value) -> Angle:
    """Replaces the digits of x but for the lowest by their angles modulo whole turns.

    The upper half of the digits is taken of x scaled down, where nothing overflows.
    """
    sums: list[Value] = []
    upper = p.mul(x, 1 / LOWER)
    rest = take_digits(p, upper, range(DIGITS, DIGITS // 2, -1), LOWER, sums)
    rest = p.sub(x, p.mul(p.sub(upper, rest), LOWER))
    rest = take_digits(p, rest, range(DIGITS // 2, 0, -1), 1.0, sums)
    first, second, third = sums
    return Angle(rest, (first, second, third))


def take_digits(
    p: VectorProgram, x: Value, numbers: range, scale: float, sums: list[Value]
) -> Value:
    """What is left of x without some digits, whose angles are added to the three sums.

    Args:
        scale: what x is to be multiplied by to be the number that has the digits.
    """
    for number in numbers:
        unit = 2.0 ** (DIGIT_BITS * number) / scale
        digit = nearest(p, x, unit)
        x = p.sub(x, digit)
        terms = [p.mul(digit, part / unit) for part in of_digit(number)]
        sums[:] = [p.add(*pair) for pair in zip(sums, terms, strict=True)] if sums else terms
    return x


def nearest(p: VectorProgram, x: Value, unit: float) -> Value:
    """Rounds f32 numbers below 2^22 units to whole units, by a sum that has no smaller digits."""
    return p.add(p.add(x, 1.5 * 2**23 * unit), -1.5 * 2**23 * unit)


def sine_beyond(p: VectorProgram, angle: Angle, shift: float) -> Value:
    """The sine of an angle less `shift` half turns.

    The nearest (k + shift) half turns are taken off, largest parts first, so that all differences
    of what nearly cancels are exact.
    """
    around = p.sub(p.sub(angle.rest, angle.back[0]), angle.back[1])
    turns = p.mul(around, float(1 / PI))
    k = nearest(p, p.add(turns, -shift) if shift else turns, 1.0)
    count = p.add(k, shift) if shift else k
    sizes = [p.mul(count, part) for part in HALF_TURN]
    left = p.sub(angle.rest, p.add(sizes[0], angle.back[0]))
    for taken in (sizes[1], angle.back[1], sizes[2], angle.back[2], sizes[3]):
        left = p.sub(left, taken)
    odd_turns = p.unary("vabs", p.sub(k, nearest(p, k, 2.0)))
    return p.mul(odd(p, left, SINE), p.add(p.mul(odd_turns, -2.0), 1.0))


@elementwise(values=lambda a: np.sin(a.astype(np.float64)), types=FLOATS, constraints=REAL)
@in_f32
def sine(p: VectorProgram, a: Value) -> Value:
    """Sine of an angle in radians; error below 3 ulp + 2^-35, however large the angle."""
    return p.choose("eq", a, 0.0, a, sine_beyond(p, folded(p, a), 0.0))


@elementwise(values=lambda a: np.cos(a.astype(np.float64)), types=FLOATS, constraints=REAL)
@in_f32
def cosine(p: VectorProgram, a: Value) -> Value:
    """Cosine of an angle in radians; error below 3 ulp + 2^-35, however large the angle."""
    return p.mul(sine_beyond(p, folded(p, a), 0.5), -1.0)


@elementwise(values=lambda a: np.tan(a.astype(np.float64)), types=FLOATS, constraints=REAL)
@in_f32
def tan(p: VectorProgram, a: Value) -> Value:
    """Tangent of an angle in radians, the sine over the cosine; error below 5 ulp, and what 2^-35
    makes of it where the cosine is nearly 0."""
    angle = folded(p, a)
    cosine = p.mul(sine_beyond(p, angle, 0.5), -1.0)
    return p.choose("eq", a, 0.0, a, p.div(sine_beyond(p, angle, 0.0), cosine))


def angle_of(y: Array, x: Array) -> Array:
    """The angle of the points (x, y), in f64."""
    return np.arctan2(np.asarray(y, np.float64), np.asarray(x, np.float64))


@elementwise(values=angle_of, types=FLOATS, constraints=REAL)
def atan2(p: VectorProgram, y: Operand, x: Operand) -> Value:
    """The angle of the point (x, y) in radians, from -pi to pi; error below 2 ulp.

    The arc tangent of a number is that with x = 1, which takes half the steps.
    """
    kind = kind_of(y, x)
    if isinstance(y, Value):
        y = p.convert(y, "f32", exact=True)
    if isinstance(x, Value):
        x = p.convert(x, "f32", exact=True)
    height, width = (p.unary("vabs", v) if isinstance(v, Value) else abs(v) for v in (y, x))
    low, high = p.min(height, width), p.max(height, width)
    ratio = p.div(low, high)
    if x != 1:
        ratio = p.choose("eq", low, high, 1.0, ratio)
        ratio = p.choose("eq", low, 0.0, 0.0, ratio)
    angle = odd(p, ratio, ARC_TANGENT)
    steep = from_turns(p, 1, angle)
    angle = p.choose("gt", height, width, steep, angle)
    if isinstance(x, Value) or is_negative(x):
        back = from_turns(p, 2, angle)
        angle = p.choose("lt", with_sign(p, x), 0.0, back, angle) if isinstance(x, Value) else back
    if isinstance(y, Value):
        angle = p.choose("lt", with_sign(p, y), 0.0, p.mul(angle, -1.0), angle)
    elif is_negative(y):
        angle = p.mul(angle, -1.0)
    return p.convert(angle, kind)


def from_turns(p: VectorProgram, quarters: int, angle: Value) -> Value:
    """So many quarter turns less an angle."""
    high, low = QUARTER_TURN
    return p.add(p.add(p.mul(angle, -1.0), quarters * low), quarters * high)


def is_negative(number: float) -> bool:
    """Says of a number that it has a minus, zeros too."""
    return math.copysign(1, number) < 0
