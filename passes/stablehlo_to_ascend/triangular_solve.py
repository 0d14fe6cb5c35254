"""Solutions of triangular systems by blocks: products and sums where the definition has a loop.

The matrix stands on the left, and its rows are divided by their elements on the diagonal. Each of
its diagonal blocks of `BLOCK` rows is inverted, all of them and all of the batch at once. If V has
the inverses of blocks of s rows on its diagonal, and C what lies below them in blocks of 2 s rows,
the inverses of those are V - V C V:

    [[A, 0], [C, B]]^-1 = [[A^-1, 0], [-B^-1 C A^-1, B^-1]].

Then rows of the solution follow block by block: what is known of them times the blocks to the left
is subtracted from the right-hand side, and the rest is multiplied by the inverse. As only blocks
are inverted, errors stay near those of the substitution of single rows (Du Croz and Higham,
Stability of Methods for Matrix Inversion, 1992, have the bounds). Products are elementwise ones
that are summed, in the precision of the operands, which the cube may not have.
"""

from __future__ import annotations

import math

import numpy as np

from davinci.dialects.base import attribute
from davinci.elements import Array
from davinci.mlir import Op, ir
from davinci.passes.stablehlo_to_ascend import tensors as t
from davinci.passes.stablehlo_to_ascend.transposed_convolution import padded

BLOCK = 32
"""Rows of a block; a power of two."""

FEWEST = 2048
"""Products below which the system stays one operator: the scalar unit takes some 90 cycles for one
(910: 14.2 M cycles for 32 rows and 320 columns), for all about as long as ten kernels launch."""


def expand_triangular_solve(op: Op) -> list[ir.Value] | None:
    """Replaces `triangular_solve`; None if it is small or its elements are no f32 or f16."""
    a, b = op.operands
    products = math.prod(b.type.shape) * a.type.shape[-1] // 2
    if products < FEWEST or not isinstance(a.type.element_type, (ir.F32Type, ir.F16Type)):
        return None
    lower = attribute(op, "lower")
    transposed = "NO_TRANSPOSE" not in str(op.attributes["transpose_a"])
    left = attribute(op, "left_side")
    # x A = b is A^T x^T = b^T.
    if transposed == left:
        a, lower = turned(a), not lower
    b = b if left else turned(b)
    if not attribute(op, "unit_diagonal"):
        a, b = divided(a, b)
    x = solved(a, b, lower)
    return [x if left else turned(x)]


def turned(x: ir.Value) -> ir.Value:
    """Matrices of a batch, transposed."""
    rank = x.type.rank
    return t.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def divided(a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Rows of both sides, divided by the elements of `a` on its diagonal."""
    rank = a.type.rank
    diagonal = t.total(chosen(np.eye(a.type.shape[-1], dtype=bool), a), [rank - 1])
    rows = list(range(rank - 1))
    return (
        t.divide(a, t.broadcast(diagonal, a.type, rows)),
        t.divide(b, t.broadcast(diagonal, b.type, rows)),
    )


def chosen(where: Array, a: ir.Value, other: float = 0) -> ir.Value:
    """Matrices of a batch at places that are known, another number elsewhere."""
    bits = ir.RankedTensorType.get(a.type.shape, ir.IntegerType.get_signless(1))
    kept = t.constant(where, bits.element_type)
    kept = t.broadcast(kept, bits, [bits.rank - 2, bits.rank - 1])
    return t.op("select", [kept, a, t.full(a.type, other)], a.type)


def solved(a: ir.Value, b: ir.Value, lower: bool) -> ir.Value:
    """x of a x = b, row by row of blocks: of `a` one triangle counts, and ones on its diagonal."""
    *batch, rows, columns = b.type.shape
    size = min(BLOCK, 1 << (rows - 1).bit_length())
    count = -(-rows // size)
    over = count * size - rows
    a = t.reshape(a, [math.prod(batch), rows, rows])
    b = t.reshape(b, [math.prod(batch), rows, columns])
    a, b = padded(a, [0] * 3, [0, over, over], [0] * 3), padded(b, [0] * 3, [0, over, 0], [0] * 3)
    inverses = inverted(turned(a) if not lower else a, size)
    inverses = inverses if lower else turned(inverses)
    found: list[ir.Value] = []
    for j in range(count) if lower else reversed(range(count)):
        first, end = j * size, (j + 1) * size
        rest = t.cut(b, 1, first, end)
        if found:
            known = t.concatenate(found, 1)
            line = t.cut(a, 1, first, end)
            left = t.cut(line, 2, 0, first) if lower else t.cut(line, 2, end, count * size)
            rest = t.subtract(rest, product(left, known))
        x = product(t.reshape(t.cut(inverses, 1, j, j + 1), [math.prod(batch), size, size]), rest)
        found = [*found, x] if lower else [x, *found]
    return t.reshape(t.cut(t.concatenate(found, 1), 1, 0, rows), [*batch, rows, columns])


def inverted(a: ir.Value, size: int) -> ir.Value:
    """Inverses [n, count, size, size] of the diagonal blocks of lower triangular [n, rows, rows]
    with ones on the diagonal."""
    blocks = diagonal(a, size)
    number, count = blocks.type.shape[:2]
    blocks = t.reshape(blocks, [number * count, size, size])
    place = np.arange(size)
    found = chosen(place[:, None] != place, t.full(blocks.type, 0), 1)
    for half in (1 << power for power in range(size.bit_length() - 1)):
        part = place // half
        corner = chosen((part[:, None] == part + 1) & (part % 2 == 0), blocks)
        if half > 1:
            corner = product(found, product(corner, found))
        found = t.subtract(found, corner)
    return t.reshape(found, [number, count, size, size])


def diagonal(a: ir.Value, size: int) -> ir.Value:
    """The blocks [n, count, size, size] on the diagonal of matrices [n, rows, rows]."""
    n, rows, _ = a.type.shape
    count = rows // size
    parts = t.reshape(a, [n, count, size, count, size])
    flags = ir.RankedTensorType.get(parts.type.shape, ir.IntegerType.get_signless(1))
    there = t.constant(np.eye(count, dtype=bool), flags.element_type)
    kept = [t.broadcast(there, flags, [1, 3]), parts, t.full(parts.type, 0)]
    return t.total(t.op("select", kept, parts.type), [3])


def product(a: ir.Value, b: ir.Value) -> ir.Value:
    """Products [n, i, j] of [n, i, k] and [n, k, j], in the precision of their elements."""
    n, i, k = a.type.shape
    terms = ir.RankedTensorType.get([n, i, k, b.type.shape[2]], a.type.element_type)
    left, right = t.broadcast(a, terms, [0, 1, 2]), t.broadcast(b, terms, [0, 2, 3])
    return t.total(t.multiply(left, right), [2])
