"""Reductions: add, max, min or mul over any dimensions.

Dimensions are merged to runs of kept and reduced ones. Where the last is kept, tiles of the reduced
dimension are loaded and combined with whole-vector operations:

    acc = src[outer, rows 0 .. r, portion]; for further rows: acc = op(acc, src[..]); fold acc

Where the last is reduced, see `reduce_rows`. Sums and products of f16 are accumulated in f32: what
was loaded is converted, and what is left at the end converted back. Kept runs shorter than a
32-byte block, and types without vector instructions, are left to the scalar unit.
"""

from __future__ import annotations

import math
from typing import Any

from davinci.dialects.base import attribute
from davinci.mlir import arith, ir, memref, scf
from davinci.operators import OPERATORS
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.moves import (
    Array,
    blocks_of_run,
    mark_scalar,
    move,
    shape_of,
    whole,
)
from davinci.passes.ascend_to_cce.portions import LEAST_BYTES, cut, portion_parts
from davinci.passes.ascend_to_cce.reduce_rows import Rows, reduce_rows
from davinci.passes.ascend_to_cce.reduction import (
    Axis,
    accumulator,
    combine,
    fold_rows,
    neutral,
    scalar_op,
    widened,
)
from davinci.passes.ascend_to_cce.tiles import Part, share_blocks, unflatten
from davinci.passes.builder import (
    IndexLike,
    add,
    alloc,
    as_value,
    for_loop,
    mul,
    op,
    row_major,
    subview,
)


def lower_reduce(operation: Any, target: Target) -> int:
    """dst = kind over the dimensions `dims` of src."""
    source, result = operation.operands
    kind = attribute(operation, "kind")
    axes = axes_of(shape_of(source), attribute(operation, "dims"))
    reduced = [a for a in axes if not a.kept]
    kept = [a for a in axes if a.kept]
    if not reduced:
        shape = [a.size for a in kept]
        array = Array(source, row_major(shape))
        parts = move(array, Array(result, row_major(shape)), shape, target, operation)
        return share_blocks(parts, target)
    block = target.machine.vector.block_bytes // whole(source).itemsize
    if str(whole(source).element) not in OPERATORS["reduce"].types:
        return share_blocks(by_scalars(operation, kind, kept, reduced), target)
    if axes[-1].kept and kept[-1].size >= block:
        return share_blocks(columns(whole(source), result, kind, kept, reduced, target), target)
    rows = Rows.of(kept, reduced, block)
    if rows is None or axes[-1].kept:
        return share_blocks(by_scalars(operation, kind, kept, reduced), target)
    return share_blocks(reduce_rows(whole(source), result, kind, rows, target), target)


def axes_of(shape: list[int], dims: list[int]) -> list[Axis]:
    """The dimensions of a contiguous array, neighbours that share a fate merged."""
    axes: list[Axis] = []
    for i, (size, stride) in enumerate(zip(shape, row_major(shape), strict=True)):
        if size == 1:
            continue
        kept = i not in dims
        if axes and axes[-1].kept == kept:
            axes[-1] = Axis(axes[-1].size * size, stride, kept)
        else:
            axes.append(Axis(size, stride, kept))
    return axes


