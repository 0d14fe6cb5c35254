"""Flags, barriers and the block number: one instruction each. Scalar loads and stores."""

from __future__ import annotations

from davinci.dialects.base import attribute
from davinci.dialects.hivm import ops as hivm
from davinci.isa import Pipe, Space
from davinci.isa.cross_core import ALL_OF_A_KIND, CUBE_AND_VECTOR_CORES
from davinci.mlir import Op, arith, ir
from davinci.passes import builder
from davinci.passes.cce_to_hivm import lowering
from davinci.passes.cce_to_hivm.addresses import Address, Shift, element_bytes, term
from davinci.passes.cce_to_hivm.emitter import Emitter
from davinci.passes.pipeline.base import fail


@lowering("set_flag", "wait_flag")
def lower_flag(emitter: Emitter, op: Op) -> None:
    fields = {
        "src_pipe": int(Pipe[attribute(op, "src")]),
        "dst_pipe": int(Pipe[attribute(op, "dst")]),
        "event": attribute(op, "event"),
    }
    hivm.build(op.name.removeprefix("cce."), "", [], fields)


@lowering("pipe_barrier")
def lower_barrier(emitter: Emitter, op: Op) -> None:
    hivm.build("pipe_barrier", "", [], {"pipe": int(Pipe[attribute(op, "pipe")])})


@lowering("get_block_idx", "get_block_num", "get_sub_block_idx")
def lower_block_number(emitter: Emitter, op: Op) -> None:
    i64 = ir.IntegerType.get_signless(64)
    built = builder.op(op.name.replace("cce.", "hivm."), [], [i64])
    index = arith.IndexCastOp(ir.IndexType.get(), built.result).result
    op.results[0].replace_all_uses_with(index)


@lowering("set_core_flag")
def lower_set_core_flag(emitter: Emitter, op: Op) -> None:
    fields = {
        "pipe": int(Pipe[attribute(op, "pipe")]),
        "mode": ALL_OF_A_KIND if "of_all" in op.attributes else CUBE_AND_VECTOR_CORES,
        "flag": attribute(op, "flag"),
    }
    hivm.build("ffts_cross_core_sync", "", [], fields)


@lowering("wait_core_flag")
def lower_wait_core_flag(emitter: Emitter, op: Op) -> None:
    hivm.build("wait_flag_dev", "", [], {"flag": attribute(op, "flag")})


def lower_load(emitter: Emitter, op: Op) -> None:
    """memref.load in GM or UB."""
    address = element_address(emitter, op, op.operands[0], list(op.operands)[1:])
    kind = op.results[0].type
    if isinstance(kind, ir.IntegerType):
        kind = ir.IntegerType.get_signless(kind.width)
    built = builder.op("hivm.ld", [address.pointer()], [kind])
    op.results[0].replace_all_uses_with(built.result)


def lower_store(emitter: Emitter, op: Op) -> None:
    """memref.store in GM or UB."""
    value, target, *indices = list(op.operands)
    address = element_address(emitter, op, target, indices)
    builder.op("hivm.st", [address.pointer(), value])


def lower_sign(emitter: Emitter, op: Op) -> None:
    """A byte with a sign, or without one, whose bits are the same: at hivm it has none."""
    op.results[0].replace_all_uses_with(op.operands[0])


def element_address(emitter: Emitter, op: Op, memref: ir.Value, indices: list[ir.Value]) -> Address:
    """Where the element at `indices` lies, for a load or store of the scalar unit."""
    address = emitter.addresses.of(memref)
    if address.space not in (Space.GM, Space.UB):
        fail(
            op,
            "accesses a memory that the scalar unit cannot reach",
            found=address.space.name,
            expected="GM or UB",
        )
    strides, _ = ir.MemRefType(memref.type).get_strides_and_offset()
    width = element_bytes(memref)
    shift = Shift()
    for index, stride in zip(indices, strides, strict=True):
        shift = shift.plus(term(index, stride * width))
    return address.plus(shift)
