"""Counts what leaves the range of f16 when an instruction rounds to it.

Overflow: a finite value becomes an infinity. Underflow: a value that is not zero becomes zero. What
was an infinity, a NaN or a zero before is neither, nor is a number that stands for an infinity, as
the least of a type does in masks: nothing is lost of it.

Subnormal: a value below 2**-14 loses digits, as f16 has only multiples of 2**-24. Beside larger
values that is no more than their rounding, so such values count only where an instruction makes no
others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from davinci.isa.core import Array, Instruction
from davinci.isa.halves import (
    LEAST_NORMAL,
    converted,
    count_extremes,
    is_limitless,
    is_vanishing,
)

TINY = 2.0**-25
"""Values up to this are rounded to zero: half of the least f16, and ties go to even."""

ARITHMETIC = frozenset(
    {"vadd", "vsub", "vmul", "vadds", "vmuls", "vexp", "vaxpy", "vmla", "vmadd", "mad"}
)
"""Instructions on f16 whose results are infinite for finite operands only beyond its range; a
quotient or a logarithm of zero is an infinity by right."""


@dataclass(frozen=True)
class Lost:
    """Values that left the range of f16, of so many that were converted to it; and subnormal ones
    that lost digits, without larger ones beside them."""

    overflows: int = 0
    underflows: int = 0
    converted: int = 0
    subnormals: int = 0

    def __add__(self, other: Lost) -> Lost:
        return Lost(
            self.overflows + other.overflows,
            self.underflows + other.underflows,
            self.converted + other.converted,
            self.subnormals + other.subnormals,
        )


NOTHING = Lost()


def taking_part(values: Array, mask: Array | None) -> Array:
    """The elements that a mask, which broadcasts to the shape of `values`, lets through."""
    return values if mask is None else values[np.broadcast_to(mask, values.shape)]


def lost_by_conversion(source: Array, result: Array) -> Lost:
    """What a conversion of `source`, f32, to `result`, f16, lost; shapes may differ."""
    overflows, underflows = count_extremes(result)
    if overflows:
        overflows -= int(np.count_nonzero(is_limitless(source) & ~np.isnan(source)))
    if underflows:
        underflows = int(np.count_nonzero((np.abs(source) <= TINY) & (source != 0)))
    subnormals = lost_digits(source) if is_vanishing(result) else 0
    # A rectifier behind a conversion drops infinities as well.
    return Lost(max(0, overflows), underflows, result.size, subnormals)


def lost_digits(exact: Array) -> int:
    """How many numbers of an array of f32 are subnormal in f16, and not what they were."""
    magnitudes = np.abs(exact)
    small = exact[(magnitudes > TINY) & (magnitudes < LEAST_NORMAL)]
    return int(np.count_nonzero(converted(converted(small, np.float16), np.float32) != small))


def lost_by_product(sources: Sequence[Array], result: Array) -> Lost:
    """What a product of two arrays of f16, in f16, lost: as `lost_by_arithmetic`, and what vanishes
    in it where it has no larger elements."""
    lost = lost_by_arithmetic(sources, result)
    if not is_vanishing(result) or any(source.size != result.size for source in sources):
        return lost
    x, y = (converted(source, np.float32) for source in sources)
    exact = x.reshape(result.shape) * y.reshape(result.shape)
    zeros = (np.abs(exact) <= TINY) & (exact != 0)
    return lost + Lost(0, int(np.count_nonzero(zeros)), 0, lost_digits(exact))


def lost_by_arithmetic(sources: Sequence[Array], result: Array) -> Lost:
    """Overflows of an instruction on f16. Operands of another shape, factors of sums for example,
    tell of no single result: an infinity among them accounts for all."""
    overflows, _ = count_extremes(result)
    if not overflows:
        return NOTHING
    infinite = np.isinf(result)
    for source in sources:
        limitless = is_limitless(source)
        if source.size == result.size:
            infinite &= ~limitless.reshape(result.shape)
        elif limitless.any():
            return NOTHING
    return Lost(int(np.count_nonzero(infinite)))


def converts(record: Instruction) -> bool:
    """Whether `record` rounds f32 to f16: by the vector unit, or on the way out of L0C."""
    return "f322f16" in record.mnemonic


def multiplies(record: Instruction) -> bool:
    """Whether `record` multiplies arrays of f16 element by element."""
    return record.type == "f16" and record.name == "vmul"


def computes(record: Instruction) -> bool:
    """Whether `record` computes in f16, so that a result may leave its range."""
    return record.type in ("f16", "f162f16") and record.name in ARITHMETIC
