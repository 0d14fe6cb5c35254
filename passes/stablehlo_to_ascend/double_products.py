"""Products of matrices of f64 as its bits: all products of elements, and sums of halves of those.

    c[b, m, n]  =  sum over k of  a[k, b, m, -] b[k, b, -, n]

Terms lie with k in front, so that halves are runs of memory. Where there are too many for an array,
they are added up in parts of k, one after the other. Each product and each sum is rounded once.
"""

from __future__ import annotations

import math

from davinci.mlir import Op, ir, stablehlo
from davinci.passes.stablehlo_to_ascend import double_order as order
from davinci.passes.stablehlo_to_ascend import tensors as t
from davinci.passes.stablehlo_to_ascend.double_conversions import as_integers, halved, operator

MOST_TERMS = 1 << 21
"""Terms of an array, of 16 MB."""

MOST_PARTS = 128
"""Parts of k, each of which is a dozen kernels; products with more stay the scalar unit's."""

FEW_TERMS, FEW_OF_STEP = 160, 112
"""Terms that the scalar unit multiplies and adds in the time of the first tile of products, and of
one of sums, which each step of halves takes."""


def product_of(op: Op, left: ir.Value, right: ir.Value) -> ir.Value | None:
    """The bits of a `dot_general` of f64 of these bits; None where the scalar unit is faster, or
    there are too many terms."""
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    sides = (
        (left, numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions),
        (right, numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions),
    )
    (a, m), (b, n) = (_with_sums_first(x, list(batch), list(inner)) for x, batch, inner in sides)
    inner, batch, _ = a.type.shape
    size = batch * m * n
    if not inner or not size:
        return None
    if inner * size <= FEW_TERMS + FEW_OF_STEP * (inner - 1).bit_length():
        return None
    part = max(1, MOST_TERMS // size)
    if inner > part * MOST_PARTS:
        return None
    total: ir.Value | None = None
    for first in range(0, inner, part):
        last = min(first + part, inner)
        terms = ir.RankedTensorType.get([last - first, batch, m, n], left.type.element_type)
        factors = [
            t.broadcast(t.cut(x, 0, first, last), terms, dims)
            for x, dims in ((a, [0, 1, 2]), (b, [0, 1, 3]))
        ]
        found = halved("double_add", operator("double_mul", factors, terms), 0)
        total = found if total is None else operator("double_add", [total, found], found.type)
    assert total is not None, "there are terms"
    # 0 and a term of -0 are 0.
    some = t.select(order.related("EQ", total, order.LEAST), t.full(total.type, 0), total)
    return t.op("reshape", [some], as_integers(op.results[0].type))


def _with_sums_first(x: ir.Value, batch: list[int], inner: list[int]) -> tuple[ir.Value, int]:
    """A factor as [inner, batch, others], and how many others there are."""
    others = [d for d in range(x.type.rank) if d not in (*batch, *inner)]
    sizes = [math.prod(x.type.shape[d] for d in dims) for dims in (inner, batch, others)]
    return t.reshape(t.transpose(x, [*inner, *batch, *others]), sizes), sizes[-1]
