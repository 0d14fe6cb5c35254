"""Operators that only move data: copy, slice, concat."""

from __future__ import annotations

from typing import Any

from davinci.dialects.base import attribute
from davinci.passes.ascend_to_cce import Target, lowering
from davinci.passes.ascend_to_cce.moves import Array, move, shape_of, whole
from davinci.passes.ascend_to_cce.tiles import Part, share_blocks
from davinci.passes.builder import row_major


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


@lowering("concat")
def lower_concat(operation: Any, target: Target) -> int:
    """Each operand to its place along `dim`."""
    *sources, result = operation.operands
    dim = attribute(operation, "dim")
    strides = row_major(shape_of(result))
    parts: list[Part] = []
    position = 0
    for source in sources:
        shape = shape_of(source)
        if 0 not in shape:
            place = Array(result, strides, position * strides[dim])
            parts += move(whole(source), place, shape, target, operation)
        position += shape[dim]
    return share_blocks(parts, target)
