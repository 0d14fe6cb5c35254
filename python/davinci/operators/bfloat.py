"""bf16 as its 16 bits, from and to f32, on machines that do not compute with it.

A bf16 is the upper half of the f32 of the same value, so widening only moves words. Rounding adds
to the bits what carries into the upper half where the lower one is more than half of its last bit,
or half and that bit is odd: to nearest, ties to even, as integers:

    bits + 0x7FFF + (bits >> 16 & 1)
"""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from davinci.operators.constraints import converts
from davinci.operators.core import Array, elementwise
from davinci.operators.vector_program import Value, VectorProgram
from davinci.operators.words import HALF_WIDTH, mask

QUIET_NAN = 0x7FC0
"""The bf16 that every NaN becomes."""


BOTH = frozenset({"i16", "f32"})


def widened(a: Array) -> Array:
    wide: Array = a.view(ml_dtypes.bfloat16).astype(np.float32)
    return wide


@elementwise(values=widened, types=BOTH, constraints=(converts("i16", "f32"),))
def from_bfloat(p: VectorProgram, a: Value) -> Value:
    """The f32 of a bf16's bits, exact."""
    return p.join(0, a, "f32")


def rounded(a: Array) -> Array:
    bits = a.astype(ml_dtypes.bfloat16).view(np.int16)
    return np.where(np.isnan(a), np.int16(QUIET_NAN), bits)


@elementwise(values=rounded, types=BOTH, constraints=(converts("f32", "i16"),))
def to_bfloat(p: VectorProgram, a: Value) -> Value:
    """The bits of the bf16 nearest to an f32, ties to even; one NaN."""
    bits = p.step("vor", [a, a], "s32")
    odd = p.convert(mask(p, bits, 1 << HALF_WIDTH), "f32")
    last = p.convert(p.mul(odd, 2.0**-HALF_WIDTH), "s32", "trunc")
    above = p.add(p.add(bits, (1 << HALF_WIDTH - 1) - 1), last)
    number = p.choose("eq", a, a, p.step("vor", [above, above], "f32"), math.nan)
    return p.halves(number)[1]
