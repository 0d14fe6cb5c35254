"""What the lowerings of one kernel share: views of its memrefs, and how instructions are built."""

from __future__ import annotations

from collections.abc import Sequence

from davinci.dialects.base import attribute
from davinci.dialects.hivm import ops as hivm
from davinci.isa import INSTRUCTIONS, Instruction, Pipe, Space
from davinci.machine import Machine
from davinci.machine.legality import illegal_instruction
from davinci.mlir import Op, arith, ir
from davinci.passes import builder
from davinci.passes.builder import IndexLike
from davinci.passes.cce_to_hivm.addresses import Address, Shift, constant_i64
from davinci.passes.cce_to_hivm.emitter import Emitter
from davinci.passes.hir_to_hivm.views import MemrefView, as_i64
from davinci.passes.pipeline.base import fail

TEMPLATE_EVENT = 7
"""The event id of the flags that an operation needs inside, which other flags leave free
(AscendNPU-IR, lib/Template: LIB_EVENT_ID0)."""


class Unsupported(Exception):
    """An operation or a form of it that has no lowering; the text is what a list of them says, ""
    where that is only because of another one."""


class Translator:
    """State of lowering one kernel.

    Attributes:
        machine: limits and costs.
        core: kind of core that the kernel is for.
        emitter: builds instructions, and knows the vector mask.
        views: of the memrefs that were met, by value.
        unknown: results of operations that were refused.
    """

    def __init__(self, machine: Machine, core: str) -> None:
        self.machine, self.core = machine, core
        self.emitter = Emitter(machine)
        self.views: dict[ir.Value, MemrefView] = {}
        self.unknown: set[ir.Value] = set()

    def view(self, op: Op, value: ir.Value) -> MemrefView:
        """The view of a memref value."""
        found = self.views.get(value)
        if value in self.unknown:
            raise Unsupported("")
        if found is None:
            fail(op, "has a memref that cannot be traced to a buffer", found=str(value.type))
        return found

    def is_array(self, value: ir.Value) -> bool:
        """Whether an operand is a memref; one that a loop carries has another type already."""
        return value in self.views or isinstance(value.type, ir.MemRefType)

    def groups(self, op: Op) -> list[list[ir.Value]]:
        """The operands in groups, as `operandSegmentSizes` says."""
        rest = iter(op.operands)
        sizes = attribute(op, "operandSegmentSizes", [])
        return [[next(rest) for _ in range(size)] for size in sizes]

    def record(self, name: str, kind: str = "") -> Instruction:
        """The record of an instruction.

        Raises:
            Unsupported: the machine has no such instruction.
        """
        mnemonic = f"{name}.{kind}" if kind else name
        found = INSTRUCTIONS.get(mnemonic)
        if found is None or illegal_instruction(self.machine, self.core, found):
            raise Unsupported(f"needs the instruction {mnemonic}")
        return found

    def barrier(self, pipe: Pipe = Pipe.V) -> None:
        hivm.build("pipe_barrier", "", [], {"pipe": int(pipe)})

    def hand_over(self, source: Pipe, target: Pipe, event: int = TEMPLATE_EVENT) -> None:
        """One pipe waits for another, by a flag."""
        fields = {"src_pipe": int(source), "dst_pipe": int(target), "event": event}
        hivm.build("set_flag", "", [], fields)
        hivm.build("wait_flag", "", [], fields)

    def set_mask(self, lanes: IndexLike) -> None:
        """Lets the first `lanes` lanes take part, at most 128; at most 64 where it is a value."""
        if isinstance(lanes, int):
            self.emitter.set_mask((1 << lanes) - 1)
            return
        self.emitter.mask = None
        count = as_i64(lanes)
        one, all_ = constant_i64(1), constant_i64(-1)
        low, high = self._mask_word(count, one, all_), constant_i64(0)
        more = arith.SubIOp(count, constant_i64(64)).result
        zero = constant_i64(0)
        some = arith.CmpIOp(arith.CmpIPredicate.sgt, more, zero).result
        high = arith.SelectOp(some, self._mask_word(more, one, all_), zero).result
        hivm.build("set_vector_mask", "", [], {"low": low, "high": high})

    @staticmethod
    def _mask_word(count: ir.Value, one: ir.Value, ones: ir.Value) -> ir.Value:
        """(1 << count) - 1, all ones from 64 on."""
        width = constant_i64(64)
        full = arith.CmpIOp(arith.CmpIPredicate.sge, count, width).result
        bits = arith.SubIOp(arith.ShLIOp(one, count).result, one).result
        return arith.SelectOp(full, ones, bits).result

    def instruction(
        self, record: Instruction, addresses: Sequence[Address], **fields: IndexLike
    ) -> None:
        """Builds one instruction; fields are ints or i64 values."""
        self.emitter.instruction(record, addresses, fields)

    def load(self, view: MemrefView, shift: Shift, kind: ir.Type) -> ir.Value:
        """An element that the scalar unit loads, from UB or global memory; bf16, which it does not
        know, by its bits."""
        pointer = self.emitter.pointer(view.at(shift).address)
        if not isinstance(kind, ir.BF16Type):
            return builder.op("hivm.ld", [pointer], [kind]).result
        bits = builder.op("hivm.ld", [pointer], [ir.IntegerType.get_signless(kind.width)]).result
        return arith.BitcastOp(kind, bits).result

    def store(self, view: MemrefView, shift: Shift, value: ir.Value) -> None:
        """The scalar unit stores an element, to UB or global memory."""
        if isinstance(value.type, ir.BF16Type):
            value = arith.BitcastOp(ir.IntegerType.get_signless(value.type.width), value).result
        builder.op("hivm.st", [self.emitter.pointer(view.at(shift).address), value])


def reachable(op: Op, view: MemrefView) -> None:
    """Fails for memories that the scalar unit does not reach."""
    if view.space not in (Space.GM, Space.UB):
        fail(
            op,
            "accesses a memory the scalar unit cannot reach",
            found=view.space.name,
            expected="GM or UB",
        )


def minimum(left: IndexLike, right: int) -> IndexLike:
    """The smaller of an index and a number."""
    if isinstance(left, int):
        return min(left, right)
    bound = builder.constant_index(right)
    less = arith.CmpIOp(arith.CmpIPredicate.slt, left, bound).result
    return arith.SelectOp(less, left, bound).result


def subtract(left: IndexLike, right: IndexLike) -> IndexLike:
    if isinstance(left, int) and isinstance(right, int):
        return left - right
    return arith.SubIOp(builder.as_value(left), builder.as_value(right)).result


def signed_scalar(value: ir.Value) -> ir.Value:
    """An integer or floating-point scalar as bits in an i64 value, zero-extended."""
    i64 = ir.IntegerType.get_signless(64)
    if isinstance(value.type, ir.IndexType):
        return arith.IndexCastOp(i64, value).result
    if isinstance(value.type, ir.IntegerType):
        return value if value.type.width == 64 else arith.ExtUIOp(i64, value).result
    width = value.type.width
    bits = arith.BitcastOp(ir.IntegerType.get_signless(width), value).result
    return arith.ExtUIOp(i64, bits).result
