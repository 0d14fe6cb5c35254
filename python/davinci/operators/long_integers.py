"""Arithmetic of integers of 64 bits as pairs of 32: a low half, taken as signed, and a high one.

Everything wraps around, as the sums, differences and products of s32 do. A sum carries where two of
a's, b's and the inverted sum's highest bits are set:

    carry = ((a & b) | ((a | b) & ~(a + b))) >> 31, which as a signed shift is 0 or -1
"""

from __future__ import annotations

from davinci.operators.comparison import chosen_of, halves, long_holds
from davinci.operators.vector_program import Operand, Value, VectorProgram
from davinci.operators.words import (
    HALF_WIDTH,
    WIDTH,
    bit_of,
    both,
    either,
    inverted,
    mask,
    not_zero,
    picked,
    shifted_left,
    shifted_right,
    shifted_right_logical,
    sign_mask,
)

Pair = tuple[Operand, Operand]

LONG_WIDTH = 64
LOWER = (1 << HALF_WIDTH) - 1

HALF_RANGE = 2.0**WIDTH
"""The number that one of the high half stands for."""


def long_add(p: VectorProgram, a: Operand, b: Operand) -> Value:
    (low, high), (other_low, other_high) = halves(p, a), halves(p, b)
    total = p.add(low, other_low)
    kept = both(p, either(p, low, other_low), inverted(p, total))
    carry = sign_mask(p, either(p, both(p, low, other_low), kept))
    return p.join(total, p.sub(p.add(high, other_high), carry))


def long_sub(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """a - b, which borrows where a carry of ~a and b comes about."""
    (low, high), (other_low, other_high) = halves(p, a), halves(p, b)
    rest = p.sub(low, other_low)
    back = inverted(p, low)
    kept = both(p, either(p, back, other_low), rest)
    borrow = sign_mask(p, either(p, both(p, back, other_low), kept))
    return p.join(rest, p.add(p.sub(high, other_high), borrow))


def long_mul(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """a * b: the low halves' product in quarters, and what meets a high half."""
    (low, high), (other_low, other_high) = halves(p, a), halves(p, b)
    (a0, a1), (b0, b1) = (_quarters(p, x) for x in (low, other_low))
    lowest = p.mul(a0, b0)
    middle = p.add(p.mul(a1, b0), shifted_right_logical(p, lowest, HALF_WIDTH))
    other = p.add(p.mul(a0, b1), mask(p, middle, LOWER))
    above = p.add(p.mul(a1, b1), shifted_right_logical(p, middle, HALF_WIDTH))
    above = p.add(above, shifted_right_logical(p, other, HALF_WIDTH))
    across = p.add(p.mul(low, other_high), p.mul(high, other_low))
    return p.join(p.mul(low, other_low), p.add(above, across))


def _quarters(p: VectorProgram, a: Operand) -> Pair:
    """The lower and the upper 16 bits of s32, both without a sign."""
    if isinstance(a, Value):
        return mask(p, a, LOWER), shifted_right_logical(p, a, HALF_WIDTH)
    return int(a) & LOWER, int(a) >> HALF_WIDTH & LOWER


def long_as_float(p: VectorProgram, x: Value) -> Value:
    """s64 in f32, to 2^-22 of itself. The low half is taken as signed, so that a small number is
    its own; where it is negative then, the high half is one more."""
    low, high = p.halves(x)
    above = p.sub(p.convert(high, "f32"), p.convert(sign_mask(p, low), "f32"))
    return p.add(p.mul(above, HALF_RANGE), p.convert(low, "f32"))


def long_choice(p: VectorProgram, predicate: str, a: Operand, b: Operand) -> Value:
    """predicate(a, b) ? a : b."""
    flag = p.convert(long_holds(p, predicate, a, b), "f16")
    pairs = zip(halves(p, a), halves(p, b), strict=True)
    low, high = (chosen_of(p, flag, x, y) for x, y in pairs)
    return p.join(low, high)


def long_shift(p: VectorProgram, a: Operand, count: Operand, direction: str) -> Value:
    """a shifted by a number, or by counts that are values; beyond 63, 0 or the sign is left.

    Args:
        direction: "left", "right" (copies of the sign come in) or "logical" (zeros do).
    """
    low, high = (p.array(half, "s32") for half in halves(p, a))
    if not isinstance(count, Value):
        return p.join(*_moved(p, (low, high), int(count), direction))
    counts, above = p.halves(count)
    found = (low, high)
    for bit in range(LONG_WIDTH.bit_length() - 1):
        chosen = bit_of(p, counts, bit)
        moved = _moved(p, found, 1 << bit, direction)
        low, high = (picked(p, chosen, x, y) for x, y in zip(moved, found, strict=True))
        found = (low, high)
    beyond = not_zero(p, either(p, mask(p, counts, ~(LONG_WIDTH - 1)), above))
    rest = sign_mask(p, found[1]) if direction == "right" else 0
    low, high = (picked(p, beyond, rest, half) for half in found)
    return p.join(low, high)


def _moved(p: VectorProgram, a: tuple[Value, Value], count: int, direction: str) -> Pair:
    """The halves of a, shifted by a number below 64."""
    low, high = a
    if not count:
        return a
    if direction == "left":
        if count >= WIDTH:
            return 0, shifted_left(p, low, count - WIDTH)
        over = shifted_right_logical(p, low, WIDTH - count)
        return shifted_left(p, low, count), p.add(shifted_left(p, high, count), over)
    shifted = shifted_right if direction == "right" else shifted_right_logical
    if count >= WIDTH:
        above = sign_mask(p, high) if direction == "right" else 0
        return shifted(p, high, count - WIDTH), above
    over = shifted_left(p, high, WIDTH - count)
    return p.add(shifted_right_logical(p, low, count), over), shifted(p, high, count)
