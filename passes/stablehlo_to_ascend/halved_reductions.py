"""`reduce` with a function that no operator combines by, as operations on halves of the tensor.

    y = f(f(x[0], x[2]), f(x[1], x[3]))

StableHLO asks for an associative function; one that is so for random numbers, and commutative
(`associativity`), combines the first half of a dimension with the second one until one element is
left. Of an odd number of elements the last one is combined with the first of the others. The bits
of integers are combined so, and sums of exponentials; other functions are applied to one element
after the other, on the scalar unit. Functions that the vector unit reduces by, and reductions of
several operands, are left to `convert-stablehlo-to-ascend`.
"""

from __future__ import annotations

import math

from davinci.dialects.base import attribute
from davinci.mlir import Op, ir
from davinci.passes.stablehlo_to_ascend import tensors as t
from davinci.passes.stablehlo_to_ascend.associativity import is_associative, is_commutative
from davinci.passes.stablehlo_to_ascend.elementwise_regions import applied, is_elementwise
from davinci.passes.stablehlo_to_ascend.reductions import kind_of_body
from davinci.passes.stablehlo_to_ascend.window_scans import part


def expand_reduce(op: Op) -> list[ir.Value] | None:
    """The result of a `stablehlo.reduce` of one operand; None where halves are not combined."""
    if len(op.results) != 1 or kind_of_body(op) is not None:
        return None
    x, start = op.operands
    region = op.regions[0]
    if not math.prod(x.type.shape) or not is_elementwise(region):
        return None
    if not is_associative(region) or not is_commutative(region):
        return None
    for dim in attribute(op, "dimensions"):
        x = halved(region, x, dim)
    kind = op.results[0].type
    return applied(region, [t.broadcast(start, kind, []), t.op("reshape", [x], kind)])


def halved(region: ir.Region, x: ir.Value, dim: int) -> ir.Value:
    """`x` with the elements of a dimension combined to one."""
    while (size := x.type.shape[dim]) > 1:
        half = size // 2
        first, second = (part(x, dim, begin, begin + half, 1) for begin in (0, half))
        (combined,) = applied(region, [first, second])
        if size % 2:
            last = part(x, dim, size - 1, size, 1)
            (front,) = applied(region, [part(combined, dim, 0, 1, 1), last])
            rest = [] if half == 1 else [part(combined, dim, 1, half, 1)]
            combined = t.op("concatenate", [front, *rest], combined.type, dimension=dim)
        x = combined
    return x
