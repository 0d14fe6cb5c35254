"""Rows of 16 singles in native code, which become what the processor has for them: one register
or several.

Two rows have `+`, `-` and `*`, lane by lane, each rounded to single precision. As Python these
functions do the same, with NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from davinci.native.arrays import Singles

LANES = 16
"""Elements of a row."""

Row = npt.NDArray[np.float32]
Rows = list[Row]

VECTOR = f"vector<{LANES}xf32>"
"""A row in the LLVM dialect."""


def unrolled(count: int) -> Iterator[int]:
    """As `range`; native code has the body of the loop `count` times, with constants for the
    variable."""
    return iter(range(count))


def rows(count: int) -> Rows:
    """Variables for rows; in native code numbered by constants, so that they are registers."""
    return [np.zeros(LANES, np.float32)] * count


def row(array: Singles, first: int) -> Row:
    """The row that begins with an element of an array."""
    return array[first : first + LANES].copy()


def put_row(array: Singles, first: int, value: Row) -> None:
    """Stores a row from an element of an array on."""
    array[first : first + LANES] = value


def spread(value: float) -> Row:
    """A number in all lanes."""
    return np.full(LANES, value, np.float32)


def multiply_add(x: Row, y: Row, z: Row) -> Row:
    """`x * y + z`; whether the product is rounded is up to the processor, so products must be
    exact."""
    return x * y + z


def interleaved(x: Row, y: Row, second: int) -> Row:
    """Lanes of two rows in turn, of their first or second halves."""
    half = slice(LANES // 2 * second, LANES // 2 * (second + 1))
    return np.stack([x[half], y[half]], axis=1).reshape(-1)


OPERATIONS = ("row", "put_row", "spread", "multiply_add", "interleaved", "rows")
"""Names of what functions of a library may call."""
