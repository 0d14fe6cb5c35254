"""Integer arithmetic and further conversions of the 910B's vector unit.

Sums, differences and products of integers keep their lowest bits (assumed: what is published does
not say whether they saturate).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from davinci.isa.convert import ROUNDINGS, converting, rounded_to
from davinci.isa.core import DTYPES, Array, Compute, Registers, Values
from davinci.isa.vector_regions import define_lanewise, elementwise, lanewise
from davinci.isa.vector_scalar import scalar_of, with_scalar

SOURCE = "docs/hardware.md a1 (types), b2 (time), c (vector instructions of the 910B)"

BINARY: list[tuple[str, Callable[..., Array], str]] = [
    ("vadd", np.add, "dst = src0 + src1"),
    ("vsub", np.subtract, "dst = src0 - src1"),
    ("vmul", np.multiply, "dst = src0 * src1"),
    ("vmax", np.maximum, "dst = the larger of src0 and src1"),
    ("vmin", np.minimum, "dst = the smaller of src0 and src1"),
]

for name, function, doc in BINARY:
    lanes = elementwise(dst="s16", src0="s16", src1="s16")
    define_lanewise(name, "s16", lanes, lanewise(function, "s16"), f"{doc}.", SOURCE)

for name, function, doc in [
    ("vadds", np.add, "dst = src + value."),
    ("vmuls", np.multiply, "dst = src * value."),
]:
    for dtype in ("s16", "s32"):
        lanes = elementwise(dst=dtype, src=dtype)
        made = with_scalar(function, dtype)
        define_lanewise(name, dtype, lanes, made, doc, SOURCE, scalar=True)


def shifted(function: Callable[..., Array], dtype: str) -> Compute:
    """`compute` of a shift by the field `value`; by the width of the type or more, nothing or, of
    negative numbers to the right, the sign is left."""
    element = DTYPES[dtype]
    width = 8 * element.itemsize

    def compute(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
        count = int(scalar_of(values, np.dtype(np.uint32)))
        (x,) = arrays
        if count >= width and function is np.left_shift:
            return [np.zeros_like(x)]
        return [function(x, np.array(min(count, width - 1), element))]

    return compute


for name, function, doc in [
    ("vshl", np.left_shift, "dst = src << value"),
    ("vshr", np.right_shift, "dst = src >> value, with the sign"),
]:
    for dtype in ("s16", "s32"):
        lanes = elementwise(dst=dtype, src=dtype)
        made = shifted(function, dtype)
        define_lanewise(name, dtype, lanes, made, f"{doc}.", SOURCE, scalar=True)

ALL = ("r", "a", "f", "c", "z")
CONVERSIONS: list[tuple[str, str, tuple[str, ...]]] = [
    ("f16", "s16", ALL),
    ("f32", "s16", ALL),
    ("s16", "f16", ("",)),
    ("s16", "f32", ("",)),
    ("f32", "f32", ALL),
    ("f32", "s64", ALL),
    ("s64", "f32", ("r",)),
    ("s32", "s16", ("",)),
    ("s32", "s64", ("",)),
    ("s64", "s32", ("",)),
]
"""(from, to, roundings), docs/hardware.md c. From f32 to f32 is to a whole number."""


def conversion(src: str, dst: str, rounding: str) -> Callable[[Array], Array]:
    """The function of a conversion; between integers values saturate."""
    if src == dst:
        return ROUNDINGS[rounding][0]
    if src[0] == "s" and dst[0] == "s":
        info = np.iinfo(DTYPES[dst])
        return lambda x: np.clip(x, info.min, info.max).astype(DTYPES[dst])
    return rounded_to(src, dst, rounding)


for src, dst, roundings in CONVERSIONS:
    for rounding in roundings:
        lanes = elementwise(dst=dst, src=src)
        how = "whole numbers" if src == dst else f"converted from {src} to {dst}"
        define_lanewise(
            f"vconv_{src}2{dst}{rounding}",
            "",
            lanes,
            converting(conversion(src, dst, rounding), lanes),
            f"dst = src {how}, rounded {ROUNDINGS[rounding][1]}. A repeat covers {lanes.count} "
            "elements.",
            source=SOURCE,
        )
