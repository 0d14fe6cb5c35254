"""The vector instructions that an elementwise cce operation becomes, without building them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from davinci.dialects.base import attribute
from davinci.dialects.cce import instructions
from davinci.dialects.cce.buffers import BufferView, buffer_of
from davinci.isa import INSTRUCTIONS, Instruction
from davinci.isa.multiply_add import ACCUMULATING
from davinci.isa.vector_plan import InstructionLimits, Nest, plan_vector
from davinci.machine import Vector
from davinci.mlir import Op, ir
from davinci.passes.pipeline.base import fail
from davinci.units import REPEAT_BYTES

ROUNDINGS = {
    "none": ("", "r"),
    "rint": ("r", ""),
    "away": ("a",),
    "floor": ("f",),
    "ceil": ("c",),
    "trunc": ("z",),
}
"""Suffixes of conversion instructions for each rounding, the first that exists is meant."""

ELEMENTWISE = frozenset([*instructions.ELEMENTWISE, "vconv", "vcmpsel"])
"""Operations, without their dialect, whose operands have one shape and are walked together."""


@dataclass(frozen=True)
class AddressedInstruction:
    """An instruction, and which operands of the operation are its address operands."""

    record: Instruction
    operands: tuple[int, ...]

    @property
    def accumulates(self) -> bool:
        """Whether the first one, which is written, is read too."""
        return self.record.name in ACCUMULATING


def parts_of(op: Op) -> list[AddressedInstruction]:
    """The instructions that together do an elementwise operation, in order."""
    name, operands = op.name.removeprefix("cce."), list(op.operands)
    if name == "vcmpsel":
        compare = _record(op, f"vcmp_{attribute(op, 'predicate')}.{_dtype(operands[0])}")
        select = _record(op, f"vsel.{_dtype(operands[2])}")
        return [AddressedInstruction(compare, (0, 1)), AddressedInstruction(select, (4, 2, 3))]
    arrays = [i for i, value in enumerate(operands) if isinstance(value.type, ir.MemRefType)]
    *sources, dst = arrays
    if name == "vconv":
        record = _conversion(op, _dtype(operands[0]), _dtype(operands[1]))
    elif name in instructions.BITWISE:
        (kind,) = instructions.types_of(name)
        record = _record(op, f"{name}.{kind}")
    else:
        record = _record(op, f"{name}.{_dtype(operands[dst])}")
    return [AddressedInstruction(record, (dst, *sources))]


def nests_of(op: Op, parts: Sequence[AddressedInstruction], unit: Vector) -> list[Nest]:
    """The instructions' fields and loops; operands are those of all parts, one part after another.

    Args:
        unit: the machine's.
    """
    buffers = [buffer_of(op.operands[i]) for part in parts for i in part.operands]
    strides, sizes = [b.strides for b in buffers], [b.itemsize for b in buffers]
    return plan_vector(buffers[0].shape, strides, sizes, _limits(parts, unit))


def rows_together(rows: BufferView) -> int:
    """Rows that lie in one repeat, of those of which `vector_dup` fills some lanes."""
    row_bytes = rows.strides[0] * rows.itemsize
    return 1 if REPEAT_BYTES % row_bytes else REPEAT_BYTES // row_bytes


def _limits(parts: Sequence[AddressedInstruction], unit: Vector) -> InstructionLimits:
    """Limits of instructions from their records and the machine.

    Several do one repeat each in turn, because what one leaves for the next holds one repeat.
    """
    each = [limits_of(part.record, unit) for part in parts]
    if len(parts) == 1:
        return each[0]
    strides = tuple(stride for limits in each for stride in limits.blk_stride)
    return InstructionLimits(
        1, strides, (0,) * len(strides), each[-1].fixed_cycles, unit.bank_groups
    )


def limits_of(record: Instruction, unit: Vector) -> InstructionLimits:
    fixed, each = unit.price(record.name, record.type)
    return InstructionLimits.of(record, fixed, unit.bank_groups, each)


def _conversion(op: Op, source: str, target: str) -> Instruction:
    stem, mode = f"vconv_{source}2{target}", attribute(op, "round", "none")
    for suffix in ROUNDINGS[mode]:
        if stem + suffix in INSTRUCTIONS:
            return INSTRUCTIONS[stem + suffix]
    fail(op, "has no instruction", found=f"{stem} rounding {mode!r}")


def _record(op: Op, mnemonic: str) -> Instruction:
    found = INSTRUCTIONS.get(mnemonic)
    if found is None:
        fail(op, f"needs the instruction {mnemonic}, which the machine has not")
    return found


def _dtype(value: ir.Value) -> str:
    return buffer_of(value).dtype
