"""Integers of 64 bits that are in the order of the f64 whose bits they are made of.

The bits of a number without their sign are in its order; those of negative ones are turned around:

    bits       .. 0x8000000000000000 = -0   0x0000000000000000 = 0   0x3FF0000000000000 = 1 ..
    in order   .. -1                        0                        0x3FF0000000000000     ..

What is made of `bits` of f64 are StableHLO operations at the current insertion point.
"""

from __future__ import annotations

from davinci.mlir import ir
from davinci.passes.stablehlo_to_ascend import tensors as t

LEAST, MOST = -(1 << 63), (1 << 63) - 1
INFINITY, ONE = 0x7FF << 52, 0x3FF << 52
"""The bits of infinity and of 1."""

QUIET_NAN = 0xFFF << 51
"""The bits of a NaN without a sign."""

FLAGS_SWAPPED = ("GT", "GE")
"""Comparisons of which a NaN makes the first operand the least and the second one the most."""


def combined(name: str, a: ir.Value, b: ir.Value | int) -> ir.Value:
    """A binary operation on tensors of one type, or with a number."""
    return t.op(name, [a, b if isinstance(b, ir.Value) else t.full(a.type, b)], a.type)


def related(direction: str, a: ir.Value, b: ir.Value | int) -> ir.Value:
    """A comparison with a tensor or a number."""
    return t.compare(direction, a, b if isinstance(b, ir.Value) else t.full(a.type, b))


def magnitude(bits: ir.Value) -> ir.Value:
    """The bits of |x|."""
    return combined("and", bits, MOST)


def negated(bits: ir.Value) -> ir.Value:
    """The bits of -x."""
    return combined("add", bits, LEAST)


def is_nan(bits: ir.Value) -> ir.Value:
    return related("GT", magnitude(bits), INFINITY)


def in_total_order(bits: ir.Value) -> ir.Value:
    """Numbers in order, -0 below 0, NaN with a sign below all and others above all."""
    return t.select(
        related("LT", bits, 0), combined("subtract", t.full(bits.type, MOST), bits), bits
    )


def from_total_order(keys: ir.Value) -> ir.Value:
    """The bits of what is in total order."""
    return in_total_order(keys)


def in_extreme_order(bits: ir.Value, name: str) -> ir.Value:
    """Numbers in total order of which NaN are the extreme: above all for "maximum", else below."""
    size = magnitude(bits)
    negative, nan = related("LT", bits, 0), related("GT", size, INFINITY)
    if name == "maximum":
        below = combined("and", negative, t.op("not", [nan], nan.type))
    else:
        below = combined("or", negative, nan)
    return t.select(below, t.op("not", [size], size.type), size)


def in_value_order(bits: ir.Value, of_nan: int) -> ir.Value:
    """Numbers in order, zeros alike, and what stands for NaN."""
    turned = combined("subtract", t.full(bits.type, LEAST), bits)
    order = t.select(related("LT", bits, 0), turned, bits)
    return t.select(is_nan(bits), t.full(bits.type, of_nan), order)


def from_value_order(keys: ir.Value, of_nan: int) -> ir.Value:
    """The bits of what is in value order; zeros have no sign."""
    turned = combined("subtract", t.full(keys.type, LEAST), keys)
    bits = t.select(related("LT", keys, 0), turned, keys)
    return t.select(related("EQ", keys, of_nan), t.full(bits.type, QUIET_NAN), bits)


def compared(direction: str, a: ir.Value, b: ir.Value) -> ir.Value:
    """A comparison of numbers given as bits, false where one is NaN; NE is true there."""
    if a == b and direction in ("EQ", "NE"):
        return related("LE" if direction == "EQ" else "GT", magnitude(a), INFINITY)
    ends = (LEAST, MOST) if direction in FLAGS_SWAPPED else (MOST, LEAST)
    return t.compare(direction, in_value_order(a, ends[0]), in_value_order(b, ends[1]))


def extreme(name: str, a: ir.Value, b: ir.Value) -> ir.Value:
    """The bits of the "maximum" or "minimum" of two numbers; NaN if one is."""
    keys = [in_extreme_order(bits, name) for bits in (a, b)]
    return from_total_order(t.op(name, keys, a.type))


def sign(bits: ir.Value) -> ir.Value:
    """The bits of -1 or 1; zeros and NaN as they are."""
    size = magnitude(bits)
    kept = combined("or", related("EQ", size, 0), related("GT", size, INFINITY))
    ones = combined("or", combined("and", bits, LEAST), ONE)
    return t.select(kept, bits, ones)
