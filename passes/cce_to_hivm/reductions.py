"""Reductions inside a repeat: each row of the source is one repeat."""

from __future__ import annotations

from typing import Any

from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import buffer_of
from davinci.isa import Instruction
from davinci.isa.vector_plan import FULL_MASK
from davinci.passes.cce_to_hivm import lowering
from davinci.passes.cce_to_hivm.addresses import Shift
from davinci.passes.cce_to_hivm.copies import cut
from davinci.passes.cce_to_hivm.emitter import Emitter, move
from davinci.units import BLOCK_BYTES, REPEAT_BLOCKS


@lowering("vcadd", "vcmax", "vcmin")
def lower_row_reduction(emitter: Emitter, op: Any) -> None:
    """The mask selects the lanes; results lie one after the other."""
    src, dst = (buffer_of(v) for v in op.operands)
    record = emitter.record(op, op.name.removeprefix("cce."), src.dtype)
    first = attribute(op, "first_lane", 0)
    lanes = attribute(op, "lanes", src.shape[1] - first)
    results = dst.shape[1] if len(dst.shape) == 2 else 1
    mask = ((1 << lanes) - 1) << first if lanes < REPEAT_BLOCKS * src.block else FULL_MASK
    emit_rows(emitter, record, op, mask, 1, src.strides[0], results)


@lowering("vcgadd", "vcgmax", "vcgmin")
def lower_block_reduction(emitter: Emitter, op: Any) -> None:
    src = buffer_of(op.operands[0])
    record = emitter.record(op, op.name.removeprefix("cce."), src.dtype)
    blk_stride = src.strides[1] // src.block
    emit_rows(emitter, record, op, FULL_MASK, blk_stride, src.strides[0], REPEAT_BLOCKS)


def emit_rows(
    emitter: Emitter,
    record: Instruction,
    op: Any,
    mask: int,
    blk_stride: int,
    row_stride: int,
    results: int,
) -> None:
    """One repeat a row; a row stride beyond the field becomes one instruction a row.

    Args:
        row_stride: of the source, in elements.
        results: elements that a row leaves in the destination.
    """
    src = buffer_of(op.operands[0])
    rows = src.shape[0]
    rep_stride = row_stride * src.itemsize // BLOCK_BYTES
    most = {f.name: f.limit for f in record.fields}
    repeat, stride = most["repeat"], rep_stride
    if rep_stride > most["src_rep_stride"]:
        repeat, stride = 1, 0
    emitter.set_mask(mask)
    start = [emitter.addresses.of(v) for v in reversed(list(op.operands))]
    widths = (results * src.itemsize, row_stride * src.itemsize)
    for begin, count in cut(rows, repeat):
        fields = {
            "dst_rep_stride": 1,
            "src_blk_stride": blk_stride,
            "src_rep_stride": stride,
            "repeat": count,
        }
        emitter.instruction(record, move(start, [Shift(begin * w) for w in widths]), fields)
