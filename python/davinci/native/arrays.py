"""Arrays that native code takes: types of NumPy arrays by their names in annotations."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Halves = npt.NDArray[np.float16]
Bytes = npt.NDArray[np.uint8]

ELEMENTS = {"ints": "i64", "floats": "f64", "singles": "f32", "halves": "f16", "bytes": "i8"}
"""Arrays by what they hold."""

TYPES = {"int": "i64", "float": "f64", **{name.capitalize(): name for name in ELEMENTS}}
"""Types by the names that annotations have for them."""


def ints_at(address: int) -> Ints:
    """The array at an address; in functions of a library only."""
    raise NotImplementedError


def floats_at(address: int) -> Floats:
    """As `ints_at`."""
    raise NotImplementedError


def bytes_at(address: int) -> Bytes:
    """As `ints_at`."""
    raise NotImplementedError


ADDRESSED = {"ints_at": "ints", "floats_at": "floats", "bytes_at": "bytes"}


DATA = object.__basicsize__
"""Where a NumPy array has the address of its data: behind the head that every object has
(`PyArrayObject_fields` in NumPy's ndarraytypes.h)."""


def address(array: npt.NDArray[Any]) -> int:
    """Address of a contiguous array's first element; `array.ctypes.data` takes several times as
    long."""
    return ctypes.c_size_t.from_address(id(array) + DATA).value


assert address(probe := np.zeros(1)) == probe.ctypes.data, "NumPy's arrays are what they were"
