"""Arrays that stand in for the weights of a model where only times are asked for.

How long a kernel takes does not depend on the values that it multiplies, so a run without data
(`timing_only`) neither makes nor reads large weights. What the compiler gets instead has their
shape and type and takes no memory: it shows few random numbers over and over, a[i, j] is number
i + j of them. What is computed at compile time of such an array is again one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

LEAST_ELEMENTS = 1 << 16
"""Of an array that another one stands in for; smaller ones are cheap, and may be looked into."""

KINDS = ("float16", "float32", "float64")
"""Types of weights that others stand in for: integers may be indices."""

STD = 0.05
"""Standard deviation of the numbers, about that of trained weights."""


_DRAWN: dict[tuple[str, int], Array] = {}
"""The numbers behind all arrays of this module, by their type and how many there are."""


def _drawn(dtype: np.dtype[Any], count: int) -> Array:
    key = dtype.name, count
    if key not in _DRAWN:
        values = np.random.default_rng(0).standard_normal(count, np.float32) * np.float32(STD)
        _DRAWN[key] = values.astype(dtype)
        _DRAWN[key].flags.writeable = False
    return _DRAWN[key]


def has_stand_in(shape: Sequence[int], dtype: Any) -> bool:
    """Whether a weight is of a shape and type that another array stands in for."""
    return np.dtype(dtype).name in KINDS and math.prod(shape) >= LEAST_ELEMENTS


def stand_in(shape: Sequence[int], dtype: Any) -> Array:
    """An array of that shape and type, which `has_stand_in`; read-only, it takes no memory."""
    kind = np.dtype(dtype)
    numbers = _drawn(kind, sum(shape) - len(shape) + 1)
    strides = [kind.itemsize] * len(shape)
    found: Array = np.ndarray(tuple(shape), kind, numbers, strides=strides)
    found.flags.writeable = False
    return found


def stands_in(array: Array) -> bool:
    """Whether an array, or what it is a view of, was made by `stand_in`."""
    base: Any = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    return base is _DRAWN.get((base.dtype.name, base.size))
