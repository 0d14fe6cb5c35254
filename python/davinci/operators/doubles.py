"""Arithmetic and conversions of f64 as its 64 bits, on machines that do not compute with it.

Results are those of IEEE 754 with one rounding, to nearest with ties to even, numbers below the
normal ones, infinities and zeros of both signs among them; every NaN is one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from davinci.operators.constraints import converts
from davinci.operators.conversion import saturated
from davinci.operators.core import Array, elementwise
from davinci.operators.double_parts import (
    FRACTION_BITS,
    INFINITY,
    LEAD,
    LOWER,
    QUIET,
    SIGN,
    SIZE,
    UPPER_BITS,
    Double,
    Limbs,
    carried,
    is_negative,
    moved_down,
    odd_for,
    positive,
    power_of_two,
    raised,
    rounded,
    upper_half,
    whole_power,
    with_special,
)
from davinci.operators.vector_program import Operand, Value, VectorProgram
from davinci.operators.words import (
    EXPONENT_BITS,
    HALF_WIDTH,
    MANTISSA_BITS,
    either,
    mask,
    not_zero,
    picked,
    quotient,
    shifted_left,
    shifted_right,
    sign_mask,
    signed,
)

LONG = frozenset({"i64"})
WITH_SINGLE = LONG | {"f32"}

BIAS = 1023
SINGLE_BIAS = 127

NAN = np.float64(np.nan)
QUIET_BITS = QUIET << 32
QUIET_SINGLE = 0x7FC00000


def bits_of(x: Array) -> Array:
    """The bits of f64, one NaN."""
    return np.where(np.isnan(x), QUIET_BITS, x.view(np.int64))


def computed(name: str) -> Callable[..., Array]:
    """A function of NumPy on f64 as its bits."""

    def values(*operands: Array) -> Array:
        with np.errstate(all="ignore"):
            found: Array = getattr(np, name)(*(np.asarray(x).view(np.float64) for x in operands))
        return bits_of(found)

    return values


@elementwise(values=computed("add"), types=LONG)
def double_add(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """The bits of the sum of two f64 that a and b are the bits of: the smaller one is moved down to
    the exponent of the larger one, with a limb below and a bit for what falls out of that."""
    large, small = _by_size(p, Double.of(p, a), Double.of(p, b))
    sides = [sign_mask(p, each.high) for each in (large, small)]
    differ = p.mul(difference := p.sub(*sides), difference)
    nothing = p.sub(large.low, large.low)
    count = p.min(p.sub(large.exponent, small.exponent), 63)
    moved = moved_down(p, [nothing, *small.limbs], count)
    factor = p.sub(1, p.add(differ, differ))
    total = [p.mul(limb, factor) for limb in moved]
    total = [total[0], *(p.add(x, y) for x, y in zip(large.limbs, total[1:], strict=True))]
    limbs, room = raised(p, carried(p, total), large.exponent, 3)
    some = p.min(p.add(p.add(limbs[1], limbs[2]), limbs[3]), 1)
    signs = p.max(some, p.sub(1, differ))  # x - x is a zero without a sign
    low, high = rounded(p, limbs, room)
    high = either(p, high, p.mul(mask(p, large.high, SIGN), signs))
    nan = p.max(large.is_nan(p), p.mul(small.endless(p), differ))
    return with_special(p, (low, high), large.endless(p), nan, large.high)


def _by_size(p: VectorProgram, a: Double, b: Double) -> tuple[Double, Double]:
    """Two numbers, the larger one without their signs first."""
    pairs = [(a.size, b.size), *zip(a.limbs[-2::-1], b.limbs[-2::-1], strict=True)]
    order = None
    for x, y in pairs:
        side = p.min(p.max(p.sub(x, y), -1), 1)
        order = side if order is None else p.add(p.add(order, order), side)
    assert order is not None, "numbers have words"
    swapped = is_negative(p, order)
    large, small = [], []
    for x, y in zip((a.low, a.high, *a.limbs[:2]), (b.low, b.high, *b.limbs[:2]), strict=True):
        large.append(picked(p, swapped, y, x))
        small.append(p.sub(p.add(x, y), large[-1]))
    first, second = (Double.of_words(p, v[0], v[1], v[2:]) for v in (large, small))
    return first, second


@elementwise(values=computed("multiply"), types=LONG)
def double_mul(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """The bits of the product of two f64 that a and b are the bits of: products of bytes, whose
    sums are limbs of 106 bits."""
    x, y = Double.of(p, a), Double.of(p, b)
    columns: dict[int, Value] = {}
    for i, u in enumerate(_bytes(p, x.limbs)):
        for j, v in enumerate(_bytes(p, y.limbs)):
            product = p.mul(u, v)
            columns[i + j] = p.add(columns[i + j], product) if i + j in columns else product
    wide = [p.add(columns[n], p.mul(columns[n + 1], 1 << 8)) for n in range(0, 12, 2)]
    room = p.sub(p.add(x.exponent, y.exponent), BIAS - 12)
    low, high = _rounded_wide(p, carried(p, [*wide, columns[12]]), room, 4)
    sign = _sign_of_both(p, x, y)
    special = p.max(x.endless(p), y.endless(p))
    nan = p.max(p.max(x.is_nan(p), y.is_nan(p)), p.sub(1, p.mul(x.some(p), y.some(p))))
    infinite = either(p, sign, INFINITY)
    return with_special(p, (low, either(p, high, sign)), special, nan, infinite)


def _rounded_wide(p: VectorProgram, limbs: Limbs, room: Value, moves: int) -> tuple[Value, Value]:
    """The words of more than four limbs, see `rounded`, whose leading one may be anywhere.

    Args:
        room: bits by which they may be raised; below 0, bits by which they lie too high.
        moves: by whole limbs that may be needed, see `raised`.
    """
    limbs, left = raised(p, limbs, p.max(room, 0), moves)
    *rest, low, middle, below, top = limbs
    kept = [odd_for(p, low, rest), middle, below, top]
    kept = carried(p, moved_down(p, kept, p.min(p.max(p.sub(0, room), 0), 63)))
    return rounded(p, kept, left)


def _sign_of_both(p: VectorProgram, x: Double, y: Double) -> Value:
    """The sign of a product or quotient."""
    return p.mul(p.sub(sign_mask(p, x.high), sign_mask(p, y.high)), signed(SIGN))


QUOTIENT_DIGITS = 4
"""Digits of 16 bits behind the first one: 64 bits and what is left."""

PART_BITS = 14
"""Bits of the limbs that digits are multiplied by."""


@elementwise(values=computed("divide"), types=LONG)
def double_div(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """The bits of the quotient of two f64 that a and b are the bits of, by digits that quotients
    of f32 give to less than one: digits with signs, and remainders with signs of at most half of
    the divisor."""
    x, y = Double.of(p, a), Double.of(p, b)
    (dividend, above), (divisor, below) = (_normal(p, each) for each in (x, y))
    rest, by = (_parts(p, limbs) for limbs in (dividend, divisor))
    single = p.max(_in_f32(p, by), 1.0)
    digits: Limbs = []
    for _ in range(QUOTIENT_DIGITS + 1):
        factor = 1 << (HALF_WIDTH if digits else 0)
        found = p.mul(p.div(_in_f32(p, rest), single), float(factor))
        digit = p.convert(found, "s32", "rint")
        rest = [p.sub(p.mul(u, factor), p.mul(digit, v)) for u, v in zip(rest, by, strict=True)]
        rest = carried(p, rest, PART_BITS)
        digits.insert(0, digit)
    # What is left below 0 was taken too much, and then less than one of the last digit is missing.
    digits[0] = p.add(digits[0], sign_mask(p, rest[-1]))
    limbs = carried(p, digits)
    *lower, top = rest
    limbs[0] = odd_for(p, limbs[0], [*lower, not_zero(p, top)])
    room = p.add(p.sub(above, below), BIAS + LEAD - 1)
    low, high = _rounded_wide(p, limbs, room, 1)
    sign = _sign_of_both(p, x, y)
    endless = [each.endless(p) for each in (x, y)]
    nothing = [p.sub(1, each.some(p)) for each in (x, y)]
    nan = p.max(p.max(x.is_nan(p), y.is_nan(p)), p.max(p.mul(*endless), p.mul(*nothing)))
    special = p.max(p.max(*endless), nothing[1])
    infinite = either(p, sign, p.mul(p.sub(1, endless[1]), INFINITY))
    return with_special(p, (low, either(p, high, sign)), special, nan, infinite)


ROOT_LIMBS = 4
"""Limbs of `PART_BITS` of a root: 56 bits, and what is left."""


@elementwise(values=computed("sqrt"), types=LONG)
def double_sqrt(p: VectorProgram, a: Value) -> Value:
    """The bits of the root of the f64 that a is the bits of, by digits as in `double_div`: a root
    of f32, and then what is left by twice the root so far."""
    x = Double.of(p, a)
    mantissa, exponent = _normal(p, x)
    twice = p.add(exponent, BIAS + 1)
    odd = mask(p, twice, 1)
    parts = [p.mul(part, p.add(p.add(odd, odd), 2)) for part in _parts(p, mantissa)]
    nothing = p.sub(x.low, x.low)
    rest = carried(p, [*[nothing] * ROOT_LIMBS, *parts], PART_BITS)
    root = p.unary("vsqrt", p.mul(_in_f32(p, rest), 2.0**-PART_BITS))
    digits: Limbs = []
    for place in range(ROOT_LIMBS):
        if place:
            part = p.div(p.mul(_in_f32(p, rest), 2.0**-PART_BITS), p.add(root, root))
            digits.append(p.convert(part, "s32", "rint"))
        else:
            digits.append(p.max(p.convert(root, "s32", "rint"), 1))
        if place < 2:
            weighed = p.mul(p.convert(digits[-1], "f32"), 2.0 ** -(PART_BITS * place))
            root = p.add(root, weighed) if place else weighed
        rest = _less_square(p, rest, digits)
    digits[-1] = p.add(digits[-1], sign_mask(p, rest[-1]))
    *lower, top = rest
    found = _root_limbs(p, carried(p, digits[::-1], PART_BITS))
    found[0] = odd_for(p, found[0], [*lower, not_zero(p, top)])
    room = p.sub(quotient(p, twice, 0.5), 1)
    words = rounded(p, found, room)
    some, negative = x.some(p), is_negative(p, x.high)
    nan = p.max(x.is_nan(p), p.mul(some, negative))
    special = p.max(p.max(x.endless(p), p.sub(1, some)), nan)
    return with_special(p, words, special, nan, x.high)


def _less_square(p: VectorProgram, rest: Limbs, digits: Limbs) -> Limbs:
    """What the last digit of a root, the highest one first, leaves: less than twice the root times
    a unit of the digit, so that it has a limb less."""
    place, rest = len(digits) - 1, list(rest)
    for number, digit in enumerate(digits):
        product = p.mul(digit, digits[-1])
        if number < place:
            product = p.add(product, product)
        limb = 2 * (ROOT_LIMBS - 1) - number - place
        rest[limb] = p.sub(rest[limb], product)
    *lower, below, top = carried(p, rest, PART_BITS)
    return [*lower, p.add(below, shifted_left(p, top, PART_BITS))]


def _root_limbs(p: VectorProgram, parts: Limbs) -> Limbs:
    """The 56 bits of four limbs of `PART_BITS` as they are rounded: two bits below the others."""
    a, b, c, d = parts
    found: Limbs = []
    for limb, above, count in ((a, b, 2), (b, c, 4)):
        upper = quotient(p, limb, 2.0**-count)
        if not found:
            found.append(p.sub(limb, p.mul(upper, 1 << count)))
        kept = mask(p, above, (1 << count + 2) - 1)
        found.append(p.add(upper, shifted_left(p, kept, PART_BITS - count)))
    return [*found, p.add(quotient(p, c, 2.0**-6), shifted_left(p, d, 8))]


SPARE = 64
"""More than the bits by which a number below the normal ones is raised."""


def _normal(p: VectorProgram, x: Double) -> tuple[Limbs, Value]:
    """The mantissa with its leading one at `LEAD` of the top limb, and the exponent that counts
    with it, which may be below 0."""
    limbs, left = raised(p, x.limbs, p.add(x.exponent, SPARE), 3)
    return limbs, p.sub(left, SPARE)


def _parts(p: VectorProgram, limbs: Limbs) -> Limbs:
    """The 54 bits of three limbs in four of `PART_BITS`."""
    found: Limbs = []
    low, middle, top = limbs
    for limb, above, count in ((low, middle, 14), (middle, top, 12)):
        upper = quotient(p, limb, 2.0**-count)
        if not found:
            found.append(p.sub(limb, p.mul(upper, 1 << count)))
        room = HALF_WIDTH - count
        found.append(p.add(upper, p.mul(mask(p, above, (1 << PART_BITS - room) - 1), 1 << room)))
    return [*found, quotient(p, top, 2.0**-10)]


def _in_f32(p: VectorProgram, parts: Limbs) -> Value:
    """Limbs of `PART_BITS`, to some units in the last place of f32, the lowest ones left out."""
    base = float(1 << PART_BITS)
    *_, low, middle, top = (p.convert(limb, "f32") for limb in parts)
    return p.add(p.mul(p.add(p.mul(top, base), middle), base), low)


def _bytes(p: VectorProgram, limbs: Limbs) -> Limbs:
    """The seven bytes of a mantissa, the lowest one first."""
    found: Limbs = []
    for limb in limbs:
        upper = quotient(p, limb, 2.0**-8)
        found.append(p.sub(limb, p.mul(upper, 1 << 8)))
        found.append(upper)
    upper = quotient(p, found[-1], 2.0**-8)
    return [*found[:-1], p.sub(found[-1], p.mul(upper, 1 << 8)), upper]


@elementwise(
    values=lambda a: bits_of(a.astype(np.float64)),
    types=WITH_SINGLE,
    constraints=(converts("f32", "i64"),),
)
def double_from_single(p: VectorProgram, a: Value) -> Value:
    """The bits of the f64 that an f32 is. A number below the normal ones is the f32 of its bits as
    an integer, times 2^-149."""
    bits = p.step("vor", [a, a], "s32")
    size = mask(p, bits, SIZE)
    tiny = positive(p, p.sub(1 << MANTISSA_BITS, size))
    single = p.convert(p.mul(size, tiny), "f32")
    scaled = picked(p, tiny, p.step("vor", [single, single], "s32"), size)
    exponent = shifted_right(p, scaled, MANTISSA_BITS)
    bias = p.sub(BIAS - SINGLE_BIAS, p.mul(tiny, SINGLE_BIAS + MANTISSA_BITS - 1))
    some = p.min(size, 1)
    mantissa = mask(p, scaled, (1 << MANTISSA_BITS) - 1)
    upper = quotient(p, mantissa, 2.0**-3)
    high = p.add(p.mul(p.mul(p.add(exponent, bias), some), 1 << UPPER_BITS), upper)
    high = either(p, high, mask(p, bits, SIGN))
    infinity = EXPONENT_BITS
    special = positive(p, p.sub(size, infinity - 1))
    nan = positive(p, p.sub(size, infinity))
    infinite = either(p, mask(p, bits, SIGN), INFINITY)
    low = shifted_left(p, mantissa, 29)
    return with_special(p, (low, high), special, nan, infinite)


def single_of(a: Array) -> Array:
    with np.errstate(all="ignore"):
        found = a.view(np.float64).astype(np.float32)
    return np.where(np.isnan(found), np.float32(np.nan), found)


@elementwise(values=single_of, types=WITH_SINGLE, constraints=(converts("i64", "f32"),))
def double_to_single(p: VectorProgram, a: Value) -> Value:
    """The f32 nearest to the f64 that a is the bits of, ties to even."""
    x = Double.of(p, a)
    low, middle, top = x.limbs
    # 24 bits, and behind them one and whether there are more
    bits = p.add(shifted_left(p, top, 3), quotient(p, middle, 2.0**-13))
    rest = mask(p, middle, (1 << 13) - 1)
    half = quotient(p, rest, 2.0**-12)
    behind = p.min(either(p, p.sub(rest, p.mul(half, 1 << 12)), low), 1)
    exponent = p.sub(x.exponent, BIAS - SINGLE_BIAS)
    count = p.min(p.max(p.sub(1, exponent), 0), MANTISSA_BITS + 2)
    by = whole_power(p, count)
    found = quotient(p, bits, power_of_two(p, p.sub(0, count)))
    left = p.add(p.mul(p.sub(bits, p.mul(found, by)), 2), half)
    beside = p.max(behind, p.sub(found, p.mul(quotient(p, found, 0.5), 2)))
    found = p.add(found, positive(p, p.sub(p.add(p.add(left, left), beside), p.add(by, by))))
    beyond = p.mul(positive(p, p.sub(exponent, 2 * SINGLE_BIAS)), EXPONENT_BITS)
    exponent = p.min(p.max(p.sub(exponent, 1), 0), 2 * SINGLE_BIAS - 1)
    size = p.max(p.add(found, p.mul(exponent, 1 << MANTISSA_BITS)), beyond)
    size = picked(p, x.is_nan(p), QUIET_SINGLE, size)
    number = either(p, size, p.mul(mask(p, x.high, SIGN), p.sub(1, x.is_nan(p))))
    return p.step("vor", [number, number], "f32")


def bits_of_whole(a: Array) -> Array:
    return bits_of(a.astype(np.float64))


@elementwise(values=bits_of_whole, types=LONG)
def double_from_long(p: VectorProgram, a: Value) -> Value:
    """The bits of the f64 nearest to an integer of 64 bits, ties to even."""
    low, high = p.halves(a)
    limbs = [mask(p, low, LOWER), upper_half(p, low), mask(p, high, LOWER)]
    limbs.append(shifted_right(p, high, HALF_WIDTH))
    negative = is_negative(p, high)
    factor = p.sub(1, p.add(negative, negative))
    limbs = carried(p, [p.mul(limb, factor) for limb in limbs])
    most = p.add(p.sub(low, low), BIAS + LEAD + 3 * HALF_WIDTH - 1)
    limbs, room = raised(p, limbs, most, 4)
    found, upper = rounded(p, limbs, room)
    return p.join(found, either(p, upper, mask(p, high, SIGN)))


def whole_of(a: Array) -> Array:
    return saturated(a.view(np.float64), np.dtype(np.int64))


@elementwise(values=whole_of, types=LONG)
def double_to_long(p: VectorProgram, a: Value) -> Value:
    """The integer of 64 bits that is the f64 that a is the bits of, towards zero; the nearest one
    of what is beyond the range, 0 of NaN."""
    x = Double.of(p, a)
    nothing = p.sub(x.low, x.low)
    most = BIAS + FRACTION_BITS + HALF_WIDTH
    count = p.min(p.max(p.sub(most, x.exponent), 0), 127)
    *lower, top = x.limbs
    limbs = [nothing, *lower, mask(p, top, LOWER), quotient(p, top, 2.0**-HALF_WIDTH)]
    limbs = moved_down(p, limbs, count, bits=7, sticky=False)[:-1]
    negative = is_negative(p, x.high)
    factor = p.sub(1, p.add(negative, negative))
    limbs = carried(p, [p.mul(limb, factor) for limb in limbs])
    low, high = (p.add(u, shifted_left(p, v, HALF_WIDTH)) for u, v in (limbs[:2], limbs[2:]))
    beyond = positive(p, p.sub(x.exponent, BIAS + 62))
    low = picked(p, beyond, p.sub(negative, 1), low)
    high = picked(p, beyond, p.add(negative, SIZE), high)
    known = p.sub(1, x.is_nan(p))
    return p.join(p.mul(low, known), p.mul(high, known))
