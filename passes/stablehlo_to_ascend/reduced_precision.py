"""Numbers rounded to fewer bits, by integer arithmetic on their bits.

before:
    %r = stablehlo.reduce_precision %x, format = e5m10 : tensor<8x4xf32>
after:
    bits + half of the last digit that stays, less 1, and 1 more where that digit is odd; then the
    digits below it are cleared: nearest, halves to even. Exponents beyond the format's become
    infinite, those below it zeros of the same sign; NaN stays, but for
    formats without digits, which have only infinite numbers in its place.

Only f32; of other types the operator is a scalar kernel.
"""

from __future__ import annotations

import math

from davinci.dialects.base import attribute
from davinci.mlir import Op, ir
from davinci.passes.stablehlo_to_ascend import tensors as t

DIGITS, EXPONENT_BITS = 23, 8
"""Bits of f32 behind the point, and of its exponent."""

SIGN, INFINITE = -(1 << 31), 0x7F800000
"""Bits of the sign, and of the exponent, as integers of 32 bits."""


def expand_reduce_precision(op: Op) -> list[ir.Value] | None:
    """The result; None of another type than f32."""
    (x,) = op.operands
    if str(x.type.element_type) != "f32":
        return None
    digits, exponent = attribute(op, "mantissa_bits"), attribute(op, "exponent_bits")
    whole = ir.RankedTensorType.get(x.type.shape, ir.IntegerType.get_signless(32))
    bits = t.op("bitcast_convert", [x], whole)
    if digits < DIGITS:
        bits = rounded(bits, 1 << DIGITS - digits)
    if exponent < EXPONENT_BITS:
        bits = limited(bits, exponent)
    found = t.op("bitcast_convert", [bits], x.type)
    nan = x if digits else t.full(x.type, math.inf)
    return [t.op("select", [t.compare("NE", x, x), nan, found], x.type)]


def rounded(bits: ir.Value, last: int) -> ir.Value:
    """The nearest number whose lowest digit is `last`, of two the even one."""
    odd = t.op("minimum", [masked(bits, last), t.full(bits.type, 1)], bits.type)
    more = t.add(bits, t.add(odd, t.full(bits.type, last // 2 - 1)))
    return masked(more, -last)


def limited(bits: ir.Value, exponent_bits: int) -> ir.Value:
    """Infinite numbers and zeros where an exponent has not so many bits."""
    bias, reach = (1 << EXPONENT_BITS - 1) - 1, (1 << exponent_bits - 1) - 1
    sign, exponent = masked(bits, SIGN), masked(bits, INFINITE)
    highest, lowest = (t.full(bits.type, n << DIGITS) for n in (bias + reach, bias - reach))
    infinite = t.op("or", [sign, t.full(bits.type, INFINITE)], bits.type)
    bits = t.op("select", [t.compare("GT", exponent, highest), infinite, bits], bits.type)
    return t.op("select", [t.compare("LE", exponent, lowest), sign, bits], bits.type)


def masked(bits: ir.Value, mask: int) -> ir.Value:
    return t.op("and", [bits, t.full(bits.type, mask)], bits.type)
