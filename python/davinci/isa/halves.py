"""Arithmetic of half precision: computed in single precision, rounded once.

NumPy converts halves one by one, in software. Here native code converts them by the processor's
instructions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from davinci.isa.core import Array
from davinci.native import Halves, Library, Singles

CONVERSION, ARITHMETIC = Library(), Library()
"""Compiled when the first function of each is called."""

LARGEST = 65504.0
"""Finite number of half precision."""


LEAST_NORMAL = 2.0**-14
"""Magnitude of half precision; smaller numbers have fewer digits, and multiples of 2**-24."""

STAND_IN = 2.0**126
"""Numbers of f32 from here on stand for infinities: masks are made of the least number of f32 or
bf16, which may be halved, or have scores added."""


def is_limitless(numbers: Array) -> Array:
    """Which numbers of an array of f32 or f16 are no finite ones, or stand for infinities: of f16
    only the least does, for sums grow to the largest."""
    half = numbers.dtype == np.float16
    low, high = (-LARGEST, np.inf) if half else (-STAND_IN, STAND_IN)
    found: Array = ~((numbers > low) & (numbers < high))
    return found


@CONVERSION.entry
def widen(halves: Halves, singles: Singles, count: int) -> None:
    """The same numbers."""
    for i in range(count):
        singles[i] = halves[i]


@CONVERSION.entry
def narrow(singles: Singles, halves: Halves, count: int) -> None:
    """The nearest halves, ties to even."""
    for i in range(count):
        halves[i] = singles[i]


@ARITHMETIC.entry
def add(x: Halves, y: Halves, result: Halves, count: int) -> None:
    """As `np.add`."""
    for i in range(count):
        result[i] = x[i] + y[i]


@ARITHMETIC.entry
def subtract(x: Halves, y: Halves, result: Halves, count: int) -> None:
    """As `np.subtract`."""
    for i in range(count):
        result[i] = x[i] - y[i]


@ARITHMETIC.entry
def scale(x: Halves, y: Halves, result: Halves, count: int) -> None:
    """As `np.multiply`."""
    for i in range(count):
        result[i] = x[i] * y[i]


@ARITHMETIC.entry
def larger(x: Halves, y: Halves, result: Halves, count: int) -> None:
    """As `np.maximum`: x if they are equal, a NaN if there is one."""
    for i in range(count):
        a = x[i]
        b = y[i]
        result[i] = a if a >= b or a != a else b


@ARITHMETIC.entry
def smaller(x: Halves, y: Halves, result: Halves, count: int) -> None:
    """As `np.minimum`: x if they are equal, a NaN if there is one."""
    for i in range(count):
        a = x[i]
        b = y[i]
        result[i] = a if a <= b or a != a else b


@CONVERSION.entry
def infinities_and_zeros(halves: Halves, count: int) -> int:
    """How many there are of both, zeros times 2**32."""
    infinities = 0
    zeros = 0
    for i in range(count):
        infinities += 1 if halves[i] > LARGEST or halves[i] < -LARGEST else 0
        zeros += 1 if halves[i] == 0.0 else 0
    return infinities | zeros << 32


@CONVERSION.entry
def any_normal(halves: Halves, count: int) -> int:
    """1 if some number is neither zero nor subnormal, else 0."""
    found = 0
    for i in range(count):
        if halves[i] >= LEAST_NORMAL or halves[i] <= -LEAST_NORMAL:
            found = 1
            break
    return found


def is_vanishing(halves: Array) -> bool:
    """Whether all numbers of an array of f16 are zero or subnormal: none is a larger one, beside
    which their lost digits would not matter."""
    return not CONVERSION.call("any_normal", np.ascontiguousarray(halves), halves.size)


def count_extremes(halves: Array) -> tuple[int, int]:
    """How many elements of an array of f16 are infinite, and how many are zero."""
    found = CONVERSION.call("infinities_and_zeros", np.ascontiguousarray(halves), halves.size)
    return found & 0xFFFFFFFF, found >> 32


def converted(array: Array, dtype: npt.DTypeLike) -> Array:
    """As `array.astype(dtype)`; from f32 to f16 to the nearest, overflow gives infinity."""
    types = array.dtype.type, np.dtype(dtype).type
    name = CONVERSIONS.get(types)
    if name is None:
        return array.astype(dtype)
    array = np.ascontiguousarray(array)
    result: Array = np.empty(array.shape, dtype)
    CONVERSION.call(name, array, result, array.size)
    return result


CONVERSIONS = {(np.float16, np.float32): "widen", (np.float32, np.float16): "narrow"}


def computed(function: Callable[..., Array]) -> Callable[..., Array]:
    """A function of f16 that is `function` of f32, rounded."""

    def compute(*halves: Array) -> Array:
        return converted(function(*(converted(x, np.float32) for x in halves)), np.float16)

    return compute


def pairwise(name: str) -> Callable[[Array, Array], Array]:
    """A native function of two arrays, which broadcast."""

    def compute(x: Array, y: Array) -> Array:
        if x.shape != y.shape:
            x, y = (each.copy() for each in np.broadcast_arrays(x, y))
        x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
        result: Array = np.empty(x.shape, np.float16)
        ARITHMETIC.call(name, x, y, result, x.size)
        return result

    return compute


NATIVE: dict[Callable[..., Array], Callable[..., Array]] = {
    np.add: pairwise("add"),
    np.subtract: pairwise("subtract"),
    np.multiply: pairwise("scale"),
    np.maximum: pairwise("larger"),
    np.minimum: pairwise("smaller"),
    **{function: computed(function) for function in (np.divide, np.sqrt, np.reciprocal)},
}
"""Functions of f16 by those of NumPy that give the same."""


def of_type(function: Callable[..., Array], dtype: str) -> Callable[..., Array]:
    """A function of NumPy as it computes with arrays of a type."""
    return NATIVE.get(function, function) if dtype == "f16" else function
