"""`reduce_window` with any function, by doubling what is covered, as operations on whole tensors.

    y[i] = f(f(x[i], x[i + 1]), ..)
    two[i] = f(x[i], x[i + 1])     four[i] = f(two[i], two[i + 2])

The function is associative, as StableHLO asks, but need not be commutative: what comes first stays
first. One that is not so for random numbers (`associativity`), acc + x x for example, is applied to
one element after the other, on the scalar unit. A window of k elements takes at most 2 log2(k)
applications of the function to the tensor; a running reduction (`cumlogsumexp`) is one with windows
that reach back to the first element; sums of exponentials are done without their logarithms, see
`exponential_scans`. Windows whose function is one operation that the vector unit
reduces by are left to `convert-stablehlo-to-ascend`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from davinci.mlir import Op, ir
from davinci.operators.parts import pad_shape
from davinci.passes.stablehlo_to_ascend import tensors as t
from davinci.passes.stablehlo_to_ascend.associativity import is_associative
from davinci.passes.stablehlo_to_ascend.elementwise_regions import applied, is_elementwise
from davinci.passes.stablehlo_to_ascend.exponential_scans import SumsOfExponentials
from davinci.passes.stablehlo_to_ascend.reduce_window import WindowShape, scan_order
from davinci.passes.stablehlo_to_ascend.reductions import kind_of_body

Function = Callable[[Sequence[ir.Value]], list[ir.Value]]
"""Combines tensors with as many others of the same shape."""


def expand_reduce_window(op: Op) -> list[ir.Value] | None:
    """The results of a `stablehlo.reduce_window`; None of those that have an operator, and of
    functions that are more than elementwise operations or not associative."""
    count = len(op.results)
    operands, starts = list(op.operands)[:count], list(op.operands)[count:]
    static = all(v.type.has_static_shape for v in (*operands, *op.results))
    if not static or not all(math.prod(v.type.shape) for v in (*operands, *op.results)):
        return None
    if (count == 1 and kind_of_body(op) is not None) or not is_elementwise(op.regions[0]):
        return None
    if not is_associative(op.regions[0]):
        return None
    windows = WindowShape.of(op)
    order = scan_order(windows, operands[0].type.shape, op.results[0].type.shape)
    windows, shape = windows.permuted(order), [op.results[0].type.shape[dim] for dim in order]
    found = [
        padded(t.transpose(x, order), start, windows)
        for x, start in zip(operands, starts, strict=True)
    ]
    sums = SumsOfExponentials.of(op.regions[0], starts)
    function = sums.joined if sums else partial(applied, op.regions[0])
    found = sums.begun(found[0]) if sums else found
    for dim, size in reversed(list(enumerate(windows.sizes))):  # rows first, as they lie
        step, stride = windows.apart[dim], windows.strides[dim]
        found = combined(function, found, dim, size, step, stride, shape[dim])
    if sums:
        found = [sums.ended(*found)]
    else:
        kinds = [ir.RankedTensorType.get(shape, v.type.element_type) for v in starts]
        first = [t.broadcast(v, kind, []) for v, kind in zip(starts, kinds, strict=True)]
        found = function([*first, *found])
    back = [order.index(dim) for dim in range(len(order))]
    return [t.transpose(x, back) for x in found]


def padded(x: ir.Value, start: ir.Value, windows: WindowShape) -> ir.Value:
    """`x` with the start value around it and between its elements."""
    low, high = (windows.edges[:, side].tolist() for side in (0, 1))
    interior = [n - 1 for n in windows.inside]
    shape = pad_shape(x.type.shape, low, high, interior)
    if list(shape) == list(x.type.shape) and not any(low):
        return x
    kind = ir.RankedTensorType.get(shape, x.type.element_type)
    places = {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": interior}
    return t.op("pad", [x, start], kind, **places)


def combined(
    function: Function, xs: list[ir.Value], dim: int, size: int, step: int, stride: int, count: int
) -> list[ir.Value]:
    """Windows of `size` elements, `step` apart, along a dimension: `count` of them."""
    length, reach = xs[0].type.shape[dim], (count - 1) * stride + 1
    result: list[ir.Value] | None = None
    at, covered = 0, 1
    while True:
        if size & covered:
            pieces = [part(x, dim, at * step, at * step + reach, stride) for x in xs]
            result = pieces if result is None else function([*result, *pieces])
            at += covered
        if at == size:
            return result or xs
        length -= covered * step
        first, second = (
            [part(x, dim, begin, begin + length, 1) for x in xs] for begin in (0, covered * step)
        )
        xs, covered = function([*first, *second]), 2 * covered


def part(x: ir.Value, dim: int, start: int, limit: int, stride: int) -> ir.Value:
    """x[.., start : limit : stride, ..]."""
    shape = list(x.type.shape)
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[dim], limits[dim], strides[dim] = start, limit, stride
    shape[dim] = -(-(limit - start) // stride)
    if shape == list(x.type.shape):
        return x
    kind = ir.RankedTensorType.get(shape, x.type.element_type)
    return t.op("slice", [x], kind, start_indices=starts, limit_indices=limits, strides=strides)
