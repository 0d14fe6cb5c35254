"""`cholesky` and `triangular_solve`, row by row; numbers of f16 are computed with in f32."""

from __future__ import annotations

from collections.abc import Callable

from davinci.dialects.base import attribute
from davinci.mlir import Op, arith, ir
from davinci.passes import builder
from davinci.passes.builder import IndexLike
from davinci.passes.stablehlo_to_scf import lowering
from davinci.passes.stablehlo_to_scf.elements import (
    Values,
    buffer,
    compare,
    extract,
    for_each,
    for_range,
    insert,
    select,
)

Read = Callable[[ir.Value], ir.Value]
"""Builds the read of an element by one index."""


def widened(scalar: ir.Value) -> ir.Value:
    if scalar.type.width >= 32:
        return scalar
    return arith.ExtFOp(ir.F32Type.get(), scalar).result


def narrowed(scalar: ir.Value, kind: ir.Type) -> ir.Value:
    return scalar if scalar.type == kind else arith.TruncFOp(kind, scalar).result


def sum_of_products(
    ends: tuple[IndexLike, IndexLike], a: Read, b: Read, initial: ir.Value
) -> ir.Value:
    """`initial` less the sum over k between both ends of a(k) b(k)."""
    (found,) = for_range(
        [(*ends, 1)],
        [initial],
        lambda k, v: [arith.SubFOp(v[0], arith.MulFOp(a(k[0]), b(k[0])).result).result],
    )
    return found


@lowering("cholesky")
def lower_cholesky(op: Op) -> Values:
    """L with L Lᵀ = A, or its transpose; the other triangle is zero.

    L[i, j] = (A[i, j] - sum over k < j of L[i, k] L[j, k]) / L[j, j], for i = j the root of it.
    """
    a, kind = op.operands[0], op.result.type
    lower = attribute(op, "lower", False)
    *batch, size, _ = kind.shape
    zero = arith.ConstantOp(kind.element_type, ir.FloatAttr.get(kind.element_type, 0)).result
    filled = for_each(kind.shape, [buffer(kind)], lambda at, v: [insert(zero, v[0], at)])

    def place(at: Values, i: ir.Value, j: ir.Value) -> Values:
        return [*at, i, j] if lower else [*at, j, i]

    def element(at: Values, i: ir.Value, j: ir.Value, target: ir.Value) -> ir.Value:
        def read(row: ir.Value) -> Read:
            return lambda k: widened(extract(target, place(at, row, k)))

        rest = sum_of_products((0, j), read(i), read(j), widened(extract(a, place(at, i, j))))
        root = builder.op("math.sqrt", [rest], [rest.type]).result
        on_diagonal = compare("eq", i, j)
        one = arith.ConstantOp(rest.type, ir.FloatAttr.get(rest.type, 1)).result
        divisor = select(on_diagonal, one, read(j)(j))
        value = select(on_diagonal, root, arith.DivFOp(rest, divisor).result)
        return insert(narrowed(value, kind.element_type), target, place(at, i, j))

    def row(at: Values, values: Values) -> Values:
        *outer, i = at
        end = arith.AddIOp(i, builder.constant_index(1)).result
        return for_range([(0, end, 1)], values, lambda j, v: [element(outer, i, j[0], v[0])])

    return for_each([*batch, size], filled, row)


@lowering("triangular_solve")
def lower_triangular_solve(op: Op) -> Values:
    """X with op(A) X = B, or X op(A) = B, which is solved transposed.

    X[i] = (B[i] - sum over known k of A[i, k] X[k]) / A[i, i], from the end where one is known.
    """
    a, b = op.operands
    kind = op.result.type
    left, lower, unit = (
        attribute(op, name, False) for name in ("left_side", "lower", "unit_diagonal")
    )
    transposed = ("NO_TRANSPOSE" in str(op.attributes["transpose_a"])) != left
    forward = lower != transposed
    size = a.type.shape[-1]
    *batch, rows, columns = kind.shape
    lines = columns if left else rows
    last = builder.constant_index(size - 1)

    def step(at: Values, values: Values) -> Values:
        *outer, line, count = at
        i = count if forward else arith.SubIOp(last, count).result
        after = arith.AddIOp(i, builder.constant_index(1)).result

        def place(k: ir.Value) -> Values:
            return [*outer, k, line] if left else [*outer, line, k]

        def factor(k: ir.Value) -> ir.Value:
            return widened(extract(a, [*outer, k, i] if transposed else [*outer, i, k]))

        def known(k: ir.Value) -> ir.Value:
            return widened(extract(values[0], place(k)))

        ends = (0, i) if forward else (after, size)
        rest = sum_of_products(ends, factor, known, widened(extract(b, place(i))))
        value = rest if unit else arith.DivFOp(rest, factor(i)).result
        return [insert(narrowed(value, kind.element_type), values[0], place(i))]

    return for_each([*batch, lines, size], [buffer(kind)], step)
