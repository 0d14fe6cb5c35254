"""The matrix unit: fractals into L0A and L0B, and mad."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import buffer_of
from davinci.dialects.cce.columns import ColumnsOfFractals
from davinci.dialects.cce.instructions import LOADS, RECTANGLE_LOADS
from davinci.isa.cube import K_ALIGN
from davinci.isa.strides import SharedDim, merge_dims
from davinci.machine.views import loads_rectangles
from davinci.mlir import Op, arith, ir
from davinci.passes.cce_to_hivm import lowering
from davinci.passes.cce_to_hivm.addresses import Address, Shift
from davinci.passes.cce_to_hivm.copies import cut
from davinci.passes.cce_to_hivm.emitter import Emitter, is_constant, move
from davinci.passes.pipeline.base import fail
from davinci.units import FRACTAL_SIDE as SIDE


@lowering("load2d")
def lower_load2d(emitter: Emitter, op: Op) -> None:
    """The repeat walks one dimension of fractals, a loop the other; one instruction if they merge.

    The destination is contiguous, so only the innermost dimension can be the repeat. Columns of
    fractals to L0A, and to L0B if they are transposed, are one instruction where loads of windows
    take rectangles.
    """
    src, dst = (buffer_of(v) for v in op.operands)
    image = ColumnsOfFractals.of(src, dst, bool(attribute(op, "transpose", False)))
    if image is not None and loads_rectangles(emitter.machine, image.space, image.dtype):
        load_image(emitter, op, image)
        return
    record = emitter.record(op, LOADS[dst.space], src.dtype)
    fractal = SIDE * src.block
    dims = merge_dims(src.shape[:2], [src.strides[:2], dst.strides[:2]])
    inner = dims.pop() if dims else SharedDim(1, (fractal, fractal))
    stride = inner.strides[0] // fractal
    most = {f.name: f.limit for f in record.fields}
    if stride > most["src_stride"]:
        fail(
            op,
            "source stride too large",
            found=f"{stride} fractals",
            expected=f"at most {most['src_stride']}",
        )
    transpose = int(attribute(op, "transpose", False))
    start = [emitter.addresses.of(v) for v in op.operands]
    sizes = (src.itemsize, dst.itemsize)
    for begin, count in cut(inner.size, most["repeat"]):
        fields = {"start_index": 0, "src_stride": stride, "transpose": transpose, "repeat": count}
        at = move(start, [Shift(begin * s * n) for s, n in zip(inner.strides, sizes, strict=True)])

        def body(addresses: Sequence[Address], fields: dict[str, int] = fields) -> None:
            source, destination = addresses
            emitter.instruction(record, [destination, source], fields)

        emitter.loops(dims, sizes, at, body)


def load_image(emitter: Emitter, op: Op, image: ColumnsOfFractals) -> None:
    """Windows of one pixel each, all of them, of the channels of all columns."""
    record = emitter.record(op, RECTANGLE_LOADS[image.space], image.dtype)
    source, target = (emitter.addresses.of(value) for value in op.operands)
    pads = dict.fromkeys(("pad_left", "pad_right", "pad_top", "pad_bottom"), 0)
    emitter.set_image({"l1_w": image.pitch * SIDE, "l1_h": 1, **pads})
    fields = {field.name: field.minimum for field in record.fields}
    fields |= {"m_extension": image.pixels * SIDE, "k_extension": image.channels * SIDE}
    if image.space == "L0A":
        fields["transpose"] = int(image.transpose)
    emitter.instruction(record, [target, source], fields)


@lowering("mad")
def lower_mad(emitter: Emitter, op: Op) -> None:
    """One instruction; `init` is a field if it is known, else computed into it."""
    a, b, c, init = list(op.operands)
    known, i64 = is_constant(init), ir.IntegerType.get_signless(64)
    began = arith.ExtUIOp(i64, init).result if known is None else int(bool(known))
    emit_mad(emitter, op, "mad", [c, a, b], {"init": began})


@lowering("mad_bias")
def lower_mad_bias(emitter: Emitter, op: Op) -> None:
    """One instruction."""
    a, b, bias, c = list(op.operands)
    emit_mad(emitter, op, "mad_bias", [c, a, b, bias], {})


def emit_mad(
    emitter: Emitter,
    op: Op,
    name: str,
    operands: Sequence[ir.Value],
    fields: Mapping[str, int | ir.Value],
) -> None:
    """The instruction of a product.

    Args:
        name: of the instruction.
        operands: C, A, B and what else it takes.
        fields: besides its sizes.
    """
    result, left, right = (buffer_of(value) for value in operands[:3])
    inputs = left.dtype if left.dtype == right.dtype else left.dtype + right.dtype
    record = emitter.record(op, name, f"{inputs}2{result.dtype}")
    sizes = {
        "m": left.shape[0] * left.shape[2],
        "k": left.shape[1] * left.block,
        "n": right.shape[1] * SIDE,
    }
    if K_ALIGN in record.fields:  # rows of fractals in L0A have no gaps
        sizes[K_ALIGN.name] = 0
    emitter.instruction(record, [emitter.addresses.of(v) for v in operands], {**sizes, **fields})
