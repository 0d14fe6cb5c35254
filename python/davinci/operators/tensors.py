"""Values of operators as plain data: shape, element type in MLIR's words, and layout."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from davinci.units import BLOCK_BYTES, FRACTAL_SIDE, ceil_div

ND, NZ = "", "nz"
"""Layouts of a tensor: rows one after the other, which is no encoding, and fractals."""


def is_float(element: str) -> bool:
    """Whether an element type is a float: `f32`, `bf16`, `f8E4M3FN`."""
    return re.match(r"[bt]?f\d", element) is not None


def is_integer(element: str) -> bool:
    """Whether an element type is an integer: `i32`, `ui8`, `i1`."""
    return re.fullmatch(r"[su]?i\d+", element) is not None


def width_of(element: str) -> int:
    """Bits of a number: its first digits; of a complex one twice that of its parts."""
    found = re.search(r"\d+", element)
    assert found, element
    return int(found[0]) * (2 if element.startswith("complex") else 1)


def lanes(element: str) -> int:
    """Columns of a fractal: 32 bytes' worth of elements, but 16 for 32-bit types."""
    return BLOCK_BYTES if width_of(element) == 8 else FRACTAL_SIDE


def fractal_shape(shape: Sequence[int], element: str) -> tuple[int, ...]:
    """Nz shape of [.., m, n]: [.., ceil(n / c), ceil(m / 16), 16, c]."""
    *batch, m, n = shape
    c = lanes(element)
    return (*batch, ceil_div(n, c), ceil_div(m, FRACTAL_SIDE), FRACTAL_SIDE, c)


@dataclass(frozen=True)
class Tensor:
    """An operand or result; a buffer has the shape of what lies in GM and the layout `ND`."""

    shape: tuple[int, ...]
    element: str
    layout: str = ND

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes_each(self) -> int:
        """Bytes of an element in GM, where everything of 8 bits or fewer takes one."""
        return max(8, width_of(self.element)) // 8

    @property
    def size_bytes(self) -> int:
        return self.count * self.bytes_each

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """Shape of the array that a value takes in GM."""
        return fractal_shape(self.shape, self.element) if self.layout == NZ else self.shape

    def __str__(self) -> str:
        text = "x".join([*map(str, self.shape), self.element])
        return f"{text} in {self.layout}" if self.layout else text
