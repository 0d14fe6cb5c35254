"""Parts of f64 numbers, given as their 64 bits, in steps of the vector unit.

A mantissa, or what becomes one, is a list of limbs, the lowest one first: 16 bits each but for the
last one, the top, which may have 22, with the leading one of a mantissa that is to be rounded at
bit 21. f32 holds each limb, so that moving them down by powers of two is exact.

Rounding is once, to nearest, ties to even; results below the normal ones lose bits as IEEE 754
says.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from davinci.operators.comparison import halves
from davinci.operators.vector_program import Operand, Value, VectorProgram
from davinci.operators.words import (
    EXPONENT_BITS,
    HALF_WIDTH,
    MANTISSA_BITS,
    bit_of,
    either,
    mask,
    not_zero,
    picked,
    quotient,
    shifted_right,
    shifted_right_logical,
    sign_mask,
    signed,
)

Limbs = list[Value]

LOWER = (1 << HALF_WIDTH) - 1
SIGN = 1 << 31
SIZE = SIGN - 1
UPPER_BITS = 20
"""Bits of a mantissa in the high word."""

MOST_EXPONENT = 0x7FF
INFINITY = MOST_EXPONENT << UPPER_BITS
"""The high word of infinity, and what no finite number's reaches without its sign."""

QUIET = 0x7FF80000
"""The high word of the NaN that results are."""

LEAD = 21
"""The bit of the top limb where the leading one of what is rounded is, or would be."""

LEAST_TOP = 1 << LEAD - HALF_WIDTH + 1
"""Tops from this on are raised to the lead by fewer than 16 bits."""

FRACTION_BITS = 52


@dataclass(frozen=True)
class Double:
    """The parts of f64 numbers, each s32.

    Attributes:
        low, high: the words.
        size: the high word without its sign.
        exponent: biased, and at least 1: what the mantissa counts with.
        limbs: of the 53 bits of the mantissa, with the leading one of normal numbers: three.
    """

    low: Value
    high: Value
    size: Value
    exponent: Value
    limbs: Limbs

    @staticmethod
    def of(p: VectorProgram, x: Operand) -> Double:
        low, high = (p.array(half, "s32") for half in halves(p, x))
        return Double.of_words(p, low, high, [mask(p, low, LOWER), upper_half(p, low)])

    @staticmethod
    def of_words(p: VectorProgram, low: Value, high: Value, lowest: Limbs) -> Double:
        """The parts of numbers given as their low and high words and the limbs of the low word."""
        size = mask(p, high, SIZE)
        exponent = shifted_right(p, size, UPPER_BITS)
        leading = p.mul(p.min(exponent, 1), 1 << UPPER_BITS)
        top = p.add(mask(p, high, (1 << UPPER_BITS) - 1), leading)
        return Double(low, high, size, p.max(exponent, 1), [*lowest, top])

    def endless(self, p: VectorProgram) -> Value:
        """1 of infinities and NaN."""
        return positive(p, p.sub(self.size, INFINITY - 1))

    def is_nan(self, p: VectorProgram) -> Value:
        """1 of NaN."""
        return positive(p, p.add(p.sub(self.size, INFINITY), not_zero(p, self.low)))

    def some(self, p: VectorProgram) -> Value:
        """1 of what is not zero."""
        return not_zero(p, either(p, self.size, self.low))


def positive(p: VectorProgram, x: Value) -> Value:
    """1 where s32 is above 0, else 0."""
    return p.min(p.max(x, 0), 1)


def is_negative(p: VectorProgram, x: Value) -> Value:
    """1 where s32 is below 0, else 0."""
    return p.sub(0, sign_mask(p, x))


def upper_half(p: VectorProgram, x: Value) -> Value:
    """The upper 16 bits, without a sign."""
    return shifted_right_logical(p, x, HALF_WIDTH)


def power_of_two(p: VectorProgram, exponent: Value) -> Value:
    """2^exponent in f32, for normal numbers of it."""
    bits = p.mul(p.add(exponent, 127), 1 << MANTISSA_BITS)
    return p.step("vor", [bits, bits], "f32")


def whole_power(p: VectorProgram, exponent: Value) -> Value:
    """2^exponent in s32, for exponents from 0 to 30."""
    return p.convert(power_of_two(p, exponent), "s32", "trunc")


def carried(p: VectorProgram, limbs: Sequence[Value], bits: int = HALF_WIDTH) -> Limbs:
    """The same number with so many bits, 8 or more, in each limb below the top; limbs may be
    negative before."""
    *lower, top = limbs
    found, over = [], None
    for limb in lower:
        total = limb if over is None else p.add(limb, over)
        found.append(mask(p, total, (1 << bits) - 1))
        over = shifted_right(p, total, bits)
    return [*found, top if over is None else p.add(top, over)]


