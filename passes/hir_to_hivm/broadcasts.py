"""Arrays filled with a number, with one of their rows, or with the numbers from one on."""

from __future__ import annotations

from davinci.isa import Pipe, Space
from davinci.mlir import Op, arith, ir
from davinci.passes import builder
from davinci.passes.cce_to_hivm.addresses import Shift
from davinci.passes.hir_to_hivm import lowering
from davinci.passes.hir_to_hivm.elementwise import (
    along,
    bits_of,
    broadcast_rows,
    fill,
    issue,
    issue_with_blocks,
)
from davinci.passes.hir_to_hivm.products import fill_fractals
from davinci.passes.hir_to_hivm.transfers import element_type, words_of
from davinci.passes.hir_to_hivm.translator import Translator, Unsupported
from davinci.passes.hir_to_hivm.views import MemrefView
from davinci.units import BLOCK_BYTES


@lowering("vbrc")
def lower_broadcast(translator: Translator, op: Op) -> None:
    """A scalar everywhere, or an array along the dimensions in which it has one element."""
    source, target, *rest = list(op.operands)
    dst = translator.view(op, target)
    if not translator.is_array(source):
        if dst.kind == "i1":
            raise Unsupported("vbrc of a boolean")
        if dst.itemsize == 8:
            raise Unsupported("vbrc of 64 bits")
        if dst.space is Space.L1:
            fill_fractals(translator, dst, bits_of(source))
            return
        fill(translator, dst, bits_of(source))
        return
    src = translator.view(op, source)
    record = translator.record("vcopy", words_of(dst))
    if src.sizes[-1] == 1 and dst.sizes[-1] != 1:
        scratch = translator.view(op, rest[0]) if rest else None
        if scratch is None:
            raise Unsupported("vbrc along the last dimension without a buffer for it")
        blocks, steps = broadcast_rows(translator, along(src, [*dst.sizes[:-1], 1]), scratch)
        issue_with_blocks(translator, record, [dst, blocks], {1: steps})
        return
    issue(translator, record, [dst, along(src, dst.sizes)])


@lowering("varange")
def lower_arange(translator: Translator, op: Op) -> None:
    """dst[i, j] = offset + i * stride0 + j * stride1.

    The scalar unit writes the first block; the vector unit adds to what there is until the row is
    full. Other rows are the first one, with a number added.
    """
    targets, offsets, strides = translator.groups(op)
    dst = translator.view(op, targets[0])
    if not dst.static or dst.kind not in ("s16", "s32", "f16", "f32"):
        raise Unsupported(f"varange of {dst.kind} of a size that the program computes")
    *outer, count = dst.shape
    if dst.steps[-1] != 1 or len(outer) > 1:
        raise Unsupported("varange of elements apart, or of more than two dimensions")
    kind = element_type(dst.kind)
    step = strides[-1]
    first: ir.Value = offsets[0] if offsets else builder.constant_index(0)
    lanes = BLOCK_BYTES // dst.itemsize
    translator.hand_over(Pipe.V, Pipe.S)
    for i in range(min(lanes, count)):
        moved = arith.AddIOp(first, builder.as_value(builder.mul(step, i))).result
        translator.store(dst, Shift(i * dst.itemsize), number(moved, kind))
    translator.hand_over(Pipe.S, Pipe.V)
    record = translator.record("vadds", dst.kind)
    done = min(lanes, count)

    def part(begin: int, size: int) -> MemrefView:
        shift = Shift(begin * dst.itemsize)
        return MemrefView(dst.root, dst.shift.plus(shift), (size,), (1,), dst.kind)

    while done < count:
        more = min(done, count - done)
        added = number(builder.as_value(builder.mul(step, done)), kind)
        issue(translator, record, [part(done, more), part(0, more)], {"value": bits_of(added)})
        translator.barrier()
        done += more
    for row in range(1, outer[0] if outer else 1):
        shift = row * dst.steps[0]
        added = number(builder.as_value(builder.mul(strides[0], row)), kind)
        target = part(shift, count)
        issue(translator, record, [target, part(0, count)], {"value": bits_of(added)})


def number(index: ir.Value, kind: ir.Type) -> ir.Value:
    """An index as an element of an array."""
    wide = arith.IndexCastOp(ir.IntegerType.get_signless(32), index).result
    if isinstance(kind, ir.IntegerType):
        return wide if kind.width == 32 else arith.TruncIOp(kind, wide).result
    return arith.SIToFPOp(kind, wide).result
