"""Reductions of a tile in UB: outer axes in halves, then the lanes of rows.

    x [k, n] -> [n]       t = x[: k/2] op x[k/2 :]; t = t[: k/4] op t[k/4 :]; ...

Every level is one operation on whole tiles, so a sum is a tree.
"""

from __future__ import annotations

from davinci.mlir import ir
from davinci.operators.reduce import REDUCTIONS
from davinci.passes.ascend_to_cce.tiles import with_slots
from davinci.passes.builder import alloc, op, subview


def fold_axis(kind: str, source: ir.Value, result: ir.Value, axis: int, slots: int) -> None:
    """result = `kind` over the dimension `axis` of `source`, which has at least two elements.

    Args:
        source: [.., n, ..] in UB; it stays as it is.
        result: [.., 1, ..].
        slots: of the scratch buffer, 0 if there is no loop over tiles.
    """
    shape = list(source.type.shape)
    total = shape[axis]

    def part(buffer: ir.Value, first: int, count: int) -> ir.Value:
        at, sizes = [0] * len(shape), list(shape)
        at[axis], sizes[axis] = first, count
        return subview(buffer, at, sizes)

    def combine(a: ir.Value, b: ir.Value, to: ir.Value) -> None:
        op(f"cce.{REDUCTIONS[kind].step}", [a, b, to])

    half = total // 2
    if half == 1:
        scratch = result
    else:
        scratch = alloc(
            [half if i == axis else n for i, n in enumerate(shape)], source.type.element_type, "UB"
        )
        with_slots(scratch, slots)
    combine(part(source, 0, half), part(source, half, half), part(scratch, 0, half))
    if total % 2:
        combine(part(scratch, 0, 1), part(source, total - 1, 1), part(scratch, 0, 1))
    count = half
    while count > 1:
        half = count // 2
        to = result if count == 2 else scratch
        combine(part(scratch, 0, half), part(scratch, count - half, half), part(to, 0, half))
        count -= half
