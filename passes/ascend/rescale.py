"""Constant matrices out of f16's range are multiplied by powers of two before they are rounded.

    C = A W    becomes    C[i, j] = (sum_p A[i, p] (W[p, j] 2^e[j])) 2^-e[j]

with the largest |W[:, j] 2^e[j]| in [2^14, 2^15); rows of a constant A likewise. Both factors are
exact in f32, and sums are f32, so the result has the digits that a wider f16 would give it. Only
columns that need it are scaled: those with a value that would become infinite, and those with none
that f16 holds to all its digits.
"""

from __future__ import annotations

import numpy as np

from davinci.elements import Array
from davinci.mlir import ir
from davinci.operators.tensors import Tensor
from davinci.passes.ascend.split_products import Kept
from davinci.passes.ascend.tensor_ops import TensorOps

OVERFLOWS = 65520.0
"""From here on f32 values become infinite in f16."""

SMALL = 2.0**-14
"""The least f16 with all digits: below, errors of a column exceed 2^-11 of its largest value."""

HIGH_EXPONENT = 14
"""Exponent of the largest value of a scaled column."""

LARGEST_EXPONENT = 126
"""Largest exponent of a factor whose inverse is a normal number of f32, too."""


def exponents(array: Array, kept: list[int]) -> Array | None:
    """The e of each row or column of a constant operand; None if all are 0.

    Args:
        array: a matrix, or a batch of matrices, of f32.
        kept: the dimensions that are not summed over.
    """
    contracted = tuple(i for i in range(array.ndim) if i not in kept)
    largest = largest_magnitudes(array, contracted)
    if not np.isfinite(largest).all():
        largest = largest_magnitudes(np.where(np.isfinite(array), array, 0), contracted)
    needed = (largest >= OVERFLOWS) | ((largest < SMALL) & (largest > 0))
    if not needed.any():
        return None
    found = HIGH_EXPONENT + 1 - np.frexp(largest)[1]
    return np.where(needed, found.clip(-LARGEST_EXPONENT, LARGEST_EXPONENT), 0)


def largest_magnitudes(array: Array, axis: tuple[int, ...]) -> Array:
    found: Array = np.maximum(array.max(axis=axis, initial=0), -array.min(axis=axis, initial=0))
    return found


def scaled(array: Array, powers: Array, kept: list[int], ops: TensorOps) -> ir.Value:
    """The constant operand times its powers of two, as f32."""
    contracted = tuple(i for i in range(array.ndim) if i not in kept)
    return ops.constant(np.ldexp(array, np.expand_dims(powers, contracted)), "f32")


def scaled_back(
    value: ir.Value, powers: Array, kept: Kept, result: Tensor, ops: TensorOps
) -> ir.Value:
    """The product times the inverse powers of two of an operand."""
    back = ops.constant(np.ldexp(np.float32(1), -powers), result.element)
    return ops.binary("mul", value, kept.spread(back, result, ops))
