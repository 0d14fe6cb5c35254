"""`sort`: each line is merged bottom up, which is stable and takes n log n comparisons."""

from __future__ import annotations

from collections.abc import Callable

from davinci.dialects.base import attribute
from davinci.mlir import Op, arith, ir
from davinci.passes import builder
from davinci.passes.stablehlo_to_scf import lowering
from davinci.passes.stablehlo_to_scf.elements import (
    Values,
    apply,
    buffer,
    compare,
    extract,
    for_each,
    for_range,
    insert,
    restored,
    select,
    stored,
)


@lowering("sort")
def lower_sort(op: Op) -> Values:
    """A loop over lines; a line is copied out, sorted, and copied back."""
    dim = int(attribute(op, "dimension", -1)) % max(1, op.operands[0].type.rank)
    operands = [stored(v) for v in op.operands]
    shape = list(operands[0].type.shape)
    if 0 in shape or not shape or shape[dim] == 1:
        return list(op.operands)
    length = shape[dim]
    lines = [ir.RankedTensorType.get([length], v.type.element_type) for v in operands]

    def sort_line(at: Values, results: Values) -> Values:
        def place(index: ir.Value) -> Values:
            return [*at[:dim], index, *at[dim:]]

        read = for_each(
            [length],
            [buffer(kind) for kind in lines],
            lambda i, line: each(insert, [extract(r, place(i[0])) for r in operands], line, i),
        )
        ordered = merge_sort(op.regions[0], length, read, [buffer(kind) for kind in lines])
        return for_each(
            [length],
            results,
            lambda i, out: each(insert, [extract(v, i) for v in ordered], out, place(i[0])),
        )

    others = shape[:dim] + shape[dim + 1 :]
    return restored(for_each(others, [buffer(v.type) for v in operands], sort_line), op.results)


def each(
    function: Callable[[ir.Value, ir.Value, Values], ir.Value],
    scalars: Values,
    targets: Values,
    at: Values,
) -> Values:
    return [function(s, t, at) for s, t in zip(scalars, targets, strict=True)]


def merge_sort(region: ir.Region, length: int, lines: Values, spare: Values) -> Values:
    """`lines`, of `length`, in the order of the comparator `region`; `spare` are of their types.

    Runs of 1, 2, 4, ... elements are merged in pairs into `spare`, and copied back.
    """
    count = len(lines)
    size = builder.constant_index(length)
    one = builder.constant_index(1)

    def merge(
        i: ir.Value,
        values: Values,
        middle: ir.Value,
        end: ir.Value,
        left: ir.Value,
        right: ir.Value,
    ) -> Values:
        """Writes element `i` of a merged run; returns the spare lines and where both runs are."""
        line, target = values[:count], values[count:]
        safe_left = select(compare("slt", left, middle), left, builder.constant_index(0))
        safe_right = select(compare("slt", right, end), right, builder.constant_index(0))
        a = [extract(v, [safe_left]) for v in line]
        b = [extract(v, [safe_right]) for v in line]
        pairs = [scalar for pair in zip(b, a, strict=True) for scalar in pair]
        (before,) = apply(region, pairs)
        left_done = compare("sge", left, middle)
        right_left = compare("slt", right, end)
        from_right = arith.AndIOp(right_left, arith.OrIOp(left_done, before).result).result
        chosen = [select(from_right, y, x) for x, y in zip(a, b, strict=True)]
        next_left = select(from_right, left, arith.AddIOp(left, one).result)
        next_right = select(from_right, arith.AddIOp(right, one).result, right)
        return [*each(insert, chosen, target, [i]), next_left, next_right]

    def one_pass(at: Values, values: Values) -> Values:
        width = arith.ShLIOp(one, at[0]).result
        double = arith.AddIOp(width, width).result

        def one_pair(first: Values, targets: Values) -> Values:
            middle = arith.MinSIOp(arith.AddIOp(first[0], width).result, size).result
            end = arith.MinSIOp(arith.AddIOp(first[0], double).result, size).result
            *merged, _, _ = for_range(
                [(first[0], end, one)],
                [*targets, first[0], middle],
                lambda i, v: merge(i[0], [*values[:count], *v[:-2]], middle, end, v[-2], v[-1]),
            )
            return merged

        merged = for_range([(0, size, double)], values[count:], one_pair)
        back = for_each(
            [length],
            values[:count],
            lambda i, v: each(insert, [extract(m, i) for m in merged], v, i),
        )
        return [*back, *merged]

    passes = (length - 1).bit_length()
    return for_each([passes], [*lines, *spare], one_pass)[:count]
