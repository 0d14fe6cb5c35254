"""`reduce` with a function that no operator combines by, as operations on halves of the tensor.

    y = f(f(x[0], x[2]), f(x[1], x[3]))

StableHLO asks for an associative function; one that is so for random numbers, and commutative
(`associativity`), combines the first half of a dimension with the second one until one element is
left. Of an odd number of elements the last one is combined with the first of the others. The bits
of integers are combined so, products of those of 64 bits, sums of exponentials, and what several
operands give together, as a mean and a variance; other functions are applied to one element after
the other, on the scalar unit. Functions that the vector unit reduces by, and those that choose one
of two tuples, as the largest value with its place, are left to `convert-stablehlo-to-ascend`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.mlir import Op, ir
from davinci.passes.stablehlo_to_ascend import tensors as t
from davinci.passes.stablehlo_to_ascend.associativity import is_associative, is_commutative
from davinci.passes.stablehlo_to_ascend.elementwise_regions import applied, is_elementwise
from davinci.passes.stablehlo_to_ascend.reductions import kind_of_body
from davinci.passes.stablehlo_to_ascend.window_scans import part

LONG = ("i64", "ui64")
"""Integers whose products the vector unit combines by twos only."""

CHOOSING = frozenset(
    ["and", "compare", "constant", "maximum", "minimum", "not", "or", "select", "xor"]
)
"""Operations of functions that choose one of two tuples."""


def expand_reduce(op: Op) -> list[ir.Value] | None:
    """The results of a `stablehlo.reduce`; None where halves are not combined."""
    region, count = op.regions[0], len(op.results)
    arrays, starts = list(op.operands)[:count], list(op.operands)[count:]
    known = kind_of_body(op)
    long = known == "mul" and tensor_of(arrays[0].type).element in LONG
    if (known is not None and not long) or (count > 1 and only_chooses(region)):
        return None
    if not math.prod(arrays[0].type.shape) or not is_elementwise(region):
        return None
    if not is_associative(region) or not is_commutative(region):
        return None
    for dim in attribute(op, "dimensions"):
        arrays = halved(region, arrays, dim)
    kinds = [result.type for result in op.results]
    begun = [t.broadcast(start, kind, []) for start, kind in zip(starts, kinds, strict=True)]
    left = [t.op("reshape", [x], kind) for x, kind in zip(arrays, kinds, strict=True)]
    return applied(region, [*begun, *left])


def only_chooses(region: ir.Region) -> bool:
    """Whether a function computes nothing but which of its arguments it gives."""
    *inner, _ = (view.operation.name for view in region.blocks[0].operations)
    names = {name.removeprefix("stablehlo.") for name in inner}
    return "select" in names and names <= CHOOSING


def halved(region: ir.Region, arrays: Sequence[ir.Value], dim: int) -> list[ir.Value]:
    """Arrays of one shape with the elements of a dimension combined to one."""
    arrays = list(arrays)

    def parts(of: Sequence[ir.Value], begin: int, end: int) -> list[ir.Value]:
        return [part(x, dim, begin, end, 1) for x in of]

    while (size := arrays[0].type.shape[dim]) > 1:
        half = size // 2
        combined = applied(region, [*parts(arrays, 0, half), *parts(arrays, half, 2 * half)])
        if size % 2:
            last = parts(arrays, size - 1, size)
            front = applied(region, [*parts(combined, 0, 1), *last])
            rest = [[]] * len(front) if half == 1 else [[x] for x in parts(combined, 1, half)]
            combined = [
                t.concatenate([x, *behind], dim) for x, behind in zip(front, rest, strict=True)
            ]
        arrays = combined
    return arrays
