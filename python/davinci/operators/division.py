"""Quotients of integers of 32 bits by way of f32, exact for all of them.

q = rint(a / b)              in f32: off by no more than 2^-22 of itself
r = a - q b                  exact, as a wraps around; at most half of |b| and 2^9 more
q += rint(r / b), r = ..     now |r| is less than |b|
q -= s sign(b), r += s |b|   where r has not the sign of a: s = 1 if a is positive, else -1
"""

from __future__ import annotations

import math

from davinci.operators.formulas import limited
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
