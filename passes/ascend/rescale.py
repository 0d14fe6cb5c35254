"""Constant matrices out of f16's range are multiplied by powers of two before they are rounded.

    C = A W    becomes    C = (A (W 2^e)) 2^-e        with the largest |W 2^e| in [2^14, 2^15)

Both factors are exact in f32, and sums are, so the result has the digits that it would have with a
wider f16. Only matrices that need it are scaled: those with a value that would become infinite, or
with none that f16 holds well.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from davinci.passes.ascend.tensor_ops import constant_array, defining_op, definition

OVERFLOWS = 65520.0
"""From here on f32 values become infinite in f16."""

SMALL = 2.0**-10
"""A matrix with no value from here on is scaled: the numbers of f16 lose digits below 2^-14."""

HIGH_EXPONENT = 14
"""Of the largest value of a scaled matrix: 2^15 is left below the end of the range."""

LARGEST_EXPONENT = 126
"""Of a factor: its inverse is a normal number of f32."""

MOVES = frozenset(
    {"ascend.reshape", "ascend.transpose", "ascend.slice", "ascend.broadcast", "ascend.concat"}
)
"""What may lie between a constant and the product: no value changes."""


def exponent(value: Any) -> int:
    """The e of a constant operand of a product; 0 if it is not constant or needs no scaling."""
    largest = largest_of(value)
    if largest is None or largest == 0 or SMALL <= largest < OVERFLOWS:
        return 0
    return min(LARGEST_EXPONENT, HIGH_EXPONENT - math.frexp(largest)[1] + 1)


def largest_of(value: Any) -> float | None:
    """The largest finite magnitude of a value made of constants, at least; None for others."""
    owner = definition(value)
    if owner is not None:
        magnitudes = np.abs(constant_array(owner))
        finite = magnitudes[np.isfinite(magnitudes)]
        return float(finite.max(initial=0))
    owner = defining_op(value)
    if owner is None or owner.name not in MOVES:
        return None
    found = [largest_of(operand) for operand in owner.operands]
    return None if None in found else max(x for x in found if x is not None)
