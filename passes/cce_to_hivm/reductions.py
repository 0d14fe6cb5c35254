"""Operations of which a row is a repeat: reductions, fills of lanes, lanes that are repeated; and
gathers of elements."""

from __future__ import annotations

from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import BufferView, buffer_of
from davinci.isa import Instruction
from davinci.isa.vector_plan import FULL_MASK
from davinci.mlir import Op
from davinci.passes.analysis.vector_work import rows_together
from davinci.passes.cce_to_hivm import lowering
from davinci.passes.cce_to_hivm.addresses import Shift
from davinci.passes.cce_to_hivm.copies import cut
from davinci.passes.cce_to_hivm.emitter import Emitter, move
from davinci.passes.pipeline.base import fail
from davinci.units import BLOCK_BYTES, REPEAT_BLOCKS, REPEAT_BYTES


@lowering("vcadd", "vcmax", "vcmin")
def lower_row_reduction(emitter: Emitter, op: Op) -> None:
    """The mask selects the lanes."""
    src, dst = (buffer_of(v) for v in op.operands)
    record = emitter.record(op, op.name.removeprefix("cce."), src.dtype)
    if len(dst.shape) == 2:
        emit_rows(emitter, record, op, lanes_mask(op, src), 1, src.strides[0], 2)
    else:
        distance = dst.strides[0]
        emit_rows(emitter, record, op, lanes_mask(op, src), 1, src.strides[0], 1, distance)


def lower_fill_of_lanes(emitter: Emitter, record: Instruction, op: Op, bits: int) -> None:
    """vector_dup with `lanes`; `bits` are those of the scalar. A repeat fills as many rows as lie
    in it."""
    dst = buffer_of(op.operands[1])
    rows, row_bytes = dst.shape[0], dst.strides[0] * dst.itemsize
    most = {f.name: f.limit for f in record.fields}
    together = rows_together(dst)
    stride = together * row_bytes // BLOCK_BYTES
    apart = stride > most["dst_rep_stride"]
    start, lanes = emitter.addresses.of(op.operands[1]), lanes_mask(op, dst)
    whole = rows // together * together
    for first, last, each in ((0, whole, together), (whole, rows, rows - whole)):
        if first == last:
            continue
        emitter.set_mask(sum(lanes << row * dst.strides[0] for row in range(each)))
        for begin, count in cut((last - first) // each, 1 if apart else most["repeat"]):
            fields = {
                "dst_blk_stride": 1,
                "dst_rep_stride": REPEAT_BLOCKS if apart else stride,
                "repeat": count,
                "value": bits,
            }
            shift = Shift((first + begin * each) * row_bytes)
            emitter.instruction(record, [start.plus(shift)], fields)


def lanes_mask(op: Op, rows: BufferView) -> int:
    """The vector mask of an operation's lanes."""
    first = attribute(op, "first_lane", 0)
    lanes = attribute(op, "lanes", rows.shape[1] - first)
    return ((1 << lanes) - 1) << first if lanes < REPEAT_BLOCKS * rows.block else FULL_MASK


@lowering("vcgadd", "vcgmax", "vcgmin")
def lower_block_reduction(emitter: Emitter, op: Op) -> None:
    src = buffer_of(op.operands[0])
    record = emitter.record(op, op.name.removeprefix("cce."), src.dtype)
    blk_stride = src.strides[1] // src.block
    emit_rows(emitter, record, op, FULL_MASK, blk_stride, src.strides[0], REPEAT_BLOCKS)


@lowering("vbrcb")
def lower_lane_repetition(emitter: Emitter, op: Op) -> None:
    """Eight elements a repeat; instructions begin at whole blocks of these."""
    src, dst = (buffer_of(value) for value in op.operands)
    record = emitter.record(op, "vbrcb", f"b{8 * src.itemsize}")
    fields = {
        "dst_blk_stride": dst.strides[1] // dst.block,
        "dst_rep_stride": dst.strides[0] // dst.block,
    }
    most = {f.name: f.limit for f in record.fields}
    for name, found in fields.items():
        if found > most[name]:
            fail(op, f"{name} too large", found=str(found), expected=f"at most {most[name]}")
    start = [emitter.addresses.of(value) for value in reversed(list(op.operands))]
    widths = dst.strides[0] * dst.itemsize, REPEAT_BLOCKS * src.itemsize
    whole = BLOCK_BYTES // widths[1] or 1
    for begin, count in cut(src.shape[0], most["repeat"] // whole * whole):
        shifts = [Shift(begin * width) for width in widths]
        emitter.instruction(record, move(start, shifts), {**fields, "repeat": count})


@lowering("vgather")
def lower_gather_of_elements(emitter: Emitter, op: Op) -> None:
    """Whole repeats, then one of the lanes that are left."""
    offsets, src, dst = (buffer_of(value) for value in op.operands)
    record = emitter.record(op, "vgather", f"b{8 * src.itemsize}")
    lanes = REPEAT_BYTES // src.itemsize
    most = {f.name: f.limit for f in record.fields}["repeat"]
    at, base, target = (emitter.addresses.of(value) for value in op.operands)
    whole, rest = divmod(dst.size, lanes)
    pieces = [(begin, count, FULL_MASK) for begin, count in cut(whole, most)]
    if rest:
        pieces.append((whole, 1, (1 << rest) - 1))
    for begin, count, mask in pieces:
        emitter.set_mask(mask)
        shifts = [Shift(begin * lanes * size) for size in (src.itemsize, offsets.itemsize, 0)]
        fields = {"dst_rep_stride": REPEAT_BLOCKS, "repeat": count}
        emitter.instruction(record, move([target, at, base], shifts), fields)


def emit_rows(
    emitter: Emitter,
    record: Instruction,
    op: Op,
    mask: int,
    blk_stride: int,
    row_stride: int,
    results: int,
    distance: int = 1,
) -> None:
    """One repeat a row; a stride beyond its field becomes one instruction a row.

    Args:
        row_stride: of the source, in elements.
        results: elements that a row leaves in the destination.
        distance: from the results of a row to those of the next, in units of `results`.
    """
    src = buffer_of(op.operands[0])
    rows = src.shape[0]
    rep_stride = row_stride * src.itemsize // BLOCK_BYTES
    most = {f.name: f.limit for f in record.fields}
    repeat, stride, step = most["repeat"], rep_stride, distance
    if rep_stride > most["src_rep_stride"] or distance > most["dst_rep_stride"]:
        repeat, stride, step = 1, 0, 1
    emitter.set_mask(mask)
    start = [emitter.addresses.of(v) for v in reversed(list(op.operands))]
    widths = (distance * results * src.itemsize, row_stride * src.itemsize)
    for begin, count in cut(rows, repeat):
        fields = {
            "dst_rep_stride": step,
            "src_blk_stride": blk_stride,
            "src_rep_stride": stride,
            "repeat": count,
        }
        emitter.instruction(record, move(start, [Shift(begin * w) for w in widths]), fields)
