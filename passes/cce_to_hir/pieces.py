"""Operations of several steps, piece by piece where UB has no room for all that is in between."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from davinci.dialects.cce.buffers import buffer_of
from davinci.mlir import ir
from davinci.passes import builder
from davinci.passes.builder import IndexLike
from davinci.passes.cce_to_hir.operations import NoCounterpart
from davinci.passes.cce_to_hir.room import FreeRoom

Types = Callable[[Sequence[int]], list[ir.MemRefType]]
"""The buffers that an operation needs between its steps, by the shape of its result."""

Steps = Callable[[Sequence[ir.Value], Sequence[ir.Value]], None]
"""Builds the steps of an operation on these operands, with these buffers in between."""


def in_pieces(operands: Sequence[ir.Value], room: FreeRoom, types: Types, steps: Steps) -> None:
    """Builds an operation element by element, whose operands have one shape: at once, or in loops
    over pieces of whole blocks that are as large as UB has room for.

    Raises:
        NoCounterpart: there is no room for a block.
    """
    shape = list(ir.MemRefType(operands[-1].type).shape)
    if room.holds(types(shape)):
        steps(operands, room.several(types(shape)))
        return
    block = max(buffer_of(value).block for value in operands)
    cut, most = largest_piece(shape, block, lambda part: room.holds(types(part)))
    count, rest = divmod(shape[cut], most)
    with ExitStack() as loops:
        places: list[IndexLike] = [
            loops.enter_context(builder.for_loop(0, size)) if size > 1 else 0
            for size in shape[:cut]
        ]

        def build(start: IndexLike, size: int) -> None:
            offsets = [*places, start, *(0 for _ in shape[cut + 1 :])]
            sizes = [*(1 for _ in places), size, *shape[cut + 1 :]]
            drop = range(cut)
            parts = [builder.subview(value, offsets, sizes, drop=drop) for value in operands]
            steps(parts, room.several(types(sizes[cut:])))

        with builder.for_loop(0, count * most, most) as start:
            build(start, most)
        if rest:
            build(count * most, rest)


def largest_piece(
    shape: Sequence[int], block: int, fits: Callable[[Sequence[int]], bool]
) -> tuple[int, int]:
    """The dimension along which an array is cut, and how many indices of it a piece has that is as
    large as fits. In front of it pieces have one index, behind it all; along the last dimension
    they end with a block.

    Args:
        shape: of the array.
        block: elements of its last dimension in 32 bytes of each operand.
        fits: whether an array of this shape does.

    Raises:
        NoCounterpart: a block does not fit.
    """
    last = len(shape) - 1
    for dim, size in enumerate(shape):
        unit = block if dim == last else 1
        units = range(1, math.ceil(size / unit))
        inner = shape[dim + 1 :]
        found = bisect_right(units, False, key=lambda n: not fits([n * unit, *inner]))
        if found:
            return dim, found * unit
    raise NoCounterpart("an operation of several steps without room for what is between")
