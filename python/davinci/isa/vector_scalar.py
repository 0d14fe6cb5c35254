"""Vector instructions with a scalar operand, which travels as raw bits in a configuration word."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from davinci.isa.core import DTYPES, Array, Compute, Instruction, Pipe, Registers, Values, define
from davinci.isa.halves import of_type
from davinci.isa.vector_regions import SCALAR, check_repeats, elementwise, ub, unary_fields

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
    for dtype in ("f16", "f32"):
        define(
            Instruction(
                name=name,
                type=dtype,
                pipe=Pipe.V,
                operands=(ub("dst"), ub("src")),
                fields=(*unary_fields("dst", "src"), SCALAR),
                accesses=elementwise([("dst", dtype), ("src", dtype)]).regions,
                compute=with_scalar(of_type(function, dtype), dtype),
                timing="vector",
                doc=f"{doc}.",
                source=SOURCE,
                check=check_repeats,
            )
        )

for dtype in ("f16", "f32", "s16", "s32"):
    define(
        Instruction(
            name="vector_dup",
            type=dtype,
            pipe=Pipe.V,
            operands=(ub("dst"),),
            fields=(*unary_fields("dst"), SCALAR),
            accesses=elementwise([("dst", dtype)]).regions,
            compute=fill(dtype),
            timing="vector",
            doc="dst = value in every lane.",
            source=SOURCE,
            check=check_repeats,
        )
    )
