"""Operators that only move data: copy, slice, concat."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from davinci.dialects.base import attribute
from davinci.passes.ascend_to_cce import Target, lowering
from davinci.passes.ascend_to_cce.moves import Array, move, shape_of, whole
from davinci.passes.ascend_to_cce.tiles import Part, share_blocks
from davinci.passes.ascend_to_cce.word_moves import move_words
from davinci.passes.builder import row_major
from davinci.schedule.word_moves import Box, Move


@lowering("copy")
def lower_copy(operation: Any, target: Target) -> int:
    """dst = src."""
    source, result = operation.operands
    parts = move(whole(source), whole(result), shape_of(result), target, operation)
    return share_blocks(parts, target)


@lowering("slice")
def lower_slice(operation: Any, target: Target) -> int:
    """dst[i] = src[starts[i] + i * strides[i]]."""
    source, result = operation.operands
    starts = attribute(operation, "starts")
    steps = attribute(operation, "strides")
    strides = row_major(shape_of(source))
    offset = sum(a * s for a, s in zip(starts, strides, strict=True))
    stepped = tuple(a * s for a, s in zip(steps, strides, strict=True))
    view = Array(source, stepped, offset)
    return share_blocks(move(view, whole(result), shape_of(result), target, operation), target)


def has_short_rows(sources: Sequence[Any], dim: int, target: Target) -> bool:
    """Whether what an operand has together is less than a block."""
    rows = [math.prod(shape_of(v)[dim:]) * whole(v).itemsize for v in sources]
    return 0 < min(rows) < target.machine.vector.block_bytes


def joined_rows(shapes: Sequence[Sequence[int]], dim: int, itemsize: int) -> Move:
    """A concatenation as rows of the operands' rows."""
    outer = math.prod(shapes[0][:dim])
    boxes, start = [], 0
    for shape in shapes:
        row = math.prod(shape[dim:])
        boxes.append(Box((0, start), (outer, row), (1, 1), (row, 1), 0, outer * row))
        start += row
    return Move((outer, start), tuple(boxes), itemsize)


@lowering("concat")
def lower_concat(operation: Any, target: Target) -> int:
    """Each operand to its place along `dim`."""
    *sources, result = operation.operands
    dim = attribute(operation, "dim")
    strides = row_major(shape_of(result))
    if has_short_rows(sources, dim, target):
        work = joined_rows([shape_of(v) for v in sources], dim, whole(result).itemsize)
        if short := move_words(work, sources, result, target):
            return share_blocks(short, target)
    parts: list[Part] = []
    position = 0
    for source in sources:
        shape = shape_of(source)
        if 0 not in shape:
            place = Array(result, strides, position * strides[dim])
            parts += move(whole(source), place, shape, target, operation)
        position += shape[dim]
    return share_blocks(parts, target)
