"""vnchwconv: 16 + 16 row addresses go to VA registers, then one instruction transposes."""

from __future__ import annotations

import itertools
from typing import Any

from davinci.dialects.cce.buffers import BufferView, buffer_of
from davinci.dialects.hivm import ops as hivm
from davinci.isa.transpose import HALF_ROWS, ROWS
from davinci.mlir import Op, arith
from davinci.passes.cce_to_hivm import lowering
from davinci.passes.cce_to_hivm.addresses import Address, Shift, constant_i64
from davinci.passes.cce_to_hivm.copies import cut
from davinci.passes.cce_to_hivm.emitter import Emitter
from davinci.passes.pipeline.base import fail
from davinci.units import BLOCK_BYTES

DST_VA, SRC_VA = 0, 2
"""First of the two VA registers of each side."""


@lowering("vnchwconv")
def lower_vnchwconv(emitter: Emitter, op: Op) -> None:
    """The dimension before the last becomes the repeat, cut where its field ends."""
    src, dst = (buffer_of(v) for v in op.operands)
    record = emitter.record(op, "scatter_vnchwconv", "b16")
    most = {f.name: f.limit for f in record.fields}
    strides = [b.strides[-2] * b.itemsize // BLOCK_BYTES for b in (src, dst)]
    repeats = src.shape[-2]
    limit = most["repeat"]
    if repeats > 1 and max(strides) > most["src_stride"]:
        fail(op, "stride of repeats too large", found=f"{max(strides)} blocks")
    for begin, count in cut(repeats, limit):
        for value, buffer, first in ((op.operands[1], dst, DST_VA), (op.operands[0], src, SRC_VA)):
            offset = begin * buffer.strides[-2] * buffer.itemsize
            start = emitter.addresses.of(value).plus(Shift(offset))
            emitter.require_aligned(f"row address of {record.mnemonic}", start, BLOCK_BYTES)
            set_rows(start, buffer, first)
        fields = {
            "dst_va0": DST_VA,
            "dst_va1": DST_VA + 1,
            "src_va0": SRC_VA,
            "src_va1": SRC_VA + 1,
            "src_stride": strides[0] if count > 1 else 0,
            "dst_stride": strides[1] if count > 1 else 0,
            "repeat": count,
        }
        emitter.instruction(record, [], fields)


def set_rows(start: Address, buffer: BufferView, va: int) -> None:
    """Writes the addresses of the 16 rows of `buffer` to the VA registers `va` and `va + 1`.

    Addresses count 32-byte blocks. A dynamic part is divided once, then rows add to it.
    """
    steps = [stride * buffer.itemsize // BLOCK_BYTES for stride in buffer.strides[:-2]]
    distances = [
        sum(index * step for index, step in zip(place, steps, strict=True))
        for place in itertools.product(*map(range, buffer.shape[:-2]))
    ]
    constant, dynamic = start.shift.constant // BLOCK_BYTES, start.shift.dynamic
    if dynamic is not None:
        dynamic = arith.ShRUIOp(dynamic, constant_i64(BLOCK_BYTES.bit_length() - 1)).result
    for i in range(0, ROWS, HALF_ROWS):
        fields: dict[str, Any] = {"va": va + i // (2 * HALF_ROWS), "half": i // HALF_ROWS % 2}
        for j in range(HALF_ROWS):
            row = constant + distances[i + j]
            fields[f"address{j}"] = (
                row if dynamic is None else arith.AddIOp(dynamic, constant_i64(row)).result
            )
        hivm.build("set_va_reg", "", [], fields)
