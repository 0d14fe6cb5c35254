"""Blocks of 32 bytes of the vector unit: reduced to a number each, and filled with a number."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from davinci.dialects.cce.buffers import BufferView, buffer_of
from davinci.mlir import Op, ir, memref
from davinci.passes.cce_to_hir.operations import NoCounterpart, build

REDUCTIONS = {"vcgadd": "sum", "vcgmax": "max", "vcgmin": "min"}


def reduce_blocks(op: Op, operands: Sequence[ir.Value]) -> None:
    """A reduction along the elements of blocks.

    Raises:
        NoCounterpart: blocks are not equally far apart.
    """
    source, target = operands
    if not evenly_apart(buffer_of(source)):
        raise NoCounterpart(f"{op.name} of blocks that are not equally far apart")
    attributes = {
        "arith": f"#hir.reduce_op<{REDUCTIONS[op.name.removeprefix('cce.')]}>",
        "reduce_dims": "array<i64: 2>",
        "operandSegmentSizes": "array<i32: 1, 1, 0, 0>",
    }
    build("vreduce", attributes, [source, with_last(target)])


def fill_blocks(op: Op, operands: Sequence[ir.Value], buffer: Callable[[int], ir.Value]) -> None:
    """A broadcast along the elements of blocks, by way of a buffer.

    Args:
        buffer: gives one of so many elements.
    """
    source, target = operands
    view = buffer_of(target)
    dims = {"broadcast_dims": "array<i64: 2>"}
    build("vbrc", dims, [with_last(source), target, buffer(view.size)])


def evenly_apart(view: BufferView) -> bool:
    """Whether all rows of a view are equally far apart."""
    first, second = view.strides[:2]
    return view.shape[0] == 1 or first == view.shape[1] * second


def with_last(value: ir.Value) -> ir.Value:
    """A contiguous view [r, n] as [r, n, 1]."""
    kind = ir.MemRefType(value.type)
    layout = None
    if isinstance(kind.layout, ir.StridedLayoutAttr):
        strides, offset = kind.get_strides_and_offset()
        layout = ir.StridedLayoutAttr.get(offset, [*strides, 1])
    shape = [*kind.shape, 1]
    result = ir.MemRefType.get(shape, kind.element_type, layout, kind.memory_space)
    made = memref.ExpandShapeOp(
        result, value, [[0], [1, 2]], output_shape=[], static_output_shape=shape
    )
    return made.result
