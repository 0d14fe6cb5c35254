"""Fills of the rows that a matrix lacks of its last fractals, as AscendNPU-IR has them.

before:
    "cce.nd2nz"(%rows, %l1) : (memref<40x96xf16>, memref<6x40x16xf16, strided<[768, 16, 1]>, L1>)
    "cce.clear_l1"(%rest) : (memref<6x128xf16, strided<[768, 1], offset: 640>, L1>)
after:
    "cce.clear_l1"(%all) : (memref<1x4608xf16, strided<[4608, 1]>, L1>)
    "cce.nd2nz"(%rows, %l1) : ..

There a fill of L1 is one run, so that one for each column of fractals would take its place. Where
there are many, one of the whole buffer takes less, though the rows wait for its end.
"""

from __future__ import annotations

from davinci.dialects.cce import build as cce
from davinci.dialects.cce.buffers import buffer_of
from davinci.machine import Machine, prices
from davinci.mlir import Op, ir, operations
from davinci.passes import builder
from davinci.passes.analysis.lifetimes import viewed_buffer
from davinci.passes.cce_to_hir.loaded_fractals import written


def fill_in_front(kernel: Op, machine: Machine) -> None:
    """Fills columns of fractals as a whole, in front of their rows, where that takes less than a
    fill for each."""
    port = prices.reading(machine, to_l1=True)
    for clear in operations(kernel, "cce.clear_l1"):
        rows = rows_beside(clear)
        if rows is None:
            continue
        view, runs = buffer_of(rows.operands[1]), buffer_of(clear.operands[0])
        size = view.shape[0] * view.strides[0]
        apart = runs.shape[0] * port.issue_cycles + runs.size * runs.itemsize / port.bytes_per_cycle
        if port.issue_cycles + port.result(size * view.itemsize) >= apart:
            continue
        with ir.InsertionPoint(rows), clear.location:
            source = rows.operands[1].owner.operands[0]
            whole = builder.restride(source, [1, size], [size, 1], view.offset or 0)
            cce.clear_l1(whole)
        clear.erase()


def rows_beside(clear: Op) -> ir.Operation | None:
    """The operation that has written the rows above those that a fill of several runs of zeros
    writes; None if another one wrote there since, or they are not all of its columns."""
    runs = buffer_of(clear.operands[0])
    buffer = viewed_buffer(clear.operands[0])
    if runs.shape[0] == 1 or "bits" in clear.attributes:
        return None
    line = [view.operation for view in clear.operation.block.operations]
    before = line[: line.index(clear.operation)]
    last = next((op for op in reversed(before) if buffer in writers_within(op)), None)
    if last is None or last.name != "cce.nd2nz":
        return None
    view = buffer_of(last.operands[1])
    columns, rows, lanes = view.shape
    if view.offset is None or runs.offset is None:
        return None
    end = runs.offset - view.offset + runs.shape[1]
    beside = (runs.shape[0], runs.strides[0], end) == (columns, view.strides[0], view.strides[0])
    return last if beside and runs.offset - view.offset == rows * lanes else None


def writers_within(op: Op) -> set[ir.Value]:
    """The buffers that an operation, or one in it, writes to."""
    return {buffer for inner in operations(op) for buffer in written(inner)}
