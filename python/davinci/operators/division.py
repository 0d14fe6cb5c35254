"""Quotients and remainders, exact for all numbers.

Of integers of 32 bits by way of f32:

q = rint(a / b)              in f32: off by no more than 2^-22 of itself
r = a - q b                  exact, as a wraps around; at most half of |b| and 2^9 more
q += rint(r / b), r = ..     now |r| is less than |b|
q -= s sign(b), r += s |b|   where r has not the sign of a: s = 1 if a is positive, else -1

Of floats, from the largest multiples of |b| by powers of 2^11 down, r being |a| first:

q = rint(r / (2^(11 j) |b|))               at most 2^11
r -= 2^(11 j) q b1           in two halves, b1 being the upper 12 bits of |b|: exact
r -= 2^(11 j) q b2           b2 being the lower ones

Where a multiple is beyond f32, so q is 0, and nothing is taken off.
"""

from __future__ import annotations

import math

import numpy as np

from davinci.operators.formulas import limited, with_sign
from davinci.operators.vector_program import Operand, Value, VectorProgram


def divided(p: VectorProgram, a: Operand, b: Operand) -> tuple[Value, Value]:
    """The quotient of s32 towards zero, and what it leaves; -1 and a where b is 0.

    The lowest number by -1 is itself, and leaves 0.
    """
    by, number = (p.convert(v, "f32") if isinstance(v, Value) else float(v) for v in (b, a))
    if not isinstance(b, Value) and b == 0:
        rest = a if isinstance(a, Value) else p.constant("s32", a)
        return p.constant("s32", -1), rest
    quotient = _nearest(p, number, by)
    rest = p.sub(a, p.mul(quotient, b))
    more = _nearest(p, p.convert(rest, "f32"), by)
    quotient, rest = p.add(quotient, more), p.sub(rest, p.mul(more, b))
    wrong = _wrong_side(p, number, p.convert(rest, "f32"))
    if not isinstance(by, Value):
        quotient = p.sub(quotient, p.mul(wrong, math.copysign(1, by)))
        return quotient, p.add(rest, p.mul(wrong, abs(by)))
    quotient = p.sub(quotient, p.mul(wrong, p.min(p.max(b, -1), 1)))
    rest = p.add(rest, p.mul(wrong, p.max(b, p.sub(0, b))))
    # Where b is 0, what came of it is replaced: q f + f - 1, (r - a) f + a with f = 0 there.
    known = p.convert(p.min(p.unary("vabs", by), 1.0), "s32", "trunc")
    quotient = p.add(p.mul(quotient, known), p.sub(known, 1))
    return quotient, p.add(p.mul(p.sub(rest, a), known), a)


def _nearest(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """The whole number of s32 nearest to a / b."""
    return p.convert(p.div(a, b), "s32", "rint")


def _wrong_side(p: VectorProgram, number: Operand, rest: Value) -> Value:
    """1 where a whole number is positive and `rest` negative, -1 the other way round, else 0."""
    side = limited(p, rest, -1.0, 1.0)
    if isinstance(number, Value):
        other: Operand = limited(p, number, -1.0, 1.0)
    else:
        other = max(-1.0, min(1.0, number))
    return p.convert(p.mul(p.sub(other, side), 0.5), "s32", "trunc")


STEP_BITS = 11
"""Bits of a quotient of floats that a step finds."""

MOST_STEPS = 25
"""Steps from the least number of f32, 2^-149, to above half of the largest one."""

FIRST_STEPS = 23
"""Steps from which on the lower 12 bits may be all bits of a number, one without an exponent."""

LARGEST = float(np.finfo(np.float32).max)
UPPER_BITS = -(1 << 12)
"""The sign, the exponent and the first 11 bits behind the point of f32, as s32."""

ROUNDER = 1.5 * 2**23
"""A number whose sum with one below 2^22 has no fraction."""


def float_remainder(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """What a quotient towards zero of f32 leaves of a, with its sign; NaN where b is 0, or a is
    infinite."""
    size, by = (
        p.unary("vabs", v) if isinstance(v, Value) else p.constant("f32", abs(v)) for v in (a, b)
    )
    whole = p.min(by, LARGEST)
    upper = p.step("vand", [whole, p.constant("s32", UPPER_BITS)])
    lower = p.sub(whole, upper)
    rest = size
    for step in reversed(range(MOST_STEPS + 1)):
        ratio = p.div(rest, _times_power(p, by, STEP_BITS * step))
        quotient = p.add(p.add(ratio, ROUNDER), -ROUNDER)
        power = STEP_BITS * step
        for part, halves in ((upper, True), (lower, step >= FIRST_STEPS)):
            taken = _times_power(p, p.mul(quotient, part), power - halves)
            for _ in range(1 + halves):  # all of it may be beyond f32
                rest = p.sub(rest, taken)
    rest = p.choose("lt", rest, 0.0, p.add(rest, whole), rest)
    if isinstance(a, Value):
        return p.choose("lt", with_sign(p, a), 0.0, p.mul(rest, -1.0), rest)
    return p.mul(rest, math.copysign(1, a))


def _times_power(p: VectorProgram, x: Value, power: int) -> Value:
    """x 2^power, by products with numbers of f32; the power is -1 or more."""
    if power < 0:
        return p.mul(x, 2.0**power)
    while power:
        part = min(power, MOST_POWER)
        x, power = p.mul(x, 2.0**part), power - part
    return x


MOST_POWER = 127
"""The largest power of two in f32."""
