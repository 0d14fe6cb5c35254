"""Element types that no unit computes with: narrow floats and integers, and how each is stored.

In GM a bf16 takes 16 bits, and everything of 8 bits or fewer a byte of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class NarrowFloat:
    """A float of at most 16 bits: a sign where `signed`, exponent, mantissa.

    Attributes:
        dtype: of NumPy arrays.
        largest: bits of the largest finite number.
        overflow: bits of what is beyond it, an infinity, NaN or the largest number.
        nan: bits of the NaN that conversions make; their sign bit is flipped for a negative one.
        negative_zero: whether there is one; without, its bits are the only NaN.
    """

    name: str
    dtype: np.dtype[Any]
    exponent_bits: int
    mantissa_bits: int
    bias: int
    largest: int
    overflow: int
    nan: int
    negative_zero: bool = True
    signed: bool = True

    @property
    def bits(self) -> int:
        return self.signed + self.exponent_bits + self.mantissa_bits

    @property
    def stored(self) -> str:
        """The element type of the bits in a buffer."""
        return "i16" if self.bits > 8 else "i8"

    computed = "f32"
    """The element type that arithmetic is done in, which holds every value exactly."""


@dataclass(frozen=True)
class NarrowInteger:
    """An integer of fewer than 8 bits, a byte of the same value."""

    name: str
    dtype: np.dtype[Any]
    bits: int
    signed: bool

    @property
    def computed(self) -> str:
        return "i8" if self.signed else "ui8"

    @property
    def stored(self) -> str:
        return self.computed

    @property
    def least(self) -> int:
        return -(1 << self.bits - 1) if self.signed else 0

    @property
    def most(self) -> int:
        return (1 << self.bits - self.signed) - 1


def _ieee(name: str, dtype: Any, exponent_bits: int, mantissa_bits: int) -> NarrowFloat:
    """A float whose largest exponent is that of infinities and NaN."""
    infinity = ((1 << exponent_bits) - 1) << mantissa_bits
    nan = infinity | 1 << mantissa_bits - 1
    bias = (1 << exponent_bits - 1) - 1
    return NarrowFloat(
        name, np.dtype(dtype), exponent_bits, mantissa_bits, bias, infinity - 1, infinity, nan
    )


def _fnuz(name: str, dtype: Any, exponent_bits: int, mantissa_bits: int, bias: int) -> NarrowFloat:
    """A float without infinities and negative zero, whose bits are NaN."""
    nan = 1 << exponent_bits + mantissa_bits
    return NarrowFloat(
        name, np.dtype(dtype), exponent_bits, mantissa_bits, bias, nan - 1, nan, nan, False
    )


FLOATS = {
    f.name: f
    for f in (
        _ieee("bf16", ml_dtypes.bfloat16, 8, 7),
        _ieee("f8E5M2", ml_dtypes.float8_e5m2, 5, 2),
        _ieee("f8E4M3", ml_dtypes.float8_e4m3, 4, 3),
        _ieee("f8E3M4", ml_dtypes.float8_e3m4, 3, 4),
        _fnuz("f8E5M2FNUZ", ml_dtypes.float8_e5m2fnuz, 5, 2, 16),
        _fnuz("f8E4M3FNUZ", ml_dtypes.float8_e4m3fnuz, 4, 3, 8),
        _fnuz("f8E4M3B11FNUZ", ml_dtypes.float8_e4m3b11fnuz, 4, 3, 11),
        NarrowFloat("f8E4M3FN", np.dtype(ml_dtypes.float8_e4m3fn), 4, 3, 7, 0x7E, 0x7F, 0x7F),
        NarrowFloat(
            "f8E8M0FNU",
            np.dtype(ml_dtypes.float8_e8m0fnu),
            *(8, 0, 127, 0xFE, 0xFF, 0xFF),
            negative_zero=False,
            signed=False,
        ),
        # It has no NaN: what it makes of one is a zero of the other sign.
        NarrowFloat("f4E2M1FN", np.dtype(ml_dtypes.float4_e2m1fn), 2, 1, 1, 0x7, 0x7, 0x8),
    )
}

INTEGERS = {
    i.name: i
    for i in (
        NarrowInteger("i4", np.dtype(ml_dtypes.int4), 4, True),
        NarrowInteger("ui4", np.dtype(ml_dtypes.uint4), 4, False),
        NarrowInteger("i2", np.dtype(ml_dtypes.int2), 2, True),
        NarrowInteger("ui2", np.dtype(ml_dtypes.uint2), 2, False),
    )
}

NARROW: dict[str, NarrowFloat | NarrowInteger] = {**FLOATS, **INTEGERS}
"""By the text of the element type."""

BY_DTYPE = {narrow.dtype: narrow for narrow in NARROW.values()}


def stored_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type of an array as buffers hold it."""
    found = BY_DTYPE.get(dtype)
    if found is None:
        return dtype
    return np.dtype(found.stored.replace("i", "int"))


def to_stored(array: Array) -> Array:
    """The array as buffers hold it; one of a type of NumPy's own stays as it is."""
    stored = stored_dtype(array.dtype)
    if stored == array.dtype:
        return array
    if isinstance(BY_DTYPE[array.dtype], NarrowInteger):
        return array.astype(stored)
    return np.ascontiguousarray(array).view(stored).reshape(array.shape)


def from_stored(array: Array, dtype: np.dtype[Any]) -> Array:
    """What `to_stored` was made from."""
    if isinstance(BY_DTYPE.get(dtype), NarrowInteger):
        return array.astype(dtype)
    return np.ascontiguousarray(array).view(dtype).reshape(array.shape)


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether an array holds floats, NumPy's own or narrow ones."""
    return dtype.kind == "f" or isinstance(BY_DTYPE.get(dtype), NarrowFloat)
