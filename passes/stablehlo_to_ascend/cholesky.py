"""Cholesky's factors of matrices, column by column for all of a batch at once.

With p the first element of what is left of a matrix and c the column below it,

    L = [sqrt(p), c / sqrt(p)] in front of the factor of  rest - c c^T / p,

so that a step is one kernel: a column by its pivot, and the product of that with the column taken
away. Matrices are made symmetric first, for c^T to be read where it lies, as a row. The factor is
what the columns were, divided by the roots of their pivots. A pivot below 0 makes NaN of what
follows, as its root does.

Where there are as many matrices as these have rows, or more, they lie side by side, one in each
lane: [rows, columns, matrices]. Larger ones are factors of blocks of `BLOCK` columns,

    rest = A - (columns before) (their rows of this block)^T,     L = [F, below F^-T],

with F the factor of the block on the diagonal, whose inverse `triangular_solve` has.
"""

from __future__ import annotations

import math

import numpy as np

from davinci.dialects.base import attribute
from davinci.mlir import Op, ir
from davinci.passes.stablehlo_to_ascend import tensors as t
from davinci.passes.stablehlo_to_ascend.transposed_convolution import padded
from davinci.passes.stablehlo_to_ascend.triangular_solve import (
    BLOCK,
    chosen,
    divided,
    inverted,
    product,
    turned,
)

PRODUCT_CYCLES = 90
"""Cycles of the scalar unit for one of the n^3 / 6 products of a matrix (910: 97,305 cycles for 16
rows, 595,250 for 32)."""

STEP_CYCLES = 2000
"""About what a step takes with the meeting behind it, and each of two more (910: 26,163 cycles and
18 meetings for 16 rows)."""


def expand_cholesky(op: Op) -> list[ir.Value] | None:
    """The factor; None if it is small or its elements are no f32 or f16."""
    a = op.operands[0]
    *batch, rows, _ = a.type.shape
    products = math.prod(batch) * rows**3 // 6
    if products * PRODUCT_CYCLES < (rows + 2) * STEP_CYCLES:
        return None
    if not isinstance(a.type.element_type, (ir.F32Type, ir.F16Type)):
        return None
    lower = attribute(op, "lower", False)
    single = ir.RankedTensorType.get([math.prod(batch), rows, rows], ir.F32Type.get())
    given = t.reshape(a if lower else turned(a), single.shape)
    if given.type != single:
        given = t.op("convert", [given], single)
    found = factor(given) if rows <= BLOCK else factor_of_blocks(given)
    found = t.reshape(found, a.type.shape)
    if found.type != a.type:
        found = t.op("convert", [found], a.type)
    return [found if lower else turned(found)]


def factor(a: ir.Value) -> ir.Value:
    """The factors of matrices [n, rows, rows], of which the lower triangle counts."""
    count, rows, _ = a.type.shape
    lanes = count >= rows
    first = 0 if lanes else 1
    rest = _symmetric(t.transpose(a, [1, 2, 0]) if lanes else a, first)
    columns = []
    for number in range(rows):
        column = t.cut(rest, first + 1, 0, 1)
        if number < rows - 1:
            rest = _behind(rest, column, first)
        if lanes:
            column = t.divide(column, _spread(t.sqrt(t.cut(column, 0, 0, 1)), column.type))
        columns.append(_from(column, first, number))
    found = t.concatenate(columns, first + 1)
    if lanes:
        return t.transpose(found, [2, 0, 1])
    # A root for each row of lanes is made of all matrices at once.
    diagonal = t.total(chosen(np.eye(rows, dtype=bool), found), [1])
    return t.divide(found, t.broadcast(t.sqrt(diagonal), found.type, [0, 2]))


def _symmetric(a: ir.Value, first: int) -> ir.Value:
    """Matrices along the dimensions `first` and the one behind it, with the lower triangle in place
    of the upper one."""
    order = list(range(a.type.rank))
    order[first], order[first + 1] = first + 1, first
    bits = ir.RankedTensorType.get(a.type.shape, ir.IntegerType.get_signless(1))
    lower = t.constant(np.tri(a.type.shape[first], dtype=bool), bits.element_type)
    return t.select(t.broadcast(lower, bits, [first, first + 1]), a, t.transpose(a, order))


def _behind(rest: ir.Value, column: ir.Value, first: int) -> ir.Value:
    """What is left behind the first column, of symmetric matrices along the dimensions `first` and
    the one behind it."""
    rows = column.type.shape[first]
    root = t.sqrt(t.cut(column, first, 0, 1))
    below = t.cut(column, first, 1, rows)
    part = t.cut(t.cut(rest, first, 1, rows), first + 1, 1, rows)
    across = t.cut(t.cut(rest, first, 0, 1), first + 1, 1, rows)
    pivots = _spread(t.multiply(root, root), below.type)
    scaled = _spread(t.divide(below, pivots), part.type)
    return t.subtract(part, t.multiply(scaled, _spread(across, part.type)))


def _spread(x: ir.Value, kind: ir.RankedTensorType) -> ir.Value:
    """Dimensions of size 1 repeated to a shape."""
    return t.broadcast(x, kind, list(range(kind.rank)))


def _from(x: ir.Value, dim: int, start: int) -> ir.Value:
    """A tensor with zeros in front of it along a dimension."""
    none = [0] * x.type.rank
    return padded(x, [start if d == dim else 0 for d in range(x.type.rank)], none, none)


def factor_of_blocks(a: ir.Value) -> ir.Value:
    """The factors of matrices [n, rows, rows] of more rows than a block."""
    rows = a.type.shape[1]
    blocks: list[ir.Value] = []
    for begin in range(0, rows, BLOCK):
        end = min(begin + BLOCK, rows)
        rest = t.cut(t.cut(a, 1, begin, rows), 2, begin, end)
        if blocks:
            known = t.concatenate([t.cut(block, 1, begin, rows) for block in blocks], 2)
            own = t.cut(known, 1, 0, end - begin)
            rest = t.subtract(rest, product(known, turned(own)))
        top = factor(t.cut(rest, 1, 0, end - begin))
        parts = [top]
        if end < rows:
            parts.append(_by_inverse(t.cut(rest, 1, BLOCK, rows - begin), top))
        blocks.append(_from(t.concatenate(parts, 1), 1, begin))
    return t.concatenate(blocks, 2)


def _by_inverse(below: ir.Value, top: ir.Value) -> ir.Value:
    """x of x F^T = `below`, of lower triangular F [n, BLOCK, BLOCK]: F x^T = below^T, whose rows
    are divided by the diagonal of F first."""
    ones, right = divided(top, turned(below))
    count = top.type.shape[0]
    inverse = t.reshape(inverted(ones, BLOCK), [count, BLOCK, BLOCK])
    return turned(product(inverse, right))
