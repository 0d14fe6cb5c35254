"""Products of matrices, and determinants."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.operators.quantized_products import dequantized_matmul
from davinci.frontends.onnx.operators.reductions import place_of
from davinci.frontends.onnx.tensor import OnnxTensor

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall

LARGEST_DETERMINANT = 32
"""Rows of a matrix; an elimination is some operations for each."""


@operator("MatMul")
def lower_matmul(node: NodeCall) -> OnnxTensor:
    return product(node.take(0), node.take(1))


def product(a: OnnxTensor, b: OnnxTensor) -> OnnxTensor:
    """The matrix product, computed with bytes where both operands were dequantized from them."""
    made = dequantized_matmul(a, b)
    return ops.matmul(a, b) if made is None else made


def turned(x: OnnxTensor) -> OnnxTensor:
    """A matrix transposed, and so what it was dequantized from."""
    made, source = ops.transpose(x, [1, 0]), x.dequantized
    if source is not None:
        integers = ops.transpose(source.integers, [1, 0])
        made.dequantized = replace(source, integers=integers, axis=1 - source.axis)
    return made


@operator("Gemm")
def lower_gemm(node: NodeCall) -> OnnxTensor:
    """alpha * op(A) op(B) + beta * C."""
    node.ignore("broadcast")
    a, b, c = node.take(0), node.take(1), node.optional(2)
    alpha, beta = node.attr("alpha"), node.attr("beta")
    a = turned(a) if node.attr("transA") else a
    b = turned(b) if node.attr("transB") else b
    made = product(a, b)
    made = made if alpha == 1 else made * alpha
    if c is None or beta == 0:
        return made
    return made + (c if beta == 1 else c * beta)


@operator("Det")
def lower_det(node: NodeCall) -> OnnxTensor:
    """The product of the pivots of an elimination, with a change of sign for rows exchanged.

    Rows are chosen by masks, so that matrices of a batch may differ in their pivots. As many
    matrices as rows, or more, lie side by side: an element of all of them is a row of numbers.
    """
    x = node.take(0)
    size = x.shape[-1] if x.rank >= 2 else 0
    if x.rank < 2 or x.shape[-2] != size or size > LARGEST_DETERMINANT:
        node.refuse(
            f"determinants of {list(x.shape)}",
            f"square matrices of at most {LARGEST_DETERMINANT} rows",
        )
    count = math.prod(x.shape[:-2])
    left = ops.reshape(x, [count, size, size])
    rows = 0 if count >= size else 1
    if not rows:
        left = ops.transpose(left, [1, 2, 0])
    found: OnnxTensor | None = None
    while left.shape[rows]:
        pivot, left = _eliminated(left, rows)
        found = pivot if found is None else found * pivot
    return ops.full(x.shape[:-2], x.dtype, 1) if found is None else ops.reshape(found, x.shape[:-2])


def _eliminated(x: OnnxTensor, rows: int) -> tuple[OnnxTensor, OnnxTensor]:
    """The signed pivots of matrices [n, m, m] and what is left of them [n, m - 1, m - 1].

    Args:
        rows: the dimension of rows, before that of columns: 1, or 0 for matrices [m, m, n].
    """
    columns, size = rows + 1, x.shape[rows]
    first = ops.cut_axis(x, columns, 0, 1)
    place = place_of("maximum", ops.absolute(first), rows)
    chosen = ops.compare("EQ", ops.iota(np.int32, first.shape, rows), place)
    row = ops.reduce("add", ops.where(chosen, x, 0), [rows], keepdims=True)
    pivot = ops.cut_axis(row, columns, 0, 1)
    exchanged = ops.where(chosen, ops.cut_axis(x, rows, 0, 1), x)
    divisor = ops.where(ops.is_zero(pivot), 1, pivot)
    below = ops.cut_axis(exchanged, rows, 1, size)
    factor = ops.cut_axis(below, columns, 0, 1) / divisor
    left = ops.cut_axis(below - factor * row, columns, 1, size)
    signed = ops.where(ops.is_zero(place), pivot, -pivot)
    return signed, left
