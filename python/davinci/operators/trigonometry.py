"""Sine, cosine, tangent and arc tangent in f32, over all of its range.

Digits of an angle x are taken off from the top, each a whole number d of a unit 2^u. A digit is
replaced by its angle beyond whole turns: 2^u is w + f turns, w being a whole number of 2^-32 turns
and f what that leaves, at most 2^-33.

    d w      in s32, whose products and sums wrap around, as turns do: exact
    d f      in f32, which rounds it by no more than 2^-37

What is left of x is at most 2^-14. So the largest numbers of f32 lose nothing either, and no step
asks how large x is. A sum x + 1.5 2^23 2^u has no digits below 2^u; its bits, read as s32, are
those of 1.5 2^23 2^u and d, so no conversion is needed. The constants are made with integers of
Python, from digits of pi.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from davinci.operators.core import FLOATS, REAL, Array, elementwise
from davinci.operators.formulas import horner, kind_of, with_sign
from davinci.operators.vector_program import Operand, Value, VectorProgram

UNITS = (-13, 6, 26, 47, 66, 89, 109)
"""Exponents of the units of digits, the last for digits up to 2^128. No digit is more than 2^22,
and among such units these leave the least products of digits and f, below 2^-13 of a turn."""

LARGEST_EXPONENT = {"f32": 128, "f16": 16}
"""Numbers of a type are below 2 to this power."""

SCALING = 20
"""Numbers are scaled down by this power of two where the sum with 1.5 2^23 units would overflow."""

WORD = 1 << 32
"""Units of 2^-32 turns in a whole turn: s32 wraps around where an angle does."""


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


PI = digits_of_pi(LARGEST_EXPONENT["f32"] + 100)


HALF_TURN = float(np.float32(float(PI) / WORD))
"""2^-32 half turns in f32, and what multiples lose by that, as a share of them."""
HALF_TURN_ERROR = float(PI / WORD / Fraction(HALF_TURN) - 1)

QUARTER_TURN = float(round(PI * 2**21) / 2**22), float(PI / 2 - Fraction(round(PI * 2**21), 2**22))
"""pi / 2 as f32 holds it, but for the last bits, and what that leaves."""

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


def odd_keeping_zeros(p: VectorProgram, x: Value, coefficients: tuple[float, ...]) -> Value:
    """The same, with the sign of x if that is 0: a factor of +0, not -0, keeps it."""
    square = p.mul(x, x)
    factor = p.add(p.mul(horner(p, square, coefficients), square), 0.0)
    return p.add(x, p.mul(factor, x))


@dataclass(frozen=True)
class Angle:
    """An angle modulo whole turns: rest - (2 turns + more) pi 2^-32.

    Attributes:
        rest: what is left of the number without its digits, f32 of at most 2^-14.
        turns: 2^-32 turns in s32, less than a turn as they wrap around.
        more: 2^-32 half turns in f32, less than 2^20 of them.
    """

    rest: Value
    turns: Value
    more: Value


def folded(p: VectorProgram, x: Value, exponent: int) -> Angle:
    """Takes the digits off numbers below 2^exponent and adds up their angles.

    Signs are turned, so that what has no digits has an angle of +0, from which `rest` is taken
    without losing the sign of a zero.
    """
    turns: Value | None = None
    more: Value | None = None
    offset = 0
    # What does not need the step before it comes between steps that do: those wait for it.
    for unit in reversed([unit for unit in UNITS if unit <= exponent]):
        scaled = SCALING if unit + 24 > LARGEST_EXPONENT["f32"] else 0
        rounder = 1.5 * 2.0 ** (23 + unit - scaled)
        total = p.add(p.mul(x, 2.0**-scaled) if scaled else x, rounder)
        digit = p.add(total, -rounder)
        bits = p.step("vor", [total, total], "s32")
        whole, rest = angle_of_unit(unit)
        if scaled:  # in halves, as the digit may be rounded up to 2^128
            x = p.sub(x, p.mul(digit, 2.0 ** (scaled - 1)))
            product = p.mul(bits, whole)
            x = p.sub(x, p.mul(digit, 2.0 ** (scaled - 1)))
        else:
            x = p.sub(x, digit)
            product = p.mul(bits, whole)
        turns = product if turns is None else p.add(turns, product)
        rounded = p.mul(digit, rest / 2.0 ** (unit - scaled))
        more = rounded if more is None else p.add(more, rounded)
        offset += whole * int(np.float32(rounder).view(np.int32))
    assert turns is not None and more is not None, "all numbers are below one of the units"
    return Angle(x, p.add(turns, wrapped(-offset)), more)


def angle_of_unit(unit: int) -> tuple[int, float]:
    """Less the angle of 2^unit beyond whole turns: 2^-32 turns as s32 has them, and what that
    leaves, in 2^-32 half turns."""
    turns = Fraction(2) ** unit / (2 * PI) * WORD
    whole = round(turns)
    return wrapped(-whole), float(2 * (whole - turns))


def wrapped(number: int) -> int:
    """A whole number as s32 holds it."""
    return (number + WORD // 2) % WORD - WORD // 2


def within(p: VectorProgram, angle: Angle, halves: Value) -> Value:
    """An angle from -pi / 2 to pi / 2, in f32.

    Args:
        halves: 2^-32 half turns in s32, instead of twice the turns of `angle`.
    """
    whole = p.convert(halves, "f32")
    more = p.add(angle.more, p.mul(whole, HALF_TURN_ERROR))
    return p.sub(angle.rest, p.mul(p.add(whole, more), HALF_TURN))


def sign_of(p: VectorProgram, x: Value) -> Value:
    """-1 where s32 is negative, else 1, in f32: the sign among the bits of 1."""
    sign = p.step("vand", [x, p.constant("s32", -WORD // 2)])
    return p.step("vor", [sign, p.constant("f32", 1.0)], "f32")


def signed_sine(p: VectorProgram, angle: Angle, zeros: bool) -> Value:
    """The sine of an angle: that of what it is beyond whole half turns, with a sign.

    Args:
        zeros: whether the zeros of both signs are kept.
    """
    halves, quarters = p.add(angle.turns, angle.turns), p.add(angle.turns, WORD // 4)
    left, sign = within(p, angle, halves), sign_of(p, quarters)
    sine = odd_keeping_zeros if zeros else odd
    return p.mul(sine(p, left, SINE), sign)


@elementwise(values=lambda a: np.sin(a.astype(np.float64)), types=FLOATS, constraints=REAL)
def sine(p: VectorProgram, a: Value) -> Value:
    """Sine of an angle in radians; error below 3 ulp + 2^-35, however large the angle."""
    return p.convert(signed_sine(p, angle_in(p, a), zeros=True), a.dtype)


@elementwise(values=lambda a: np.cos(a.astype(np.float64)), types=FLOATS, constraints=REAL)
def cosine(p: VectorProgram, a: Value) -> Value:
    """Cosine of an angle in radians; error below 3 ulp + 2^-35, however large the angle."""
    angle = angle_in(p, a)
    ahead = Angle(angle.rest, p.add(angle.turns, -WORD // 4), angle.more)
    return p.convert(signed_sine(p, ahead, zeros=False), a.dtype)


@elementwise(values=lambda a: np.tan(a.astype(np.float64)), types=FLOATS, constraints=REAL)
def tan(p: VectorProgram, a: Value) -> Value:
    """Tangent of an angle in radians, the sine over the cosine; error below 5 ulp, and what 2^-35
    makes of it where the cosine is nearly 0."""
    angle = angle_in(p, a)
    halves = p.add(angle.turns, angle.turns)
    sine = odd_keeping_zeros(p, within(p, angle, halves), SINE)
    cosine = odd(p, within(p, angle, p.add(halves, -WORD // 2)), SINE)
    return p.convert(p.div(sine, p.mul(cosine, sign_of(p, halves))), a.dtype)


def angle_in(p: VectorProgram, a: Value) -> Angle:
    """An operand as an angle."""
    return folded(p, p.convert(a, "f32", exact=True), LARGEST_EXPONENT[a.dtype])


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
