"""Elementwise operations: dimensions go to lanes, repeats and loops as `vector_plan` decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from davinci.dialects.cce.buffers import buffer_of
from davinci.dialects.cce.instructions import BITWISE, WITH_SCALAR
from davinci.isa import Instruction
from davinci.isa.core import DTYPES
from davinci.isa.vector_plan import Issue, Nest
from davinci.mlir import Op, arith, ir
from davinci.passes.analysis.vector_work import ELEMENTWISE, nests_of, parts_of
from davinci.passes.builder import IndexLike
from davinci.passes.cce_to_hivm import lowering
from davinci.passes.cce_to_hivm.addresses import Address, Shift
from davinci.passes.cce_to_hivm.emitter import Emitter, is_constant
from davinci.passes.cce_to_hivm.reductions import lower_fill_of_lanes

MASK_BITS = 128
"""Lanes of the vector mask."""

SCALAR_OPS = (*WITH_SCALAR, "vector_dup")


@lowering(*ELEMENTWISE)
def lower_elementwise(emitter: Emitter, op: Op) -> None:
    """A scalar travels as raw bits in a field."""
    extra: dict[str, Any] = {}
    if op.name.removeprefix("cce.") in SCALAR_OPS:
        extra["value"] = raw_bits(list(op.operands)[-2])
    parts = parts_of(op)
    if "lanes" in op.attributes:
        lower_fill_of_lanes(emitter, parts[0].record, op, extra["value"])
        return
    values = [op.operands[i] for part in parts for i in part.operands]
    itemsizes = [buffer_of(value).itemsize for value in values]
    start = [emitter.addresses.of(value) for value in values]

    def emit(issue: Issue, addresses: Sequence[Address]) -> None:
        first = 0
        for part in parts:
            own = slice(first, first := first + len(part.operands))
            fields = stride_fields(part.record, issue, own)
            emitter.instruction(part.record, addresses[own], {**fields, **extra})

    for nest in nests_of(op, parts, emitter.machine.vector):
        if op.name.removeprefix("cce.") in BITWISE:
            lanes = itemsizes[0] // DTYPES[parts[0].record.type].itemsize
            mask = widened(nest.issue.mask, lanes)
            nest = replace(nest, issue=replace(nest.issue, mask=mask))
        emit_nest(emitter, nest, itemsizes, start, emit)


def widened(mask: int, lanes: int) -> int:
    """A mask of elements as one of lanes, of which each element takes several; what lies behind a
    repeat has no elements."""
    bits = [place for place in range(MASK_BITS // lanes) if mask >> place & 1]
    every = (1 << lanes) - 1
    return sum(every << place * lanes for place in bits)


def emit_nest(
    emitter: Emitter,
    nest: Nest,
    itemsizes: Sequence[int],
    start: Sequence[Address],
    emit: Callable[[Issue, Sequence[Address]], None],
) -> None:
    emitter.set_mask(nest.issue.mask)
    first = [
        address.plus(Shift(offset * size))
        for address, offset, size in zip(start, nest.issue.offsets, itemsizes, strict=True)
    ]
    emitter.loops(nest.loops, itemsizes, first, lambda at: emit(nest.issue, at))


def stride_fields(record: Instruction, issue: Issue, part: slice) -> dict[str, Any]:
    """The stride and repeat fields the record has, for the operands in `part` of the issue."""
    present = {f.name for f in record.fields}
    fields: dict[str, Any] = {"repeat": issue.repeat}
    strides = zip(record.operands, issue.blk_stride[part], issue.rep_stride[part], strict=True)
    for operand, blk, rep in strides:
        fields[f"{operand.name}_blk_stride"] = blk
        fields[f"{operand.name}_rep_stride"] = rep
    return {name: value for name, value in fields.items() if name in present}


def raw_bits(scalar: ir.Value) -> IndexLike:
    """The bits of a scalar, zero-extended: an int if it is a constant, an i64 value otherwise."""
    i64 = ir.IntegerType.get_signless(64)
    if isinstance(scalar.type, ir.IntegerType):
        known = is_constant(scalar)
        width = scalar.type.width
        return (
            known & ((1 << width) - 1) if known is not None else arith.ExtUIOp(i64, scalar).result
        )
    if not isinstance(scalar, ir.BlockArgument) and scalar.owner.name == "arith.constant":
        return float_bits(ir.FloatAttr(scalar.owner.attributes["value"]).value, str(scalar.type))
    width = scalar.type.width
    bits = arith.BitcastOp(ir.IntegerType.get_signless(width), scalar).result
    return arith.ExtUIOp(i64, bits).result


def float_bits(value: float, kind: str) -> int:
    array = DTYPES[kind].type(value)
    return int.from_bytes(array.tobytes(), "little")
