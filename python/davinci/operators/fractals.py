"""Layouts of matrices: `relayout`, from rows to fractals and back.

Nz puts element (i, j) of an m x n matrix at [j // c][i // 16][i % 16][j % c].
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from davinci.errors import require
from davinci.operators.call import Call
from davinci.operators.core import Array, operator
from davinci.operators.layouts import any_layout
from davinci.operators.tensors import is_float, is_integer, width_of
from davinci.operators.windows import same_place
from davinci.units import FRACTAL_SIDE, ceil_div


def require_fractal_type(element: str) -> None:
    """Elements of 8, 16 or 32 bits."""
    number = is_integer(element) or is_float(element)
    legal = number and width_of(element) in (8, 16, 32)
    require(legal, "element type", element, "8, 16 or 32 bits")


def fractal_elements(call: Call) -> None:
    """Elements have 8, 16 or 32 bits; c is 32 for 8 bits, else 16."""
    require_fractal_type(call.inputs[0].element)


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


def same_shape_and_type(call: Call) -> None:
    """Shapes and element types are equal."""
    (operand,) = call.inputs
    call.expect_output(operand.shape, operand.element)


@operator(
    windows=same_place,
    constraints=(same_shape_and_type, fractal_elements),
    layouts=any_layout,
)
def relayout(a: Array) -> Array:
    """The operand in another layout."""
    return a
