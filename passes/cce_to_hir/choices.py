"""Comparisons that choose: bits of a comparison behind all buffers, and a selection by them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import buffer_of
from davinci.mlir import Op, ir
from davinci.passes.cce_to_hir.blocks import wait_for_vectors
from davinci.passes.cce_to_hir.operations import build
from davinci.units import BLOCK_BYTES

Buffers = Callable[[Sequence[ir.MemRefType]], list[ir.Value]]
"""Gives buffers of these types, one behind the other."""


def choose(
    op: Op,
    operands: Sequence[ir.Value],
    buffers: Buffers,
    move: Callable[[ir.Value, ir.Value], None],
) -> None:
    """dst = predicate(a, b) ? x : y by a comparison to bits and a selection. Both take arrays
    without gaps, so what has some, or repeats elements, goes by way of buffers.

    Args:
        buffers: see `Buffers`.
        move: copies one array in UB into another one.

    Raises:
        NoCounterpart: there is no room for them, or copies cannot move them.
    """
    *sources, target = operands
    distinct = list(dict.fromkeys(operands))
    apart = [value for value in distinct if not is_dense(value)]
    like = ir.MemRefType(target.type)
    bits = packed(like, ir.IntegerType.get_signless(1))
    place = ir.MemRefType.get(
        [BLOCK_BYTES], ir.IntegerType.get_signless(8), None, bits.memory_space
    )
    kinds = [packed(like, ir.MemRefType(value.type).element_type) for value in apart]
    chosen, scratch, *dense = buffers([bits, place, *kinds])
    moved = dict(zip(apart, dense, strict=True))
    wait_for_vectors()
    for value in apart:
        if value in sources:
            move(value, moved[value])
    a, b, x, y, result = (moved.get(value, value) for value in operands)
    wait_for_vectors()
    mode = f"#hir.compare_mode<{attribute(op, 'predicate')}>"
    none = {"broadcast": "array<i64>", "transpose": "array<i64>"}
    of_two = {"operandSegmentSizes": "array<i32: 2, 1>", "compare_mode": mode, **none}
    build("vcmp", of_two, [a, b, chosen])
    wait_for_vectors()
    of_three = {"operandSegmentSizes": "array<i32: 3, 1, 1>", **none}
    build("vsel", of_three, [chosen, x, y, result, scratch])
    if target in moved:
        wait_for_vectors()
        move(result, target)


def is_dense(value: ir.Value) -> bool:
    """Whether the elements of an array lie one behind the other, in its order."""
    view, expected = buffer_of(value), 1
    for size, step in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if size > 1 and step != expected:
            return False
        expected *= size
    return True


def packed(like: ir.MemRefType, element: ir.Type) -> ir.MemRefType:
    """An array of that shape, without gaps."""
    return ir.MemRefType.get(like.shape, element, None, like.memory_space)
