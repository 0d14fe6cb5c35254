"""Floats to bytes, as QuantizeLinear of ONNX has it once they are scaled."""

from __future__ import annotations

from typing import Any

import numpy as np

from davinci.element_types import dtype_of
from davinci.errors import require
from davinci.operators.call import Call
from davinci.operators.constraints import same_shape
from davinci.operators.conversion import saturated
from davinci.operators.core import FLOATS, Array, elementwise
from davinci.operators.tensors import Tensor
from davinci.operators.vector_program import DTYPE_OF, Value, VectorProgram

QUANTIZED = ("i8", "ui8")
"""Element types of the result."""

WHOLE = 1.5 * 2.0**23
"""f32 of this size have no places behind the point: to add it rounds, halves to even."""


def values_of(x: Array, *, zero: int, result: Tensor) -> Any:
    """As NumPy has it."""
    return saturated(np.rint(x.astype(np.float64)) + zero, dtype_of(result.element))


def from_float_to_bytes(call: Call) -> None:
    """The operand is f32 or f16, the result i8 or ui8, `zero` one of its numbers."""
    (given,), (made,) = call.inputs, call.outputs
    require(given.element in ("f32", "f16"), "element type", given.element, "f32 or f16")
    require(made.element in QUANTIZED, "element type of the result", made.element, "i8 or ui8")
    limits, zero = np.iinfo(dtype_of(made.element)), call.integer("zero")
    within = limits.min <= zero <= limits.max
    require(within, "zero", zero, f"{limits.min}..{limits.max}")


@elementwise(
    values=values_of,
    types=FLOATS | frozenset(QUANTIZED),
    constraints=(same_shape, from_float_to_bytes),
)
def quantize(p: VectorProgram, a: Value, *, zero: int, result: Tensor) -> Value:
    """a, rounded to the nearest whole number, halves to even, plus `zero`; saturates, NaN gives 0.

    Numbers of 2^22 and more are not rounded, but they saturate.
    """
    whole = p.add(p.add(p.convert(a, "f32"), WHOLE), zero - WHOLE)
    # Whole numbers that f16 does not hold are beyond those of bytes, and stay so.
    return p.convert(p.convert(whole, "f16"), DTYPE_OF[result.element])
