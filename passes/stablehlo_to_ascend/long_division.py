"""Quotients and remainders of integers of 64 bits, by three quotients of f32 and a correction.

    q = 0, r = a
    three times:    d = i64(f32(r) / f32(b))     q = q + d     r = r - d b
    once:           r has the sign of a, and is smaller than b

A quotient in f32 leaves less than 2^-22 of r and one b, so that three leave less than twice b of
any r. All sums and products wrap around, and so does what the first quotient takes too much at the
ends of the range: q and r are right whatever is lost in between. By 0 the quotient is -1 and the
remainder a, as elsewhere. Few numbers stay with the scalar unit.
"""

from __future__ import annotations

import math

from davinci.mlir import Op, ir
from davinci.passes.stablehlo_to_ascend import tensors as t

ROUNDS = 3
"""Quotients in f32 of 22 bits or more, for 64."""

MOST_BY_SCALARS = 128
"""Numbers that the scalar unit divides in the time that some eighty vector instructions take."""


def expand_division(op: Op) -> list[ir.Value] | None:
    """The quotient of a `stablehlo.divide` of i64; None of other types and of few numbers."""
    found = division(op)
    return None if found is None else [found[0]]


def expand_remainder(op: Op) -> list[ir.Value] | None:
    """The same of a `stablehlo.remainder`."""
    found = division(op)
    return None if found is None else [found[1]]


def division(op: Op) -> tuple[ir.Value, ir.Value] | None:
    """The quotient, rounded towards 0, and the remainder of the operands of an operation."""
    a, b = op.operands
    signed_long = ir.IntegerType.get_signless(64)
    many = math.prod(a.type.shape) > MOST_BY_SCALARS
    return divided(a, b) if many and a.type.element_type == signed_long else None


def divided(a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
    kind = a.type
    single = ir.RankedTensorType.get(kind.shape, ir.F32Type.get())
    zero, one, less = (t.full(kind, number) for number in (0, 1, -1))
    divisor = t.op("convert", [b], single)
    quotient, rest = zero, a
    for _ in range(ROUNDS):
        ratio = t.divide(t.op("convert", [rest], single), divisor)
        digit = t.op("convert", [ratio], kind)
        quotient = t.add(quotient, digit)
        rest = t.subtract(rest, t.multiply(digit, b))
    negative = t.compare("LT", a, zero)
    signs = (select(flags, one, zero) for flags in (negative, t.compare("LT", b, zero)))
    alike = t.compare("EQ", *signs)
    size = select(alike, b, t.subtract(zero, b))  # of the divisor, with the sign of a
    step = select(alike, one, less)
    # What is left has the other sign.
    wrong = select(negative, t.compare("GT", rest, zero), t.compare("LT", rest, zero))
    rest = select(wrong, t.add(rest, size), rest)
    quotient = select(wrong, t.subtract(quotient, step), quotient)
    # It is no smaller than the divisor, whose size wraps around if that is the lowest number.
    below = both(t.compare("LT", size, zero), t.compare("LE", rest, size))
    above = both(t.compare("GT", size, zero), t.compare("GE", rest, size))
    more = select(negative, below, above)
    rest = select(more, t.subtract(rest, size), rest)
    quotient = select(more, t.add(quotient, step), quotient)
    nothing = t.compare("EQ", b, zero)
    return select(nothing, less, quotient), select(nothing, a, rest)


def select(flags: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
    return t.op("select", [flags, a, b], a.type)


def both(a: ir.Value, b: ir.Value) -> ir.Value:
    return t.op("and", [a, b], a.type)
