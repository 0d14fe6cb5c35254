"""Quotients and remainders of integers of 64 bits, by quotients of f32.

    three times    d = rint(f32(r) / f32(b))     r = r - d b     beginning with r = a
    q = sum of d, and one less or more where r has not the sign of a

f32 holds a number of 64 bits to 2^-22 of itself, so a quotient leaves 2^-21 of r and half of |b|;
the last one has at most 22 bits and leaves less than |b|. Sums and products wrap around, and so
does what the first quotient takes too much at the ends of the range.

Numbers in between are h 2^32 + l with *signed* l. What s32 keeps of a sum or a product and the same
in f32 differ by a multiple of 2^32, which f32 tells as long as it is off by less than 2^31: so for
a product of 31 and 16 bits, into two of which that of low halves is cut.

    l b = (l u) 2^16 + l v      with b = u 2^16 + v
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from davinci.operators.comparison import halves
from davinci.operators.division import wrong_side
from davinci.operators.formulas import limited
from davinci.operators.long_integers import HALF_RANGE
from davinci.operators.vector_program import Operand, Value, VectorProgram
from davinci.operators.words import HALF_WIDTH, sign_mask, signed

QUARTER_RANGE = 1 << HALF_WIDTH
"""The number that one of the upper quarter of a low half stands for."""


@dataclass(frozen=True)
class Signed:
    """high 2^32 + low, modulo 2^64, with a signed low half.

    Attributes:
        single: the low half in f32; of a sum that is not `settled`, what the low half would be if
            it had not wrapped around.
    """

    low: Operand
    high: Operand
    single: Operand

    def plus(self, p: VectorProgram, other: Signed) -> Signed:
        """The sum, not settled."""
        high = self.high
        if isinstance(other.high, Value):
            high = p.add(high, other.high)
        return Signed(p.add(self.low, other.low), high, p.add(self.single, other.single))

    def settled(self, p: VectorProgram) -> Signed:
        """The same number, with its high half right where the low one wrapped around."""
        assert isinstance(self.low, Value) and isinstance(self.single, Value), "a sum of values"
        kept = p.convert(self.low, "f32")
        return Signed(self.low, p.add(self.high, wraps(p, p.sub(self.single, kept))), kept)

    def joined(self, p: VectorProgram) -> Value:
        """The number of both halves as one value of s64."""
        assert isinstance(self.low, Value), "no number that is known"
        return p.join(self.low, p.add(self.high, sign_mask(p, self.low)))

    def in_f32(self, p: VectorProgram) -> Value:
        """The number, if it is less than 2^63 - 2^31."""
        assert isinstance(self.high, Value), "no number that is known"
        return p.add(p.mul(p.convert(self.high, "f32"), HALF_RANGE), self.single)


def parted(p: VectorProgram, x: Operand) -> tuple[Signed, Operand]:
    """s64 with a signed low half, and in f32."""
    low, high = halves(p, x)
    if isinstance(low, Value) and isinstance(high, Value):
        sign, single = sign_mask(p, low), p.convert(low, "f32")
        above = p.sub(p.convert(high, "f32"), p.convert(sign, "f32"))
        return Signed(low, p.sub(high, sign), single), p.add(p.mul(above, HALF_RANGE), single)
    assert not isinstance(low, Value) and not isinstance(high, Value), "both are numbers"
    assert not isinstance(x, Value), "a number has halves that are numbers"
    found = Signed(low, signed(int(high) + (low < 0)), float(np.float32(low)))
    return found, float(np.float32(x))


def wraps(p: VectorProgram, x: Value) -> Value:
    """The quotient of an f32 by 2^32 as s32, rounded to the nearest: how often a sum wrapped."""
    return p.convert(p.mul(x, 1 / HALF_RANGE), "s32", "rint")


@dataclass(frozen=True)
class LongDivision:
    """Divides s64 by s64.

    Attributes:
        by, single: the divisor, and in f32.
        upper, quarters: its low half is `upper` 2^16 + v; `upper` and v in f32.
    """

    p: VectorProgram
    by: Signed
    single: Operand
    upper: Operand
    quarters: tuple[Operand, Operand]

    @staticmethod
    def by_number(p: VectorProgram, b: Operand) -> LongDivision:
        by, single = parted(p, b)
        if isinstance(by.low, Value) and isinstance(by.single, Value):
            upper: Operand = p.convert(p.mul(by.single, 1 / QUARTER_RANGE), "s32", "rint")
            lower = p.sub(by.low, p.mul(upper, QUARTER_RANGE))
            assert isinstance(upper, Value), "of values"
            quarters: tuple[Operand, Operand] = p.convert(upper, "f32"), p.convert(lower, "f32")
        else:
            assert not isinstance(by.low, Value), "a number"
            upper = int(by.low) + QUARTER_RANGE // 2 >> HALF_WIDTH
            quarters = float(upper), float(by.low - upper * QUARTER_RANGE)
        return LongDivision(p, by, single, upper, quarters)

    def parts(self, rest: Signed, single: Operand) -> tuple[Signed, Signed]:
        """The quotient or a number beside it, not settled, and what it leaves of `rest`.

        Args:
            single: `rest` in f32.
        """
        p = self.p
        first = self._nearest(p.div(single, self.single))
        rest = self._left(rest, first)
        second = self._nearest(p.div(rest.in_f32(p), self.single))
        found = first.plus(p, second)
        rest = self._left(rest, second)
        third = self._nearest_low(p.div(rest.in_f32(p), self.single))
        rest = self._left(rest, third)
        return found.plus(p, third), rest

    def _nearest(self, x: Value) -> Signed:
        """The whole number nearest to f32; where a half saturates, one near it."""
        p = self.p
        high = wraps(p, x)
        rest = p.sub(x, p.mul(p.convert(high, "f32"), HALF_RANGE))
        return Signed(p.convert(rest, "s32", "rint"), high, rest)

    def _nearest_low(self, x: Value) -> Signed:
        """The whole number nearest to f32, if s32 has it."""
        return Signed(self.p.convert(x, "s32", "rint"), 0, x)

    def _left(self, rest: Signed, part: Signed) -> Signed:
        """The remainder `rest` less `part` times the divisor."""
        p, by = self.p, self.by
        upper, lower = self.quarters
        above = p.mul(part.low, self.upper)
        single = p.convert(above, "f32")
        over = wraps(p, p.sub(p.mul(part.single, upper), single))
        low = p.sub(rest.low, p.mul(part.low, by.low))
        kept = p.convert(low, "f32")
        product = p.add(p.mul(single, QUARTER_RANGE), p.mul(part.single, lower))
        back = wraps(p, p.sub(p.sub(rest.single, product), kept))
        taken = p.add(p.mul(part.low, by.high), p.mul(over, QUARTER_RANGE))
        if isinstance(part.high, Value):
            taken = p.add(taken, p.mul(part.high, by.low))
        return Signed(low, p.add(p.sub(rest.high, taken), back), kept)

    def step(self, side: Operand, rest: Signed) -> Value:
        """What is missing times the divisor, 1, 0 or -1, so that what is left has the sign of
        `side`."""
        p = self.p
        wrong = wrong_side(p, side, rest.in_f32(p))
        if not isinstance(self.single, Value):
            return p.mul(wrong, math.copysign(1, self.single))
        return p.mul(wrong, p.convert(limited(p, self.single, -1.0, 1.0), "s32", "trunc"))


def long_quotient(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """The quotient of s64 towards zero; -1 where b is 0, and of the lowest number by -1 itself."""
    if not isinstance(b, Value) and b == 0:
        assert isinstance(a, Value), "one of both is a value"
        return p.join(p.max(p.min(p.halves(a)[0], -1), -1), -1)
    division = LongDivision.by_number(p, b)
    number, side = parted(p, a)
    found, rest = division.parts(number, side)
    found = replace(found, low=p.sub(found.low, division.step(side, rest))).settled(p)
    by, quotient = division.single, found.joined(p)
    if not isinstance(by, Value):
        return quotient
    known = p.convert(p.min(p.unary("vabs", by), 1.0), "s32", "trunc")
    instead = p.sub(known, 1)
    low, high = (p.add(p.mul(half, known), instead) for half in p.halves(quotient))
    return p.join(low, high)


def long_remainder(p: VectorProgram, a: Operand, b: Operand, down: bool) -> Value:
    """What a quotient of s64 leaves, with the sign of a, or of b if it is rounded `down`; a where b
    is 0."""
    if not isinstance(b, Value) and b == 0:
        assert isinstance(a, Value), "one of both is a value"
        return a
    division = LongDivision.by_number(p, b)
    number, side = parted(p, a)
    by, (_, rest) = division.by, division.parts(number, side)
    step = division.step(division.single if down else side, rest)
    single = p.mul(p.convert(step, "f32"), by.single)
    missing = Signed(p.mul(step, by.low), p.mul(step, by.high), single)
    return rest.plus(p, missing).settled(p).joined(p)
