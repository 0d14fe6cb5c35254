"""Vector instructions with a scalar operand, which travels as raw bits in a configuration word."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from davinci.isa.core import DTYPES, Array, Compute, Registers, Values
from davinci.isa.halves import of_type
from davinci.isa.vector_regions import FLOATS, define_lanewise, elementwise

SOURCE = "docs/hardware.md a1 (types), b2 (time), c (strides, repeat, mask)"


def scalar_of(values: Values, dtype: np.dtype[np.generic]) -> Array:
    """The field `value` as a rank-0 array of `dtype`."""
    raw = np.array([values["value"]], dtype="<u4")
    return raw.view(dtype)[:1].reshape(())  # the lowest bits come first


def with_scalar(function: Callable[..., Array], dtype: str) -> Compute:
    """`compute` of function(src, scalar)."""
    element = DTYPES[dtype]

    def compute(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
        return [function(arrays[0], scalar_of(values, element))]

    return compute


def fill(dtype: str) -> Compute:
    """`compute` of vector_dup: one value for all lanes."""
    element = DTYPES[dtype]

    def compute(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
        return [scalar_of(values, element)]

    return compute


for name, function, doc in [
    ("vadds", np.add, "dst = src + value"),
    ("vmuls", np.multiply, "dst = src * value"),
]:
    for dtype in FLOATS:
        compute = with_scalar(of_type(function, dtype), dtype)
        lanes = elementwise(dst=dtype, src=dtype)
        define_lanewise(name, dtype, lanes, compute, f"{doc}.", SOURCE, scalar=True)

for dtype in (*FLOATS, "s16", "s32"):
    lanes = elementwise(dst=dtype)
    doc = "dst = value in every lane."
    define_lanewise("vector_dup", dtype, lanes, fill(dtype), doc, SOURCE, scalar=True)
