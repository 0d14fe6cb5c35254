"""f32 that round to bf16 as other numbers do, so that these are rounded once.

f16, booleans and integers of 16 bits are f32 as they are. Of integers that f32 does not hold, bits
too low to be of the nearest bf16 count only in whether there are any: one bit below stands for all
of them (*rounding to odd*). So i32 from 2^24 on keeps its upper 23 bits and that one, and longer
integers are such words of their upper bits, times a power of two:

    x = 0x12345678   ->   0x12345600 + 0x100 (some of the lowest nine bits are set)
"""

from __future__ import annotations

from davinci.mlir import ir
from davinci.passes.stablehlo_to_ascend import tensors as t

HELD_BITS = 24
"""f32 holds whole numbers of so many bits."""

LOW = (1 << 32 - HELD_BITS + 1) - 1
"""The bits of i32 that one bit, the highest of them, stands for."""

EXACT = ("f16", "i1", "i8", "ui8", "i16", "ui16")
WORDS = ("i32", "ui32", "i64")


def single_to_round(x: ir.Value) -> ir.Value | None:
    """The f32 that round as the elements of a tensor do; None if its type has none here."""
    element = str(x.type.element_type)
    if element in EXACT:
        return _as(x, "f32")
    if element == "i32":
        return _of_word(x)
    return _of_long(_as(x, "i64")) if element in WORDS else None


def _as(x: ir.Value, element: str) -> ir.Value:
    if str(x.type.element_type) == element:
        return x
    kind = ir.RankedTensorType.get(x.type.shape, ir.Type.parse(element))
    return t.op("convert", [x], kind)


def _of_word(x: ir.Value) -> ir.Value:
    """f32 of i32, rounded to odd below the bits of a bf16."""
    low = t.op("and", [x, t.full(x.type, LOW)], x.type)
    high = t.subtract(x, low)
    some = _as(t.compare("NE", low, t.full(x.type, 0)), "i32")
    odd = t.add(high, t.multiply(some, t.full(x.type, (LOW + 1) // 2)))
    held = 1 << HELD_BITS
    below = t.compare("LT", x, t.full(x.type, held))
    above = t.compare("GT", x, t.full(x.type, -held))
    small = t.op("and", [below, above], below.type)
    return _as(t.select(small, x, odd), "f32")


def _of_long(x: ir.Value) -> ir.Value:
    """f32 of i64: of its lowest word, or of upper ones, where the number is one of these."""
    found = _of_word(_as(x, "i32"))
    for dropped, before in ((16, 0), (32, 16)):
        shorter = _shifted(x, before)
        beyond = t.compare("NE", shorter, _as(_as(shorter, "i32"), "i64"))
        low = t.op("and", [x, t.full(x.type, (1 << dropped) - 1)], x.type)
        some = _as(t.compare("NE", low, t.full(x.type, 0)), "i32")
        word = t.op("or", [_as(_shifted(x, dropped), "i32"), some], some.type)
        upper = _of_word(word)
        scaled = t.multiply(upper, t.full(upper.type, 2.0**dropped))
        found = t.select(beyond, scaled, found)
    return found


def _shifted(x: ir.Value, count: int) -> ir.Value:
    """x >> count, with copies of the sign."""
    if not count:
        return x
    return t.op("shift_right_arithmetic", [x, t.full(x.type, count)], x.type)
