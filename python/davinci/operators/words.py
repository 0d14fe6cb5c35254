"""Bits of 32-bit integers in steps that machines without shifts have.

A shift to the left is a product, which wraps around. To the right, the bits that fall out are taken
off first. What is left of at least 8 of them is a whole number of 24 bits times a power of two,
which f32 holds, so that a product by a power of two is exact there:

    x >> 16   =   s32(f32(x - (x & 0xFFFF)) * 2^-16)

Fewer bits are shifted in the two halves of 16 bits, each of which f32 holds.
"""

from __future__ import annotations

from davinci.operators.vector_program import Operand, Value, VectorProgram

WIDTH = 32
HALF_WIDTH = 16
EXACT_BITS = 24
"""f32 holds whole numbers of so many bits."""


def signed(bits: int) -> int:
    """The number whose two's complement the lowest 32 bits of `bits` are."""
    return (bits + (1 << WIDTH - 1)) % (1 << WIDTH) - (1 << WIDTH - 1)


def mask(p: VectorProgram, x: Value, bits: int) -> Value:
    """x & bits."""
    return p.binary("vand", x, signed(bits))


def both(p: VectorProgram, a: Operand, b: Operand) -> Value:
    return p.binary("vand", a, b)


def either(p: VectorProgram, a: Operand, b: Operand) -> Value:
    return p.binary("vor", a, b)


def inverted(p: VectorProgram, a: Operand) -> Operand:
    return p.unary("vnot", a) if isinstance(a, Value) else -1 - a


def sign_mask(p: VectorProgram, x: Value) -> Value:
    """-1 where s32 is negative, else 0: all bits as the highest one."""
    return p.min(p.max(x, -1), 0)


def shifted_left(p: VectorProgram, x: Value, count: int) -> Value:
    """x << count, for counts below 32."""
    return p.mul(x, signed(1 << count)) if count else x


def shifted_right(p: VectorProgram, x: Value, count: int) -> Value:
    """x >> count with copies of the sign coming in, for counts below 32."""
    if not count:
        return x
    if count >= WIDTH - 1:
        return sign_mask(p, x)
    if count >= WIDTH - EXACT_BITS:
        left = p.sub(x, mask(p, x, (1 << count) - 1))
        return quotient(p, left, 2.0**-count)
    high = shifted_right(p, x, HALF_WIDTH)
    low = mask(p, x, ((1 << HALF_WIDTH) - 1) & ~((1 << count) - 1))
    return p.add(p.mul(high, 1 << HALF_WIDTH - count), quotient(p, low, 2.0**-count))


def shifted_right_logical(p: VectorProgram, x: Value, count: int) -> Value:
    """x >> count with zeros coming in, for counts below 32."""
    if not count:
        return x
    return mask(p, shifted_right(p, x, count), (1 << WIDTH - count) - 1)


def quotient(p: VectorProgram, x: Value, by: Operand) -> Value:
    """s32 that f32 holds times a power of two of f32, towards zero."""
    return p.convert(p.mul(p.convert(x, "f32"), by), "s32", "trunc")


def shifted_by(p: VectorProgram, x: Operand, count: Value, direction: str) -> Value:
    """x shifted by counts that are values; beyond 31, 0 or the sign is left.

    Every bit of the count decides on a shift by its weight, so that a shift is five of them.

    Args:
        direction: "left", "right" (copies of the sign come in) or "logical" (zeros do).
    """
    shift = {
        "left": shifted_left,
        "right": shifted_right,
        "logical": shifted_right_logical,
    }[direction]
    found = p.array(x, "s32")
    for bit in range(WIDTH.bit_length() - 1):
        chosen = bit_of(p, count, bit)
        found = picked(p, chosen, shift(p, found, 1 << bit), found)
    beyond = not_zero(p, mask(p, count, ~(WIDTH - 1)))
    rest = sign_mask(p, found) if direction == "right" else 0
    return picked(p, beyond, rest, found)


def not_zero(p: VectorProgram, x: Value) -> Value:
    """1 where s32 is not 0, else 0."""
    side = p.min(p.max(x, -1), 1)
    return p.mul(side, side)


def bit_of(p: VectorProgram, x: Value, bit: int) -> Value:
    """1 where a bit of s32 below the sign is set, else 0."""
    return p.min(mask(p, x, 1 << bit), 1)


def picked(p: VectorProgram, chosen: Value, x: Operand, y: Value) -> Value:
    """x where s32 `chosen` is 1, y where it is 0."""
    return p.add(p.mul(chosen, p.sub(x, y)), y)


COUNTED = ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F))
"""Shifts, and bits that stay, of the sums of neighbours by which set bits are counted."""


def leading_zeros(p: VectorProgram, x: Value) -> Value:
    """How many bits of s32 are not set in front of the first one that is: by the exponent of f32,
    which holds the lowest byte and what is above it exactly. Below zero there are none."""
    upper, lower = (p.convert(mask(p, x, bits), "f32") for bits in (-256, 255))
    greater = p.max(upper, lower)
    exponent = mask(p, p.step("vor", [greater, greater], "s32"), EXPONENT_BITS)
    bits = p.convert(p.mul(p.convert(exponent, "f32"), 2.0**-MANTISSA_BITS), "s32", "rint")
    zeros = p.min(p.sub(EXPONENT_OF_SIGN, bits), WIDTH)
    return p.step("vand", [zeros, p.unary("vnot", sign_mask(p, x))])


EXPONENT_BITS, MANTISSA_BITS = 0x7F800000, 23
EXPONENT_OF_SIGN = 127 + WIDTH - 1
"""The biased exponent of the f32 2^31."""


def bits_set(p: VectorProgram, x: Value) -> Value:
    """How many bits of s32 are set."""
    for count, kept in COUNTED:
        x = p.add(mask(p, x, kept), mask(p, shifted_right_logical(p, x, count), kept))
    x = p.mul(x, 0x01010101)
    return shifted_right_logical(p, x, WIDTH - 8)