def columns(
    source: Array, result: Any, kind: str, kept: list[Axis], reduced: list[Axis], target: Target
) -> list[Part]:
    """Reductions that keep the last dimension: portions of it are accumulated over all others."""
    *outer, last = kept
    *loops, inner = reduced
    itemsize = source.itemsize
    block = target.machine.vector.block_bytes // itemsize
    held = accumulator(kind, source.element)
    wider = held != source.element
    # Of an element: the accumulator, what is added to it and, if it was converted, what was loaded.
    room = target.machine.buffers.UB.bytes // (5 * itemsize if wider else 2 * itemsize)
    times = math.prod(a.size for a in outer)
    cores = -(-target.cores // times)
    portions = cut(last.size, block, block, room // 2, LEAST_BYTES // itemsize, cores)
    width = -(-portions.largest // block) * block
    tall = min(inner.size, room // width)
    steps, rest = divmod(inner.size, tall)
    loop_sizes = [*(a.size for a in loops), steps]
    acc = alloc([tall, width], held, "UB")
    more = math.prod(loop_sizes) > 1 or rest > 0
    temporary = alloc([tall, width], held, "UB") if more else None
    staging = alloc([tall, width], source.element, "UB") if wider else None
    axes = [*outer, *loops, inner, last]
    gm = source.view([a.size for a in axes], [a.stride for a in axes])
    out = whole(result).view([times, last.size], [last.size, 1])
    drop = list(range(len(axes) - 2))

    def build(repetition: IndexLike, start: IndexLike, size: int) -> None:
        for first, count in blocks_of_run(size, block):
            accumulate(repetition, add(start, first), count)

    def accumulate(repetition: IndexLike, start: IndexLike, count: int) -> None:
        outside = unflatten(repetition, [a.size for a in outer])

        def load(buffer: Any, at: list[IndexLike], first: IndexLike, rows: int) -> Any:
            ub = subview(buffer, [0, 0], [rows, count])
            loaded = subview(staging, [0, 0], [rows, count]) if wider else None
            shape = [*[1] * len(drop), rows, count]
            gm_rows = subview(gm, [*outside, *at, first, start], shape, drop=drop)
            op("cce.copy", [gm_rows, loaded if wider else ub])
            return widened(loaded, ub)

        def step(index: IndexLike) -> None:
            *at, position = unflatten(index, loop_sizes)
            combine(kind, total, load(temporary, at, mul(position, tall), tall))

        total = load(acc, [0] * len(loops), 0, tall)
        if math.prod(loop_sizes) > 1:
            with for_loop(1, math.prod(loop_sizes)) as index:
                step(index)
        if rest:
            sizes = [a.size for a in loops]
            with for_loop(0, math.prod(sizes)) as index:
                tail = load(temporary, unflatten(index, sizes), steps * tall, rest)
                combine(kind, subview(acc, [0, 0], [rest, count]), tail)
        fold_rows(kind, acc, tall, count)
        place = subview(out, [repetition, start], [1, count], drop=[0])
        total = subview(acc, [0, 0], [1, count], drop=[0])
        if wider:
            narrow = subview(staging, [0, 0], [1, count], drop=[0])
            op("cce.vconv", [total, narrow])
            total = narrow
        op("cce.copy", [total, place])

    return portion_parts(portions, build, times)


def by_scalars(operation: Any, kind: str, kept: list[Axis], reduced: list[Axis]) -> list[Part]:
    """dst = the elements of src combined one by one, from the neutral element on, all in GM."""
    mark_scalar(operation)
    source, result = operation.operands
    element = whole(source).element
    held = accumulator(kind, element)
    axes = [*kept, *reduced]
    sizes = [a.size for a in kept]
    sizes_inside = [a.size for a in reduced]
    gm = whole(source).view([a.size for a in axes], [a.stride for a in axes])
    out = whole(result).view([math.prod(sizes)], [1])

    def build(row: IndexLike) -> None:
        at = [as_value(row)]
        outside = [as_value(i) for i in unflatten(row, sizes)]
        count = as_value(math.prod(a.size for a in reduced))
        loop = scf.ForOp(as_value(0), count, as_value(1), [neutral(kind, held)])
        with ir.InsertionPoint(loop.body):
            inside = [as_value(i) for i in unflatten(loop.induction_variable, sizes_inside)]
            value = memref.LoadOp(gm, [*outside, *inside]).result
            if held != element:
                value = arith.ExtFOp(held, value).result
            scf.YieldOp([scalar_op(kind, loop.inner_iter_args[0], value)])
        total = loop.results[0]
        if held != element:
            total = arith.TruncFOp(element, total).result
        memref.StoreOp(total, out, at)

    return [Part(math.prod(sizes), build)]