def moved_down(
    p: VectorProgram, limbs: Sequence[Value], count: Value, *, bits: int = 6, sticky: bool = True
) -> Limbs:
    """Limbs by 2^count, rounded down. Those below the top may have more bits than 16 then.

    Args:
        count: from 0 to 2^bits - 1.
        sticky: whether the lowest limb is odd where anything fell out, so that what is rounded
            later knows of it.
    """
    few = mask(p, count, HALF_WIDTH - 1)
    inverse = power_of_two(p, p.sub(0, few))
    by, back = whole_power(p, few), whole_power(p, p.sub(HALF_WIDTH, few))
    found: Limbs = []
    fallen: Limbs = []
    for limb in reversed(limbs):
        down = quotient(p, limb, inverse)
        found.insert(0, p.add(down, p.mul(fallen[-1], back)) if fallen else down)
        fallen.append(p.sub(limb, p.mul(down, by)))
    if sticky:
        found[0] = odd_for(p, found[0], fallen[-1:])
    for bit in range(HALF_WIDTH.bit_length() - 1, bits):
        chosen = bit_of(p, count, bit)
        kept = p.sub(1, chosen)
        places = 1 << bit - HALF_WIDTH.bit_length() + 1
        lost, moved = found[:places], found[places:]
        if sticky and moved:
            moved[0] = odd_for(p, moved[0], lost)
        stayed = [p.mul(kept, limb) for limb in found]
        above = [p.mul(chosen, limb) for limb in moved]
        if sticky and not moved:
            above = [p.mul(chosen, any_of(p, lost))]
        found = [p.add(x, y) for x, y in zip(stayed, above, strict=False)] + stayed[len(above) :]
    return found


def any_of(p: VectorProgram, limbs: Sequence[Value]) -> Value:
    """1 where one of some limbs is not 0."""
    total = limbs[0]
    for limb in limbs[1:]:
        total = either(p, total, limb)
    return p.min(total, 1)


def odd_for(p: VectorProgram, limb: Value, lost: Sequence[Value]) -> Value:
    """A limb, odd where one of others is not 0."""
    return either(p, limb, any_of(p, lost))


def raised(
    p: VectorProgram, limbs: Sequence[Value], room: Value, moves: int
) -> tuple[Limbs, Value]:
    """Limbs times the power of two that brings the leading one to `LEAD`, or by `room` bits if
    these are fewer, and what is left of the room.

    Args:
        moves: by whole limbs that may be needed.
    """
    *lower, top = limbs
    for _ in range(moves):
        few = positive(p, p.sub(LEAST_TOP, top))
        chosen = p.mul(few, positive(p, p.sub(room, HALF_WIDTH - 1)))
        room = p.sub(room, p.mul(chosen, HALF_WIDTH))
        joined = p.add(p.mul(top, 1 << HALF_WIDTH), lower[-1])
        top = picked(p, chosen, joined, top)
        lowest = p.mul(p.sub(1, chosen), lower[0])
        lower = [
            lowest,
            *(picked(p, chosen, x, y) for x, y in itertools.pairwise(lower)),
        ]
    single = p.convert(top, "f32")
    exponent = mask(p, p.step("vor", [single, single], "s32"), EXPONENT_BITS)
    place = quotient(p, exponent, 2.0**-MANTISSA_BITS)
    count = p.min(p.min(p.sub(127 + LEAD, place), room), HALF_WIDTH - 1)
    by = whole_power(p, count)
    return carried(p, [p.mul(limb, by) for limb in (*lower, top)]), p.sub(room, count)


def rounded(p: VectorProgram, limbs: Sequence[Value], room: Value) -> tuple[Value, Value]:
    """The low and high words of a number without its sign.

    Args:
        limbs: four, whose top may have its leading one at `LEAD`; the lowest says only whether
            there is something. Of others the `room` is 0.
        room: by how much the exponent is above the least one.
    """
    rest, low, middle, top = limbs
    half = mask(p, low, 1)
    more = p.mul(half, p.min(p.add(bit_of(p, low, 1), rest), 1))
    upper = quotient(p, top, 0.5)
    below = p.mul(p.sub(top, p.add(upper, upper)), signed(SIGN))
    lower = p.add(quotient(p, low, 0.5), p.add(p.mul(middle, 1 << HALF_WIDTH - 1), below))
    lower = p.add(lower, more)
    over = p.mul(more, p.sub(1, not_zero(p, lower)))
    exponent = p.mul(p.min(room, MOST_EXPONENT - 1), p.min(top, 1))
    high = p.min(p.add(upper, p.mul(exponent, 1 << UPPER_BITS)), INFINITY)
    high = p.min(p.add(high, over), INFINITY)
    return p.mul(lower, p.min(p.sub(INFINITY, high), 1)), high


def with_special(
    p: VectorProgram, words: tuple[Value, Value], special: Value, nan: Value, infinite: Value
) -> Value:
    """Words joined; where `special` is 1, NaN where `nan` is 1, else the high word `infinite`."""
    low, high = words
    found = picked(p, special, picked(p, nan, QUIET, infinite), high)
    return p.join(p.mul(p.sub(1, special), low), found)
