"""Layouts of matrices: `relayout` on tensors, and its kernels, from rows to fractals and back.

Nz puts element (i, j) of an m x n matrix at [j // c][i // 16][i % 16][j % c].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from davinci.errors import require
from davinci.operators.call import Call
from davinci.operators.constraints import on_tensors
from davinci.operators.core import Array, operator
from davinci.operators.layouts import any_layout
from davinci.operators.tensors import Tensor, fractal_shape, is_float, is_integer, lanes, width_of
from davinci.operators.windows import Axis, Dim, Windows, in_order, same_place
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
    constraints=(on_tensors, same_shape_and_type, fractal_elements),
    layouts=any_layout,
)
def relayout(a: Array) -> Array:
    """The operand in another layout."""
    return a


def on_buffers(call: Call) -> None:
    """On buffers only."""
    require(call.buffers, "has no form on tensors", "tensors", "memref, or ascend.relayout")


def matrix_operand(call: Call) -> None:
    """The operand has rank 2 or more."""
    rank = call.inputs[0].rank
    require(rank >= 2, "rank of the operand", rank, "at least 2")


def matrix_result(call: Call) -> None:
    """The result has rank 2 or more."""
    rank = call.outputs[0].rank
    require(rank >= 2, "rank of the result", rank, "at least 2")


def result_in_fractals(call: Call) -> None:
    """The result has the Nz shape and the operand's element type."""
    (operand,) = call.inputs
    call.expect_output(fractal_shape(operand.shape, operand.element), operand.element)


def operand_in_fractals(call: Call) -> None:
    """The operand has the Nz shape of the result and its element type."""
    (operand,), (result,) = call.inputs, call.outputs
    expected = fractal_shape(result.shape, result.element)
    require(operand.shape == expected, "shape of the operand", list(operand.shape), list(expected))
    call.same_element("the result", result.element, operand.element)


def matrix_and_fractals(shape: Sequence[int]) -> tuple[tuple[Axis, ...], tuple[Dim, ...]]:
    """Axes of fractals of that shape, and the dimensions of the matrix on them."""
    *batch, n1, m1, rows, columns = range(len(shape))
    m = Dim(m1, FRACTAL_SIDE, inner=Dim(rows))
    n = Dim(n1, shape[-1], inner=Dim(columns))
    return tuple(map(Axis, shape)), (*map(Dim, batch), m, n)


def into_fractals(call: Call) -> Windows:
    shape = call.outputs[0].shape
    axes, matrix = matrix_and_fractals(shape)
    return Windows(axes, in_order(len(shape)), (matrix,))


def out_of_fractals(call: Call) -> Windows:
    shape = call.inputs[0].shape
    axes, matrix = matrix_and_fractals(shape)
    return Windows(axes, matrix, (in_order(len(shape)),))


@operator(
    windows=into_fractals,
    constraints=(on_buffers, matrix_operand, fractal_elements, result_in_fractals),
    layouts=any_layout,
)
def fractalize(a: Array, *, result: Tensor) -> Any:
    """The kernel of a `relayout` from rows, [.., m, n], to Nz, [.., n1, m1, 16, c]."""
    return to_nz(a, lanes(result.element))


@operator(
    windows=out_of_fractals,
    constraints=(on_buffers, matrix_result, fractal_elements, operand_in_fractals),
    layouts=any_layout,
)
def defractalize(a: Array, *, result: Tensor) -> Any:
    """The kernel of a `relayout` from Nz to rows; the result type says m and n."""
    return from_nz(a, result.shape)
