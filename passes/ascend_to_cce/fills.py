"""Arrays of one value, pad and iota.

pad fills the whole result, then moves the operand into its place; one block does both, in order.
iota stores its numbers from the scalar unit.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from davinci.dialects.base import attribute
from davinci.mlir import arith, ir, memref
from davinci.passes.ascend_to_cce import Target, lowering
from davinci.passes.ascend_to_cce.elementwise import full_value
from davinci.passes.ascend_to_cce.moves import (
    Array,
    copy_rounded,
    mark_scalar,
    move,
    shape_of,
    whole,
)
from davinci.passes.ascend_to_cce.portions import LEAST_BYTES, cut, portion_parts
from davinci.passes.ascend_to_cce.tiles import Part, share_blocks
from davinci.passes.builder import IndexLike, alloc, as_value, for_loop, op, row_major, subview

FILLABLE = ("f16", "f32", "i32", "i16")
"""Element types of vector_dup."""


def fill(result: Any, value: Any, target: Target) -> list[Part]:
    """One value everywhere in a GM buffer: a UB buffer filled once, stored for every portion."""
    array = whole(result)
    total = math.prod(shape_of(result))
    block = target.machine.vector.block_bytes // array.itemsize
    room = target.machine.buffers.UB.bytes // array.itemsize
    portions = cut(total, block, block, room, LEAST_BYTES // array.itemsize, target.cores)
    buffer = alloc([-(-portions.largest // block) * block], array.element, "UB")
    op("cce.vector_dup", [value, buffer])
    out = array.view([total], [1])

    def build(_: IndexLike, start: IndexLike, size: int) -> None:
        ub, gm = subview(buffer, [0], [size]), subview(out, [start], [size])
        copy_rounded(ub, gm, target.machine.vector.block_bytes)

    return portion_parts(portions, build)


@lowering("pad")
def lower_pad(operation: Any, target: Target) -> int:
    """dst[low + i * (interior + 1)] = src[i] where that lies in dst; padding elsewhere."""
    source, padding, result = operation.operands
    alone = replace(target, cores=1)
    element = whole(result).element
    value = padding_value(padding, element)
    if str(element) in FILLABLE:
        share_blocks(fill(result, value, alone), alone)
    else:
        mark_scalar(operation)
        out = whole(result).view([math.prod(shape_of(result))], [1])
        with for_loop(0, math.prod(shape_of(result))) as index:
            memref.StoreOp(value, out, [index])
    shape, first, place, steps = [], 0, 0, []
    sizes = zip(shape_of(source), shape_of(result), strict=True)
    strides = list(zip(row_major(shape_of(source)), row_major(shape_of(result)), strict=True))
    for i, (size, room) in enumerate(sizes):
        low = attribute(operation, "low")[i]
        step = attribute(operation, "interior")[i] + 1
        begin = -(min(low, 0) // step)
        end = min(size, -(-(room - low) // step))
        shape.append(end - begin)
        first += begin * strides[i][0]
        place += (low + begin * step) * strides[i][1]
        steps.append(step * strides[i][1])
    if all(extent > 0 for extent in shape):
        moved = Array(source, row_major(shape_of(source)), first)
        into = Array(result, tuple(steps), place)
        share_blocks(move(moved, into, shape, alone, operation), alone)
    return 1


def padding_value(padding: Any, element: Any) -> Any:
    """The value of pad's rank-0 operand: a constant of the kernel, or loaded from GM."""
    number = full_value(padding)
    if number is None:
        return memref.LoadOp(padding, []).result
    if isinstance(element, ir.FloatType):
        return arith.ConstantOp(element, ir.FloatAttr.get(element, float(number))).result
    return arith.ConstantOp(element, ir.IntegerAttr.get(element, int(number))).result


@lowering("iota")
def lower_iota(operation: Any, target: Target) -> int:
    """dst[.., i, ..] = i along `dim`, from the scalar unit."""
    (result,) = operation.operands
    mark_scalar(operation)
    shape, dim = shape_of(result), attribute(operation, "dim")
    before, size, after = math.prod(shape[:dim]), shape[dim], math.prod(shape[dim + 1 :])
    out = whole(result).view([before, size, after], [size * after, after, 1])
    element = whole(result).element

    def build(index: IndexLike) -> None:
        i64 = ir.IntegerType.get_signless(64)
        number = arith.IndexCastOp(i64, as_value(index)).result
        if isinstance(element, ir.FloatType):
            value = arith.SIToFPOp(element, number).result
        elif element.width < i64.width:
            value = arith.TruncIOp(element, number).result
        else:
            value = number
        with for_loop(0, before) as outer, for_loop(0, after) as inner:
            memref.StoreOp(value, out, [outer, as_value(index), inner])

    return share_blocks([Part(size, build)], target)
