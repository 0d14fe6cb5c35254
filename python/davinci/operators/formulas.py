"""Pieces that tile rules of several families are made of."""

from __future__ import annotations

import functools
from collections.abc import Callable

from davinci.operators.vector_program import Operand, Value, VectorProgram

WHOLE_LIMIT = float(1 << 23)
"""f32 numbers from this on have no fraction."""


def horner(p: VectorProgram, x: Value, coefficients: tuple[float, ...]) -> Value:
    """The polynomial of `x` with these coefficients, lowest power first; at least two."""
    *rest, high = coefficients
    result = p.mul(x, high)
    for coefficient in reversed(rest[1:]):
        result = p.mul(p.add(result, coefficient), x)
    return p.add(result, rest[0])


def with_sign(p: VectorProgram, x: Value) -> Value:
    """x + 1 / x, which of zeros and infinities too has the sign of f32 `x` and is not 0."""
    return p.add(x, p.unary("vrec", x))


def limited(p: VectorProgram, x: Value, low: float, high: float) -> Value:
    """x, no less than `low` and no more than `high`."""
    return p.min(p.max(x, low), high)


def in_f32(
    rule: Callable[[VectorProgram, Value], Value],
) -> Callable[[VectorProgram, Value], Value]:
    """Computes a rule in f32 whatever the type of its operand."""

    @functools.wraps(rule)
    def widened(p: VectorProgram, x: Value) -> Value:
        return p.convert(rule(p, p.convert(x, "f32", exact=True)), x.dtype)

    return widened


def whole(p: VectorProgram, x: Value, rounding: str) -> Value:
    """Rounds f32 through s32; what has no fraction, infinities and NaN stay as they are."""
    integer = p.convert(p.convert(x, "s32", rounding), "f32")
    return p.choose("lt", p.unary("vabs", x), WHOLE_LIMIT, integer, x)


def kind_of(*operands: Operand) -> str:
    """The type that the values among the operands have."""
    return next(v.dtype for v in operands if isinstance(v, Value))


def in_f16(p: VectorProgram, a: Operand) -> Operand:
    return p.convert(a, "f16") if isinstance(a, Value) else float(a)


def to_byte(p: VectorProgram, x: Value) -> Value:
    """A float that holds an integer of 8 bits as s8."""
    return p.convert(p.convert(x, "f16", exact=True), "s8", exact=True)
