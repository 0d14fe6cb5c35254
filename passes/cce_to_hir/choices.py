"""Comparisons that choose: bits of a comparison behind all buffers, and a selection by them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from davinci.dialects.base import attribute
from davinci.mlir import Op, ir
from davinci.passes.cce_to_hir.blocks import wait_for_vectors
from davinci.passes.cce_to_hir.operations import build
from davinci.passes.cce_to_hir.pieces import in_pieces
from davinci.passes.cce_to_hir.room import FreeRoom
from davinci.passes.cce_to_hir.views import is_dense, without_repeats
from davinci.units import BLOCK_BYTES, BYTE_BITS


def choose(
    op: Op,
    operands: Sequence[ir.Value],
    room: FreeRoom,
    move: Callable[[ir.Value, ir.Value], None],
) -> None:
    """dst = predicate(a, b) ? x : y by a comparison to bits and a selection. Both take arrays
    without gaps, so what has some, or repeats elements, goes by way of buffers.

    Args:
        room: for bits and buffers.
        move: copies one array in UB into another one.

    Raises:
        NoCounterpart: there is no room for them, or copies cannot move them.
    """
    *sources, target = operands
    distinct = list(dict.fromkeys(operands))
    apart = [value for value in distinct if not is_dense(value)]
    space = ir.MemRefType(target.type).memory_space
    bit, byte = (ir.IntegerType.get_signless(width) for width in (1, BYTE_BITS))
    copied = [ir.MemRefType(value.type).element_type for value in apart]

    def types(shape: Sequence[int]) -> list[ir.MemRefType]:
        dense = [ir.MemRefType.get(shape, element, None, space) for element in (bit, *copied)]
        return [ir.MemRefType.get([BLOCK_BYTES], byte, None, space), *dense]

    def steps(parts: Sequence[ir.Value], buffers: Sequence[ir.Value]) -> None:
        scratch, chosen, *copies = buffers
        given = dict(zip(distinct, parts, strict=True))
        moved = dict(zip(apart, copies, strict=True))
        wait_for_vectors()
        for value in apart:
            if value in sources:
                move(given[value], moved[value])
        a, b, x, y, result = (
            moved[value] if value in moved else without_repeats(given[value])[0]
            for value in operands
        )
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
            move(result, given[target])

    in_pieces(distinct, room, types, steps)
