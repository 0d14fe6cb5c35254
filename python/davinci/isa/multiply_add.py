"""Vector instructions that multiply and add into their destination, which they read as well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from davinci.isa.core import DTYPES, Array, Compute, Registers, Values
from davinci.isa.halves import of_type
from davinci.isa.vector_regions import FLOATS, Lanes, define_lanewise, elementwise, lanewise
from davinci.isa.vector_scalar import scalar_of

ACCUMULATING = frozenset({"vaxpy", "vmla", "vmadd"})
"""Instructions that read their destination."""

SOURCE = "docs/hardware.md a1 (types), b2 (time), c (multiply-add); encoding assumed"


def reading_dst(lanes: Lanes) -> Lanes:
    """The same lanes where the destination is also the first thing read."""
    return replace(lanes, reads=lanes.sides)


def axpy(dtype: str) -> Compute:
    """`compute` of vaxpy: the destination, then the source."""
    element, add, multiply = DTYPES[dtype], of_type(np.add, dtype), of_type(np.multiply, dtype)

    def compute(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
        old, source = arrays
        return [add(old, multiply(source, scalar_of(values, element)))]

    return compute


MULTIPLY_ADD: list[tuple[str, Callable[..., Array], str]] = [
    ("vmla", lambda old, x, y: old + x * y, "dst = dst + src0 * src1"),
    ("vmadd", lambda old, x, y: old * x + y, "dst = dst * src0 + src1"),
]

for dtype in FLOATS:
    define_lanewise(
        "vaxpy",
        dtype,
        reading_dst(elementwise(dst=dtype, src=dtype)),
        axpy(dtype),
        "dst = dst + src * value, the product rounded first (assumed).",
        SOURCE,
        scalar=True,
    )
    for name, function, doc in MULTIPLY_ADD:
        define_lanewise(
            name,
            dtype,
            reading_dst(elementwise(dst=dtype, src0=dtype, src1=dtype)),
            lanewise(function, dtype),
            f"{doc}, the product rounded first (assumed).",
            SOURCE,
        )
