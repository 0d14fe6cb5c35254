"""Elementwise operations: dimensions go to lanes, repeats and loops as `vector_plan` decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import Buffer, buffer_of
from davinci.dialects.cce.checks import VECTOR_TYPES
from davinci.isa import INSTRUCTIONS, Instruction
from davinci.isa.core import DTYPES
from davinci.isa.vector_plan import Issue, Limits, Nest, plan_vector
from davinci.mlir import arith, ir
from davinci.passes.cce_to_hivm import lowering
from davinci.passes.cce_to_hivm.addresses import Address, Shift
from davinci.passes.cce_to_hivm.emitter import Emitter, is_constant
from davinci.passes.cce_to_hivm.reductions import lower_fill_of_lanes
from davinci.passes.pipeline.base import fail

ROUNDINGS = {
    "none": ("", "r"),
    "rint": ("r", ""),
    "away": ("a",),
    "floor": ("f",),
    "ceil": ("c",),
    "trunc": ("z",),
}
"""Suffixes of conversion instructions for each rounding, the first that exists is meant."""

SCALAR_OPS = ("vadds", "vmuls", "vector_dup")
ELEMENTWISE = [name for name in VECTOR_TYPES if name not in SCALAR_OPS]


@lowering(*ELEMENTWISE)
def lower_elementwise(emitter: Emitter, op: Any) -> None:
    """vadd, vexp, ...: sources, destination."""
    *sources, dst = list(op.operands)
    kind = buffer_of(dst).dtype
    record = emitter.record(op, op.name.removeprefix("cce."), kind)
    emit_vector(emitter, record, [dst, *sources], {})


@lowering(*SCALAR_OPS)
def lower_with_scalar(emitter: Emitter, op: Any) -> None:
    """vadds, vmuls and vector_dup: the scalar travels as raw bits in a field."""
    *sources, scalar, dst = list(op.operands)
    record = emitter.record(op, op.name.removeprefix("cce."), buffer_of(dst).dtype)
    if "lanes" in op.attributes:
        lower_fill_of_lanes(emitter, record, op, raw_bits(scalar))
        return
    emit_vector(emitter, record, [dst, *sources], {"value": raw_bits(scalar)})


@lowering("vconv")
def lower_conversion(emitter: Emitter, op: Any) -> None:
    src, dst = list(op.operands)
    stem = f"vconv_{buffer_of(src).dtype}2{buffer_of(dst).dtype}"
    mode = attribute(op, "round", "none")
    names = [stem + suffix for suffix in ROUNDINGS[mode]]
    name = next((n for n in names if n in INSTRUCTIONS), "")
    if not name:
        fail(op, "has no instruction", found=f"{stem} rounding {mode!r}")
    emit_vector(emitter, INSTRUCTIONS[name], [dst, src], {})


@lowering("vcmpsel")
def lower_compare_select(emitter: Emitter, op: Any) -> None:
    """A compare and a select a repeat, because the CMPMASK register holds one repeat."""
    a, b, x, y, dst = list(op.operands)
    predicate = attribute(op, "predicate")
    compare = emitter.record(op, f"vcmp_{predicate}", buffer_of(a).dtype)
    select = emitter.record(op, "vsel", buffer_of(x).dtype)
    values = [dst, x, y, a, b]
    buffers = [buffer_of(v) for v in values]
    compare_limits, select_limits = limits(emitter, compare), limits(emitter, select)
    both = Limits(
        1,
        select_limits.blk_stride + compare_limits.blk_stride,
        (0,) * len(values),
        select_limits.fixed_cycles,
        select_limits.bank_groups,
    )

    def emit(issue: Issue, addresses: Sequence[Address]) -> None:
        for record, part in ((compare, slice(3, 5)), (select, slice(0, 3))):
            fields = stride_fields(record, issue, part)
            emitter.instruction(record, addresses[part], fields)

    emit_nests(emitter, values, buffers, both, emit)


def emit_vector(
    emitter: Emitter, record: Instruction, values: Sequence[Any], extra: dict[str, Any]
) -> None:
    """Covers memrefs of equal shapes, in order of the record's operands, with instructions."""

    def emit(issue: Issue, addresses: Sequence[Address]) -> None:
        fields = stride_fields(record, issue, slice(0, len(addresses)))
        emitter.instruction(record, addresses, {**fields, **extra})

    buffers = [buffer_of(v) for v in values]
    emit_nests(emitter, values, buffers, limits(emitter, record), emit)


def emit_nests(
    emitter: Emitter,
    values: Sequence[Any],
    buffers: Sequence[Buffer],
    most: Limits,
    emit: Callable[[Issue, Sequence[Address]], None],
) -> None:
    """Plans and builds the loops; `emit` builds the instructions of one issue."""
    itemsizes = [b.itemsize for b in buffers]
    nests = plan_vector(buffers[0].shape, [b.strides for b in buffers], itemsizes, most)
    start = [emitter.addresses.of(v) for v in values]
    for nest in nests:
        emit_nest(emitter, nest, itemsizes, start, emit)


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


def limits(emitter: Emitter, record: Instruction) -> Limits:
    """Limits of an instruction from its record and the machine."""
    unit, name, kind = emitter.machine.vector, record.name, record.type
    return Limits.of(
        record,
        unit.cycles_of(unit.fixed_cycles_of, name, kind, unit.fixed_cycles),
        unit.bank_groups,
        unit.cycles_of(unit.cycles_per_repeat, name, kind, 1),
    )


def stride_fields(record: Instruction, issue: Issue, part: slice) -> dict[str, Any]:
    """The stride and repeat fields the record has, for the operands in `part` of the issue."""
    present = {f.name for f in record.fields}
    fields: dict[str, Any] = {"repeat": issue.repeat}
    strides = zip(record.operands, issue.blk_stride[part], issue.rep_stride[part], strict=True)
    for operand, blk, rep in strides:
        fields[f"{operand.name}_blk_stride"] = blk
        fields[f"{operand.name}_rep_stride"] = rep
    return {name: value for name, value in fields.items() if name in present}


def raw_bits(scalar: Any) -> Any:
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
