"""Products of many small matrices, of which the cube would compute a whole fractal each.

    1x1, 1xn or nx1 of one inner element    a product of numbers, one operand repeated
    1xk times kx1                           a product of vectors, and a sum over k
    1xk times kxn, k less than a fractal    C[n] = sum over k of A[k] B[k, n]
    m, k, n small                           C[m, n, i] = sum over k of A[m, k, i] B[k, n, i]

The last is for the vector unit: with the batch along lanes every product is one of whole vectors.
All are computed in f32.
"""

from __future__ import annotations

from davinci.mlir import ir
from davinci.operators.tensors import Tensor
from davinci.passes.ascend.tensor_ops import TensorOps
from davinci.units import FRACTAL_SIDE as SIDE

LEAST_BATCH = 64
"""Products from which on the vector unit takes less time than the cube for those of one row."""

LANES_OF_CORES = 1024
"""Products from which on a vector of them is long enough for all cores."""

MOST_SIDE, MOST_MACS = 12, 1024
"""Of matrices that are small: each term is an operation on all products."""


def small_products(
    left: ir.Value, right: ir.Value, result: Tensor, ops: TensorOps
) -> ir.Value | None:
    """left [batch, m, k] times right [batch, k, n], [batch, m, n] of the vector unit; None where
    the cube takes less time.

    Args:
        result: shape and element type of the product.
    """
    batch, m, k = left.type.shape
    n = result.shape[2]
    if batch < LEAST_BATCH:
        return None
    if k == 1 and 1 in (m, n):
        wide = [ops.cast(x, "f32") for x in (left, right)]
        a, b = (repeated(x, result.shape, ops) for x in wide)
        return ops.cast(ops.binary("mul", a, b), result.element)
    if m == n == 1:
        rows = (ops.reshape(ops.cast(x, "f32"), [batch, k]) for x in (left, right))
        total = ops.reduce(ops.binary("mul", *rows), "add", [1])
        return ops.cast(ops.reshape(total, result.shape), result.element)
    if m == 1 and k < SIDE <= n:
        weights = ops.reshape(ops.cast(left, "f32"), [batch, k])
        spread = ops.broadcast(weights, (batch, k, n), [0, 1])
        total = ops.reduce(ops.binary("mul", ops.cast(right, "f32"), spread), "add", [1])
        return ops.cast(ops.reshape(total, result.shape), result.element)
    if batch < LANES_OF_CORES or max(m, k, n) > MOST_SIDE or m * k * n > MOST_MACS:
        return None
    a, b = (ops.transpose(ops.cast(x, "f32"), [1, 2, 0]) for x in (left, right))
    terms: list[ir.Value] = []
    for i in range(k):
        column = ops.reshape(ops.cut(a, [0, i, 0], [m, i + 1, batch]), [m, batch])
        row = ops.reshape(ops.cut(b, [i, 0, 0], [i + 1, n, batch]), [n, batch])
        shape = (m, n, batch)
        term = ops.binary(
            "mul", ops.broadcast(column, shape, [0, 2]), ops.broadcast(row, shape, [1, 2])
        )
        terms = [ops.binary("add", terms[0], term) if terms else term]
    return ops.cast(ops.transpose(terms[0], [2, 0, 1]), result.element)


def repeated(x: ir.Value, shape: tuple[int, ...], ops: TensorOps) -> ir.Value:
    """x [batch, m or 1, n or 1] in the shape of a product."""
    found = x.type.shape
    if tuple(found) == shape:
        return x
    dims = [d for d in range(3) if found[d] == shape[d]]
    return ops.broadcast(ops.reshape(x, [found[d] for d in dims]), shape, dims)
