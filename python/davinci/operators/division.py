"""Quotients and remainders, exact for all numbers.

Of integers of 32 bits by way of f32:

q = rint(a / b)              in f32: off by no more than 2^-22 of itself
r = a - q b                  exact, as a wraps around; at most half of |b| and 2^9 more
q += rint(r / b), r = ..     now |r| is less than |b|
q -= s sign(b), r += s |b|   where r has not the sign of a: s = 1 if a is positive, else -1

Of floats, |a| = ma 2^i and |b| = mb 2^j with whole numbers ma, mb below 2^24: what is wanted is
ma 2^n modulo mb, n = i - j, and that in f32 times 2^j. Where n is negative it is a: then n is taken
for 0, i for j, and mb is made more than ma. With

n = 8 m + l                  -2^m and 2^l, of at most 2^31 and 2^7, by their bits
R = (-2^m)^8 = 2^(8 m)       by three squares modulo mb
R (ma 2^l)                   one product modulo mb, as ma 2^l is below 2^31

A product modulo mb is u v - q mb with q = rint(u v / mb) in f32: q may be off by a few, the
difference in s32, which wraps around, is exact, as it is small.
"""

from __future__ import annotations

import math

import numpy as np

from davinci.operators.formulas import limited
from davinci.operators.vector_program import Operand, Value, VectorProgram
from davinci.operators.words import sign_mask


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
    wrong = wrong_side(p, number, p.convert(rest, "f32"))
    if not isinstance(by, Value):
        quotient = p.sub(quotient, p.mul(wrong, math.copysign(1, by)))
        return quotient, p.add(rest, p.mul(wrong, abs(by)))
    quotient = p.sub(quotient, p.mul(wrong, p.min(p.max(b, -1), 1)))
    rest = p.add(rest, p.mul(wrong, p.max(b, p.sub(0, b))))
    # Where b is 0, what came of it is replaced: q f + f - 1, (r - a) f + a with f = 0 there.
    known = p.convert(p.min(p.unary("vabs", by), 1.0), "s32", "trunc")
    quotient = p.add(p.mul(quotient, known), p.sub(known, 1))
    return quotient, p.add(p.mul(p.sub(rest, a), known), a)


def floored(p: VectorProgram, rest: Value, b: Operand) -> Value:
    """What a quotient of s32 leaves that is rounded down, by what one towards zero leaves."""
    signs = p.add(p.binary("vand", rest, SIGN), _sign(p, b))
    left = p.binary("vmin", rest, p.sub(0, rest))
    return p.add(rest, p.binary("vand", sign_mask(p, p.binary("vand", signs, left)), b))


