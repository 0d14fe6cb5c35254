"""Whole numbers near f64, and f16 of them, as bits, on machines that do not compute with f64.

With f the bits of a mantissa behind the point, a number is rounded by adding something below 2^f to
its bits without the sign and taking the last f bits away. What the mantissa overflows by goes to
the exponent, as it should:

    towards zero                    0
    away from zero                  2^f - 1
    to nearest, ties away           2^(f - 1)
    to nearest, ties to even        2^(f - 1) - 1, and the last bit in front of the point

Numbers below 1 become 0 or 1, larger ones than 2^52 are whole.
"""

from __future__ import annotations

import numpy as np

from davinci.operators.constraints import converts
from davinci.operators.core import Array, elementwise
from davinci.operators.double_parts import (
    FRACTION_BITS,
    LOWER,
    SIGN,
    UPPER_BITS,
    Double,
    Limbs,
    any_of,
    carried,
    is_negative,
    positive,
    power_of_two,
    whole_power,
    with_special,
)
from davinci.operators.doubles import BIAS, LONG, bits_of, computed
from davinci.operators.vector_program import Value, VectorProgram
from davinci.operators.words import (
    HALF_WIDTH,
    MANTISSA_BITS,
    either,
    mask,
    picked,
    quotient,
    shifted_left,
)

ONE = BIAS << UPPER_BITS
"""The high word of 1."""

WIDTHS = (HALF_WIDTH, HALF_WIDTH, UPPER_BITS)
"""Bits of a mantissa in each limb."""

TOP = (1 << UPPER_BITS + 1) - 1
"""Those in the high word, and the lowest one of the exponent: the bit in front of the point of
numbers below 2."""


class Fraction:
    """The bits of f64 behind the point.

    Attributes:
        bits: how many, from 0 to 53; below 1 there are 53.
        counts: how many in each limb.
    """

    def __init__(self, p: VectorProgram, x: Double) -> None:
        self.p, self.x = p, x
        most = FRACTION_BITS + 1
        self.bits = p.min(p.max(p.sub(BIAS + FRACTION_BITS, x.exponent), 0), most)
        self.counts = [
            p.min(p.max(p.sub(self.bits, HALF_WIDTH * place), 0), width)
            for place, width in enumerate(WIDTHS)
        ]
        self.units = [whole_power(p, count) for count in self.counts]
        self.inverses = [power_of_two(p, p.sub(0, count)) for count in self.counts]

    def ones(self, where: Value) -> Limbs:
        """2^f - 1 in limbs, where s32 is 1."""
        return [self.p.mul(self.p.sub(unit, 1), where) for unit in self.units]

    def half(self) -> Limbs:
        """2^(f - 1) in limbs, 0 where f is."""
        p = self.p
        halves = [quotient(p, unit, 0.5) for unit in self.units]
        above = [p.sub(1, p.min(count, 1)) for count in self.counts[1:]]
        return [*(p.mul(u, v) for u, v in zip(halves, above, strict=False)), halves[-1]]

    def odd(self) -> Value:
        """The bit in front of the point, of numbers from 1 on."""
        p, x = self.p, self.x
        whole = [
            quotient(p, limb, inverse)
            for limb, inverse in zip(
                [*x.limbs[:2], mask(p, x.size, TOP)], self.inverses, strict=True
            )
        ]
        first, second, third = (p.sub(q, p.mul(quotient(p, q, 0.5), 2)) for q in whole)
        beyond = [positive(p, p.sub(self.bits, HALF_WIDTH * n - 1)) for n in (1, 2)]
        return picked(p, beyond[1], third, picked(p, beyond[0], second, first))

    def rounded(self, added: Limbs | None, one: Value | None) -> Value:
        """The bits of the number with something added to those of its size and its fraction taken
        away; of numbers below 1, 1 where `one` is."""
        p, x = self.p, self.x
        limbs = [*x.limbs[:2], x.size]
        if added is not None:
            limbs = carried(p, [p.add(u, v) for u, v in zip(limbs, added, strict=True)])
        kept = []
        for limb, unit, inverse, most in zip(
            limbs, self.units, self.inverses, (LOWER, LOWER, TOP), strict=True
        ):
            low = mask(p, limb, most)
            whole = p.mul(quotient(p, low, inverse), unit)
            kept.append(p.sub(limb, p.sub(low, whole)))
        low = p.add(kept[0], shifted_left(p, kept[1], HALF_WIDTH))
        small = positive(p, p.sub(BIAS, x.exponent))
        nothing = p.sub(small, small)
        least = nothing if one is None else p.mul(one, ONE)
        high = either(p, picked(p, small, least, kept[2]), mask(p, x.high, SIGN))
        words = p.mul(p.sub(1, small), low), high
        return with_special(p, words, x.endless(p), x.is_nan(p), x.high)


