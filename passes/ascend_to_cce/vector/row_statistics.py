"""Builds what `davinci.schedule` writes down of rows and their statistics on buffers in UB."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from davinci.mlir import ir
from davinci.passes.ascend_to_cce.vector.program import element_type, scalar
from davinci.passes.builder import alloc, op, restride, subview
from davinci.schedule.vector.row_places import block_lanes
from davinci.schedule.vector.row_tables import doubling
from davinci.schedule.vector.steps import RESULT, BufferSteps, View
from davinci.units import BLOCK_BYTES, REPEAT_BYTES


def scratch_buffers(*works: BufferSteps) -> dict[str, Any]:
    """Allocates the buffers that steps need besides the caller's.

    Works that follow each other on one tile may share them: each writes before it reads.
    """
    sizes: dict[str, int] = {}
    for work in works:
        for name, count in work.scratch.items():
            sizes[name] = max(count, sizes.get(name, 0))
    element = element_type(works[0].dtype)
    return {name: alloc([count], element, "UB") for name, count in sizes.items()}


def build_steps(work: BufferSteps, buffers: Mapping[str, ir.Value]) -> None:
    """Builds the steps.

    Args:
        buffers: in UB, by their names in the steps: each contiguous, at a static place of its
            alloc.
    """
    for step in work.steps:
        operands = [array(buffers, view) for view in step.operands]
        if step.scalar is not None:
            operands.insert(-1, scalar(work.dtype, step.scalar))
        op(f"cce.{step.name}", operands)


def array(buffers: Mapping[str, ir.Value], view: View) -> ir.Value:
    """A view of one of the buffers."""
    buffer = buffers[view.buffer]
    _, start = ir.MemRefType(buffer.type).get_strides_and_offset()
    assert start != ir.ShapedType.get_dynamic_stride_or_offset(), "a buffer at a dynamic place"
    return restride(buffer, view.shape, view.strides, start + view.offset)


def fill_lanes(dtype: str, rows: ir.Value, first: int, last: int, number: float) -> None:
    """rows[:, first : last] = number, for lanes of any alignment: whole repeats side by side in one
    operation, what is no block at the start and no repeat at the end under masks.

    Args:
        rows: [r, lanes] in UB, contiguous.
    """
    count, lanes = ir.MemRefType(rows.type).shape
    itemsize = ir.MemRefType(rows.type).element_type.width // 8
    block, most = BLOCK_BYTES // itemsize, REPEAT_BYTES // itemsize
    value = scalar(dtype, number)
    start = first // block * block
    while start < last:
        low, high = max(first - start, 0), min(last - start, most)
        whole = 0 if low else (last - start) // most
        if whole > 1:
            window = array({"rows": rows}, View("rows", (count, whole * most), (lanes, 1), start))
            op("cce.vector_dup", [value, window])
            start += whole * most
            continue
        window = array({"rows": rows}, View("rows", (count, high), (lanes, 1), start))
        op("cce.vector_dup", [value, window], first_lane=low, lanes=high - low)
        start += most


def build_table(dtype: str, row: ir.Value, held: ir.Value, moved: bool) -> None:
    """A row of GM to all rows of a buffer; lanes behind its last whole block become 0.

    Args:
        row: [n] in GM, the whole of an argument if n is not whole blocks.
        held: [rows, lanes] in UB, contiguous.
        moved: whether it comes to each row from L1, else by the vector unit (`row_tables`).
    """
    (length,) = ir.MemRefType(row.type).shape
    rows, lanes = ir.MemRefType(held.type).shape
    block = block_lanes(dtype)
    width = math.ceil(length / block) * block
    if moved:
        staged = alloc([width], element_type(dtype), "L1")
        op("cce.copy", [row, restride(staged, [length], [1])], round_up=True)
        repeated = restride(staged, [rows, width], [0, 1])
        op("cce.copy", [repeated, subview(held, [0, 0], [rows, width])])
        if width < lanes:
            fill_lanes(dtype, held, width, lanes, 0)
        return
    first = subview(held, [0, 0], [1, length], drop=[0])
    op("cce.copy", [row, first], round_up=True)
    if width < lanes:
        fill_lanes(dtype, subview(held, [0, 0], [1, lanes]), width, lanes, 0)
    build_steps(doubling(rows, lanes, dtype), {RESULT: held})