def _nearest(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """The whole number of s32 nearest to a / b."""
    return p.convert(p.div(a, b), "s32", "rint")


def wrong_side(p: VectorProgram, number: Operand, rest: Value) -> Value:
    """1 where a whole number is positive and `rest` negative, -1 the other way round, else 0."""
    side = limited(p, rest, -1.0, 1.0)
    if isinstance(number, Value):
        other: Operand = limited(p, number, -1.0, 1.0)
    else:
        other = max(-1.0, min(1.0, number))
    return p.convert(p.mul(p.sub(other, side), 0.5), "s32", "trunc")


MANTISSA_BITS = 23
HIDDEN = 1 << MANTISSA_BITS
"""The bit of f32 in front of those that are written, and the unit of the exponent."""

SIGN, EXPONENT = -(1 << 31), 0x7F800000
"""Bits of f32, as s32."""

ONE = 127 * HIDDEN
"""The bits of 1.0."""

LOW_BITS = 3
"""n = m 2^LOW_BITS + l."""


def float_remainder(p: VectorProgram, a: Operand, b: Operand, down: bool = False) -> Value:
    """What a quotient towards zero of f32 leaves of a, with its sign; NaN where b is 0, or a is
    infinite.

    Args:
        down: the quotient is rounded down instead: where something is left whose sign is not that
            of b, b is added, in f32.
    """
    upper, number = _parts(p, a)
    lower, by = _parts(p, b)
    steps = p.sub(upper, lower)
    power = p.max(steps, 0)
    unit = p.binary("vmin", upper, lower)
    modulus = _Modulus(p, p.add(by, p.sub(power, steps)))
    low = p.binary("vand", power, ((1 << LOW_BITS) - 1) * HIDDEN)
    high = p.convert(p.mul(p.convert(p.sub(power, low), "f32"), 2.0**-LOW_BITS), "s32", "rint")
    base = _as_float(p, p.add(high, ONE + SIGN))
    rest = modulus.reduced((p.convert(base, "s32", "rint"), base))
    rest = modulus.product(rest, rest)
    rest = modulus.reduced(modulus.product(rest, rest))
    rest = modulus.product(rest, rest)
    size = p.convert(number, "f32") if isinstance(number, Value) else float(number)
    scaled = p.mul(_as_float(p, p.add(low, ONE)), size)
    times = modulus.reduced((p.convert(scaled, "s32", "rint"), scaled))
    rest = modulus.reduced(modulus.product(rest, times))
    rest = p.add(rest, p.binary("vand", sign_mask(p, rest), modulus.by))
    found = p.mul(p.mul(p.convert(rest, "f32"), 2.0**-MANTISSA_BITS), _as_float(p, unit))
    found = p.add(found, _nothing(p, a, b))
    sign = _sign(p, a)
    if isinstance(sign, Value):
        found = p.step("vor", [found, sign])
    else:
        found = p.mul(found, -1.0 if sign else 1.0)
    if not down:
        return found
    # The highest bit is set where signs differ, and in `-rest` where something is left.
    differ = sign_mask(p, p.binary("vand", p.add(sign, _sign(p, b)), p.sub(0, rest)))
    # -b is taken off instead of b added: -0 less 0 stays -0.
    if isinstance(b, Value):
        other = p.mul(b, -1.0)
    else:
        other = p.constant("s32", int(np.float32(-b).view(np.int32)))
    return p.sub(found, p.step("vand", [differ, other], "f32"))


def _sign(p: VectorProgram, x: Operand) -> Operand:
    """The highest bit of f32 or s32, as s32."""
    if isinstance(x, Value):
        return p.step("vand", [x, p.constant("s32", SIGN)], "s32")
    return SIGN if math.copysign(1, x) < 0 else 0


def _parts(p: VectorProgram, x: Operand) -> tuple[Operand, Operand]:
    """The bits of the exponent of |x|, at least those of the lowest one of full precision, and the
    whole number of 24 bits that it is a multiple of, as s32."""
    if not isinstance(x, Value):
        bits = int(np.float32(abs(x)).view(np.int32))
        upper = max(bits & EXPONENT, HIDDEN)
        return upper, bits - upper + HIDDEN
    exponent = p.step("vand", [x, p.constant("s32", EXPONENT)], "s32")
    digits = p.step("vand", [x, p.constant("s32", HIDDEN - 1)], "s32")
    return p.max(exponent, HIDDEN), p.add(digits, p.min(exponent, HIDDEN))


def _nothing(p: VectorProgram, a: Operand, b: Operand) -> Operand:
    """0 of either sign, or NaN where a is infinite, b is 0, or one of them no number."""
    if isinstance(a, Value):
        zero: Operand = p.mul(a, 0.0)
    else:
        zero = 0.0 if math.isfinite(a) else math.nan
    if isinstance(b, Value):
        return p.div(zero, b)
    return zero if b and not math.isnan(b) else math.nan


def _as_float(p: VectorProgram, bits: Value) -> Value:
    """s32 as the f32 that has these bits."""
    return p.step("vor", [bits, bits], "f32")


Whole = Operand | tuple[Value, Value]
"""A number of s32, or it and the same in f32."""


class _Modulus:
    """Arithmetic of s32 modulo positive whole numbers of at most 24 bits.

    Args:
        by: the numbers; where one is 0, what is computed means nothing. One of more bits serves
            for products less than it.
    """

    def __init__(self, p: VectorProgram, by: Value) -> None:
        self.p, self.by = p, by
        self.inverse = p.div(1.0, p.convert(by, "f32"))

    def reduced(self, x: Whole) -> Value:
        """x modulo the numbers, at most about half of them."""
        whole, wide = self._both(x)
        return self._less(whole, self.p.mul(wide, self.inverse))

    def product(self, x: Whole, y: Whole) -> Value:
        """x y modulo the numbers, a few of them at most."""
        (u, wide), (v, other) = self._both(x), self._both(y)
        quotient = self.p.mul(self.p.mul(wide, self.inverse), other)
        return self._less(self.p.mul(u, v), quotient)

    def _both(self, x: Whole) -> tuple[Operand, Operand]:
        if isinstance(x, tuple):
            return x
        return x, self.p.convert(x, "f32") if isinstance(x, Value) else float(x)

    def _less(self, whole: Operand, quotient: Value) -> Value:
        """Less as many of the numbers as a quotient says."""
        times = self.p.convert(quotient, "s32", "rint")
        return self.p.sub(whole, self.p.mul(times, self.by))
