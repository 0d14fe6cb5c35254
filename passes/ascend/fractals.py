"""Matrices as arrays of fractals and back, in NumPy.

nz[.., j, i, r, l] = matrix[.., i * 16 + r, j * c + l]        c columns in a fractal
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from davinci.units import FRACTAL_SIDE, ceil_div

Array = np.ndarray[Any, np.dtype[Any]]


def to_nz(matrices: Array, c: int) -> Array:
    """[.., m, n] as [.., ceil(n / c), ceil(m / 16), 16, c], padded with zeros."""
    *batch, m, n = matrices.shape
    n1, m1 = ceil_div(n, c), ceil_div(m, FRACTAL_SIDE)
    width = [(0, 0)] * len(batch) + [(0, m1 * FRACTAL_SIDE - m), (0, n1 * c - n)]
    padded = np.pad(matrices, width) if any(after for _, after in width) else matrices
    return np.moveaxis(padded.reshape(*batch, m1, FRACTAL_SIDE, n1, c), -2, -4)


def from_nz(fractals: Array, shape: Sequence[int]) -> Array:
    """The matrices of that shape, [.., m, n], in an array of fractals."""
    *batch, n1, m1, rows, c = fractals.shape
    *_, m, n = shape
    matrices = np.moveaxis(fractals, -4, -2).reshape(*batch, m1 * rows, n1 * c)
    return matrices[..., :m, :n]