@elementwise(values=computed("floor"), types=LONG)
def double_floor(p: VectorProgram, a: Value) -> Value:
    """The bits of the largest whole number that is not above the f64 that a is the bits of."""
    x = Double.of(p, a)
    fraction, negative = Fraction(p, x), is_negative(p, x.high)
    return fraction.rounded(fraction.ones(negative), p.mul(negative, x.some(p)))


@elementwise(values=computed("rint"), types=LONG)
def double_round_even(p: VectorProgram, a: Value) -> Value:
    """The bits of the whole number nearest to the f64 that a is the bits of, ties to even."""
    x = Double.of(p, a)
    fraction = Fraction(p, x)
    low, *others = fraction.half()
    less = p.mul(p.sub(fraction.odd(), 1), p.min(fraction.bits, 1))
    above = any_of(p, [*x.limbs[:2], mask(p, x.high, (1 << UPPER_BITS) - 1)])
    return fraction.rounded([p.add(low, less), *others], p.mul(_from_half(p, x), above))


def away(a: Array) -> Array:
    """The bits of whole numbers nearest to f64, ties away from zero."""
    with np.errstate(all="ignore"):
        x = a.view(np.float64)
        whole = np.trunc(x)
        more = abs(x - whole) >= 0.5
        return bits_of(np.copysign(abs(whole) + more, x))


@elementwise(values=away, types=LONG)
def double_round(p: VectorProgram, a: Value) -> Value:
    """The bits of the whole number nearest to the f64 that a is the bits of, ties away from 0."""
    x = Double.of(p, a)
    fraction = Fraction(p, x)
    return fraction.rounded(fraction.half(), _from_half(p, x))


def _from_half(p: VectorProgram, x: Double) -> Value:
    """1 where a number's size is 1/2 or more."""
    return positive(p, p.sub(x.exponent, BIAS - 2))


LEAST_SINGLE = BIAS - 126
MOST_SINGLE = BIAS + 127


def half_of(a: Array) -> Array:
    with np.errstate(all="ignore"):
        found = a.view(np.float64).astype(np.float16)
    return np.where(np.isnan(found), np.float16(np.nan), found)


@elementwise(values=half_of, types=LONG | {"f16"}, constraints=(converts("i64", "f16"),))
def double_to_half(p: VectorProgram, a: Value) -> Value:
    """The f16 nearest to the f64 that a is the bits of, ties to even: of an f32 towards zero that
    is odd where anything was left out, so that it is rounded once. What f16 has no number below is
    the least or the largest of the normal f32."""
    x = Double.of(p, a)
    low, middle, top = x.limbs
    upper = quotient(p, middle, 2.0**-13)
    rest = either(p, p.sub(middle, p.mul(upper, 1 << 13)), low)
    bits = p.add(shifted_left(p, mask(p, top, (1 << UPPER_BITS) - 1), 3), upper)
    bits = either(p, bits, p.min(rest, 1))
    exponent = p.min(p.max(x.exponent, LEAST_SINGLE), MOST_SINGLE)
    size = p.add(bits, p.mul(p.sub(exponent, LEAST_SINGLE - 1), 1 << MANTISSA_BITS))
    size = p.mul(size, x.some(p))
    nan = x.is_nan(p)
    size = picked(p, x.endless(p), p.add(p.mul(nan, 1 << MANTISSA_BITS - 1), 0xFF << 23), size)
    sign = p.mul(mask(p, x.high, SIGN), p.sub(1, nan))
    number = either(p, size, sign)
    return p.convert(p.step("vor", [number, number], "f32"), "f16")
