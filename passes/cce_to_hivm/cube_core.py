"""What goes into L1 and out of L0C on a core without a vector unit."""

from __future__ import annotations

from collections.abc import Sequence

from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import buffer_of
from davinci.dialects.cce.instructions import NAMES, SCALED_TYPES
from davinci.dialects.hivm import ops as hivm
from davinci.isa.strides import SharedDim
from davinci.mlir import Op, ir
from davinci.passes.cce_to_hivm import lowering
from davinci.passes.cce_to_hivm.addresses import Address, Shift
from davinci.passes.cce_to_hivm.copies import cut
from davinci.passes.cce_to_hivm.emitter import Emitter, is_constant, move
from davinci.units import BLOCK_BYTES
from davinci.units import FRACTAL_SIDE as SIDE


@lowering("nd2nz")
def lower_nd2nz(emitter: Emitter, op: Op) -> None:
    """One instruction; one for each row where rows of GM lie too far apart."""
    src, dst = (buffer_of(value) for value in op.operands)
    record = emitter.record(op, NAMES["nd2nz"], f"b{8 * dst.itemsize}")
    most = {field.name: field.limit for field in record.fields}
    rows, columns = src.shape
    apart = src.strides[0] if rows > 1 else columns
    together = rows if apart <= most["src_d_value"] else 1
    steps = SharedDim(rows // together, (src.strides[0], dst.strides[1]))
    start = [emitter.addresses.of(value) for value in op.operands]
    sizes = (src.itemsize, dst.itemsize)
    block = BLOCK_BYTES // dst.itemsize
    for first, width in cut(columns, most["d_value"] // block * block):
        shifts = (first * src.itemsize, first // block * dst.strides[0] * dst.itemsize)
        fields = {
            "nd_num": 1,
            "n_value": together,
            "d_value": width,
            "src_nd_matrix_stride": 0,
            "src_d_value": apart if together > 1 else min(apart, most["src_d_value"]),
            "dst_nz_c0_stride": dst.strides[0] // block if columns > block else 1,
            "dst_nz_n_stride": dst.strides[1] // block if together > 1 else 1,
            "dst_nz_matrix_stride": 0,
        }

        def body(addresses: Sequence[Address], fields: dict[str, int] = fields) -> None:
            source, target = addresses
            emitter.instruction(record, [target, source], fields)

        at = move(start, [Shift(shift) for shift in shifts])
        emitter.loops([steps] if steps.size > 1 else [], sizes, at, body)


@lowering("clear_l1")
def lower_clear_l1(emitter: Emitter, op: Op) -> None:
    """One instruction, whose bursts are the runs."""
    (target,) = op.operands
    dst = buffer_of(target)
    record = emitter.record(op, NAMES["clear_l1"], f"b{8 * dst.itemsize}")
    block = BLOCK_BYTES // dst.itemsize
    runs, size = dst.shape
    fields = {
        "n_burst": runs,
        "len_burst": size // block,
        "dst_gap": (dst.strides[0] - size) // block if runs > 1 else 0,
        "value": attribute(op, "bits", 0),
    }
    emitter.instruction(record, [emitter.addresses.of(target)], fields)


@lowering("fixpipe")
def lower_fixpipe(emitter: Emitter, op: Op) -> None:
    """One instruction, for rows or for fractals."""
    source, target = op.operands
    src, dst = buffer_of(source), buffer_of(target)
    kind = src.dtype if src.dtype == dst.dtype else f"{src.dtype}2{dst.dtype}"
    emit_fixpipe(emitter, op, kind)


@lowering("fixpipe_scaled")
def lower_fixpipe_scaled(emitter: Emitter, op: Op) -> None:
    """The same, behind what says where its words are: in FB, or in a register that has one."""
    source, words, target = op.operands
    kind = SCALED_TYPES[buffer_of(source).dtype, buffer_of(target).dtype]
    if isinstance(words.type, ir.MemRefType):
        emitter.set_words(emitter.addresses.of(words))
        kind += "v"
    else:
        known = is_constant(words)
        hivm.build("set_quant_pre", "", [], {"bits": words if known is None else known})
    emit_fixpipe(emitter, op, kind)


def emit_fixpipe(emitter: Emitter, op: Op, kind: str) -> None:
    """The instruction by which a matrix leaves L0C.

    Args:
        kind: the type of its record.
    """
    source, target = op.operands[0], op.operands[len(op.operands) - 1]
    src, dst = buffer_of(source), buffer_of(target)
    record = emitter.record(op, "fixpipe", kind)
    n1, m1 = src.shape[:2]
    if len(dst.shape) == 2:
        (rows, columns), stride = dst.shape, dst.strides[0]
        stride = stride if rows > 1 else columns
    else:
        rows = dst.shape[1] if len(dst.shape) == 3 else m1 * SIDE
        columns = n1 * SIDE
        stride = dst.strides[0] * dst.itemsize // BLOCK_BYTES if dst.shape[0] > 1 else 0
    fields = {
        "n_size": columns,
        "m_size": rows,
        "dst_stride": stride,
        "src_stride": src.strides[0] // SIDE if n1 > 1 else m1 * SIDE,
        "relu": int(attribute(op, "relu", False)),
        "nz2nd": int(len(dst.shape) == 2),
    }
    addresses = [emitter.addresses.of(value) for value in (target, source)]
    emitter.instruction(record, addresses, fields)
