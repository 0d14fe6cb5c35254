"""Arrays of one value, pad and iota.

pad fills the whole result, then moves the operand into its place; one block does both, in order.
iota stores its numbers from the scalar unit.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from davinci.dialects.base import attribute
from davinci.element_types import dtype_of
from davinci.mlir import arith, ir, memref
from davinci.passes.analysis.group_graph import number_of
from davinci.passes.ascend_to_cce import Target, lowering
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
from davinci.passes.ascend_to_cce.word_moves import move_words
from davinci.passes.builder import IndexLike, alloc, as_value, for_loop, op, row_major, subview
from davinci.schedule.word_moves import Box, Move
from davinci.units import ceil_div

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
    box = padded_box(operation)
    element = whole(result).element
    number = number_of(padding)
    if number is not None and all(box.sizes):
        itemsize = whole(source).itemsize
        value = np.asarray(number, dtype_of(str(element)))
        if itemsize == 1:  # which are moved as f16
            value = value.view(np.int8).astype(np.float16)
        bits = int(value.view(f"u{value.itemsize}")[()])
        work = Move(tuple(shape_of(result)), (box,), itemsize, bits)
        if parts := move_words(work, [source], result, target):
            return share_blocks(parts, target)
    alone = replace(target, cores=1)
    filler = padding_value(padding, element)
    if str(element) in FILLABLE:
        share_blocks(fill(result, filler, alone), alone)
    else:
        mark_scalar(operation)
        out = whole(result).view([math.prod(shape_of(result))], [1])
        with for_loop(0, math.prod(shape_of(result))) as index:
            memref.StoreOp(filler, out, [index])
    if all(box.sizes):
        strides = row_major(shape_of(result))
        place = sum(a * s for a, s in zip(box.starts, strides, strict=True))
        apart = tuple(a * s for a, s in zip(box.steps, strides, strict=True))
        moved, into = Array(source, box.strides, box.offset), Array(result, apart, place)
        share_blocks(move(moved, into, box.sizes, alone, operation), alone)
    return 1


def padded_box(operation: Any) -> Box:
    """The part of the operand that lies in the result."""
    source, _, result = operation.operands
    low, interior = attribute(operation, "low"), attribute(operation, "interior")
    strides = row_major(shape_of(source))
    starts, sizes, steps, offset = [], [], [], 0
    for i, (size, room) in enumerate(zip(shape_of(source), shape_of(result), strict=True)):
        step = interior[i] + 1
        begin = -(min(low[i], 0) // step)
        end = min(size, ceil_div(room - low[i], step))
        starts.append(low[i] + begin * step)
        sizes.append(max(0, end - begin))
        steps.append(step)
        offset += begin * strides[i]
    total = math.prod(shape_of(source))
    return Box(tuple(starts), tuple(sizes), tuple(steps), strides, offset, total)


def padding_value(padding: Any, element: Any) -> Any:
    """The value of pad's rank-0 operand: a constant of the kernel, or loaded from GM."""
    number = number_of(padding)
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
