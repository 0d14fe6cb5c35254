"""Quotients and remainders of integers of 64 bits, by quotients of f32.

    three times    d = rint(f32(r) / f32(b))     r = r - d b     beginning with r = a
    q = sum of d, and one less or more where r has not the sign of a

f32 holds a number of 64 bits to 2^-22 of itself, so a quotient leaves 2^-21 of r and half of |b|;
the last one leaves less than |b|. Sums and products wrap around, and so does what the first
quotient takes too much at the ends of the range.

Numbers in between are h 2^32 + l with *signed* l: products of 16 bits stay within s32 then, and
whether l - l' wrapped around, f32 tells: it differs from the numbers' difference by 2^32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from davinci.operators.comparison import halves
from davinci.operators.division import wrong_side
from davinci.operators.formulas import limited
from davinci.operators.long_integers import HALF_RANGE, LOWER, long_as_float
from davinci.operators.vector_program import Operand, Value, VectorProgram
from davinci.operators.words import (
    HALF_WIDTH,
    mask,
    shifted_right,
    shifted_right_logical,
    sign_mask,
    signed,
)

ROUNDS = 3
"""Quotients in f32."""


@dataclass(frozen=True)
class Signed:
    """high 2^32 + low, modulo 2^64, with a signed low half; `single` is that half in f32."""

    low: Operand
    high: Operand
    single: Operand

    @staticmethod
    def of(p: VectorProgram, x: Operand) -> Signed:
        """s64 so."""
        low, high = halves(p, x)
        if isinstance(low, Value) and isinstance(high, Value):
            return Signed(low, p.sub(high, sign_mask(p, low)), p.convert(low, "f32"))
        assert not isinstance(low, Value) and not isinstance(high, Value), "both are numbers"
        return Signed(low, signed(int(high) + (low < 0)), float(np.float32(low)))

    def combined(self, p: VectorProgram, name: str, other: Signed) -> Signed:
        """The sum ("vadd") or the difference ("vsub")."""
        low, high, single = (
            p.binary(name, mine, given)
            for mine, given in zip(self.halves, other.halves, strict=True)
        )
        kept = p.convert(low, "f32")
        over = p.convert(p.mul(p.sub(single, kept), 1 / HALF_RANGE), "s32", "rint")
        return Signed(low, p.add(high, over), kept)

    @property
    def halves(self) -> tuple[Operand, Operand, Operand]:
        return self.low, self.high, self.single

    def joined(self, p: VectorProgram) -> Value:
        """The number of both halves as one value of s64."""
        assert isinstance(self.low, Value), "no number that is known"
        return p.join(self.low, p.add(self.high, sign_mask(p, self.low)))

    def in_f32(self, p: VectorProgram) -> Value:
        """The number, if it is less than 2^63 - 2^31."""
        assert isinstance(self.high, Value), "no number that is known"
        return p.add(p.mul(p.convert(self.high, "f32"), HALF_RANGE), self.single)


@dataclass(frozen=True)
class LongDivision:
    """Divides s64 by s64.

    Attributes:
        by, single: the divisor, and in f32.
        lower, upper: the lower 16 bits of its low half, and the others with a sign.
    """

    p: VectorProgram
    by: Signed
    single: Operand
    lower: Operand
    upper: Operand

    @staticmethod
    def by_number(p: VectorProgram, b: Operand) -> LongDivision:
        by = Signed.of(p, b)
        if isinstance(by.low, Value):
            lower: Operand = mask(p, by.low, LOWER)
            upper: Operand = shifted_right(p, by.low, HALF_WIDTH)
        else:
            lower, upper = int(by.low) & LOWER, int(by.low) >> HALF_WIDTH
        return LongDivision(p, by, in_f32(p, b), lower, upper)

    def parts(self, a: Operand) -> tuple[list[Signed], Signed]:
        """Numbers whose sum is the quotient or one beside it, and what they leave of a."""
        p, found, rest = self.p, [], Signed.of(self.p, a)
        left = in_f32(p, a)
        for _ in range(ROUNDS):
            part = self._nearest(p.div(left, self.single))
            rest = rest.combined(p, "vsub", self._times(part))
            left = rest.in_f32(p)
            found.append(part)
        return found, rest

    def _nearest(self, x: Value) -> Signed:
        """The whole number nearest to f32; where a half saturates, one near it."""
        p = self.p
        high = p.convert(p.mul(x, 1 / HALF_RANGE), "s32", "rint")
        rest = p.sub(x, p.mul(p.convert(high, "f32"), HALF_RANGE))
        return Signed(p.convert(rest, "s32", "rint"), high, rest)

    def _times(self, part: Signed) -> Signed:
        """The divisor times a number."""
        p, by = self.p, self.by
        assert isinstance(part.low, Value), "a quotient is a value"
        lower, upper = mask(p, part.low, LOWER), shifted_right(p, part.low, HALF_WIDTH)
        lowest = shifted_right_logical(p, p.mul(lower, self.lower), HALF_WIDTH)
        middle = p.add(p.mul(upper, self.lower), lowest)
        other = p.add(p.mul(lower, self.upper), mask(p, middle, LOWER))
        above = p.add(p.mul(upper, self.upper), shifted_right(p, middle, HALF_WIDTH))
        above = p.add(above, shifted_right(p, other, HALF_WIDTH))
        across = p.add(p.mul(part.low, by.high), p.mul(part.high, by.low))
        low = p.mul(part.low, by.low)
        # The low half had no sign so far.
        return Signed(low, p.add(p.sub(above, sign_mask(p, low)), across), p.convert(low, "f32"))

    def step(self, side: Operand, rest: Signed) -> Value:
        """What is missing times the divisor, 1, 0 or -1, so that what is left has the sign of
        `side`."""
        p = self.p
        wrong = wrong_side(p, side, rest.in_f32(p))
        if not isinstance(self.single, Value):
            return p.mul(wrong, math.copysign(1, self.single))
        return p.mul(wrong, p.convert(limited(p, self.single, -1.0, 1.0), "s32", "trunc"))


def in_f32(p: VectorProgram, x: Operand) -> Operand:
    return long_as_float(p, x) if isinstance(x, Value) else float(np.float32(x))


def long_quotient(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """The quotient of s64 towards zero; -1 where b is 0, and of the lowest number by -1 itself."""
    if not isinstance(b, Value) and b == 0:
        assert isinstance(a, Value), "one of both is a value"
        return p.join(p.max(p.min(p.halves(a)[0], -1), -1), -1)
    division = LongDivision.by_number(p, b)
    (first, second, last), rest = division.parts(a)
    last = replace(last, low=p.sub(last.low, division.step(in_f32(p, a), rest)))
    found = first.combined(p, "vadd", second).combined(p, "vadd", last).joined(p)
    by = division.single
    if not isinstance(by, Value):
        return found
    known = p.convert(p.min(p.unary("vabs", by), 1.0), "s32", "trunc")
    low, high = (p.add(p.mul(half, known), p.sub(known, 1)) for half in p.halves(found))
    return p.join(low, high)


def long_remainder(p: VectorProgram, a: Operand, b: Operand, down: bool) -> Value:
    """What a quotient of s64 leaves, with the sign of a, or of b if it is rounded `down`; a where b
    is 0."""
    if not isinstance(b, Value) and b == 0:
        assert isinstance(a, Value), "one of both is a value"
        return a
    division = LongDivision.by_number(p, b)
    by, (_, rest) = division.by, division.parts(a)
    step = division.step(division.single if down else in_f32(p, a), rest)
    single = p.mul(p.convert(step, "f32"), by.single)
    missing = Signed(p.mul(step, by.low), p.mul(step, by.high), single)
    return rest.combined(p, "vadd", missing).joined(p)
