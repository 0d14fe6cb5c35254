"""Conversions between element types. The mnemonic names both types and the rounding.

A repeat covers 64 elements if either side has 32 bits, else 128; the narrower side holds them in
fewer blocks. Strides count blocks of their own side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from davinci.isa.core import DTYPES, Array, Compute, Registers, Values
from davinci.isa.halves import converted
from davinci.isa.vector_regions import Lanes, define_lanewise, elementwise


def round_away(x: Array) -> Array:
    """Rounds to the nearest integer, halves away from zero."""
    rounded: Array = np.trunc(x + np.copysign(0.5, x))
    return rounded


ROUNDINGS: dict[str, tuple[Callable[..., Array], str]] = {
    "": (np.rint, "to the nearest, halves to even"),
    "r": (np.rint, "to the nearest, halves to even"),
    "a": (round_away, "to the nearest, halves away from zero"),
    "f": (np.floor, "towards minus infinity"),
    "c": (np.ceil, "towards plus infinity"),
    "z": (np.trunc, "towards zero"),
}

CONVERSIONS: list[tuple[str, str, tuple[str, ...]]] = [
    ("f16", "f32", ("",)),
    ("f32", "f16", ("",)),
    ("s8", "f16", ("",)),
    ("u8", "f16", ("",)),
    ("s32", "f32", ("",)),
    ("f16", "s8", ("", "a", "f", "c", "z")),
    ("f16", "u8", ("", "a", "f", "c", "z")),
    ("f16", "s32", ("r", "a", "f", "c", "z")),
    ("f32", "s32", ("r", "a", "f", "c", "z")),
    ("bf16", "f32", ("",)),
    ("f32", "bf16", ("r", "a", "f", "c", "z")),
    ("bf16", "s32", ("r", "a", "f", "c", "z")),
]
"""(from, to, roundings), docs/hardware.md a1."""


def to_float(src: str, dst: str) -> Callable[[Array], Array]:
    """Conversion to a floating-point type, to the nearest value; overflow gives infinity."""
    result = DTYPES[dst]
    return lambda x: converted(x, result)


BRAIN_BITS = 16
"""Bits of f32 that bf16 has not, the lowest ones of the mantissa."""


def to_brain(rounding: str) -> Callable[[Array], Array]:
    """Rounded conversion of f32 to bf16, which has the same exponents: the magnitude's lowest bits
    are cut off, and one is added to those that stay where the rounding says so."""
    result = DTYPES["bf16"]

    def convert(x: Array) -> Array:
        if rounding == "r":
            return x.astype(result)
        bits = np.ascontiguousarray(x).view(np.uint32)
        rest = bits & np.uint32((1 << BRAIN_BITS) - 1)
        negative = np.signbit(x)
        up = {
            "a": rest >= 1 << BRAIN_BITS - 1,
            "f": negative & (rest > 0),
            "c": ~negative & (rest > 0),
            "z": np.zeros(x.shape, bool),
        }[rounding]
        kept = (bits >> np.uint32(BRAIN_BITS)) + (up & np.isfinite(x))
        rounded = kept.astype(np.uint16).view(result)
        return np.where(np.isnan(x), result.type(np.nan), rounded)

    return convert


def rounded_to(src: str, dst: str, rounding: str) -> Callable[[Array], Array]:
    """The function of a conversion."""
    if dst[0] in "su":
        return to_integer(dst, rounding)
    return to_brain(rounding) if dst == "bf16" else to_float(src, dst)


def to_integer(dst: str, rounding: str) -> Callable[[Array], Array]:
    """Rounded conversion to an integer type; saturates, NaN gives 0."""
    result, round_ = DTYPES[dst], ROUNDINGS[rounding][0]
    info = np.iinfo(result)

    def convert(x: Array) -> Array:
        rounded = np.clip(round_(x.astype(np.float64)), info.min, info.max)
        finite: Array = np.nan_to_num(rounded, nan=0)
        return finite.astype(result)

    return convert


def converting(function: Callable[..., Array], lanes: Lanes) -> Compute:
    """`compute` of a conversion: the result takes the block shape of the destination."""
    (dst,) = lanes.writes

    def compute(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
        result = function(*arrays)
        if all(values[side.blk] == 1 for side in lanes.sides):
            return [result]
        return [result.reshape(-1, dst.blocks, dst.block_lanes)]

    return compute


for src, dst, roundings in CONVERSIONS:
    for rounding in roundings:
        lanes = elementwise(dst=dst, src=src)
        how = f"rounded {ROUNDINGS[rounding][1]}"
        if dst[0] in "su":
            how += ", saturated; NaN gives 0"
        define_lanewise(
            f"vconv_{src}2{dst}{rounding}",
            "",
            lanes,
            converting(rounded_to(src, dst, rounding), lanes),
            f"dst = src converted from {src} to {dst}, {how}. "
            f"A repeat covers {lanes.count} elements.",
            source="docs/hardware.md a1 (types), b2 (elements a cycle), c (roundings)",
        )


def product_to_integer(dst: str) -> Callable[[Array, Array], Array]:
    """Product of f16, rounded to f16, converted to an integer type."""
    convert = to_integer(dst, "")
    return lambda x, y: convert(x * y)


for dst in ("s8", "u8"):
    lanes = elementwise(dst=dst, src0="f16", src1="f16")
    define_lanewise(
        f"vmulconv_f162{dst}",
        "",
        lanes,
        converting(product_to_integer(dst), lanes),
        f"dst = src0 * src1, f16, converted to {dst}: the product rounded to f16, then as "
        f"vconv_f162{dst} does (both assumed). A repeat covers {lanes.count} elements.",
        source="docs/hardware.md b2 (time), c (other instructions); encoding assumed",
    )
