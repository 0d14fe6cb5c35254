"""What vector instructions lose to the banks of UB, depending on where their buffers lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from davinci.dialects.cce.buffers import buffer_of
from davinci.machine import Vector
from davinci.machine.vector_banks import BankLayout, OperandBlocks, repeats_cycles
from davinci.mlir import Op, ir, operations
from davinci.passes.analysis.accesses import Accesses
from davinci.passes.analysis.affine import Forms
from davinci.passes.analysis.vector_work import ELEMENTWISE, nests_of, parts_of
from davinci.units import BLOCK_BYTES

SAMPLED_REPEATS = 32
"""Repeats of an instruction that are looked at: banks meet in the same way again and again."""


@dataclass(frozen=True)
class _Operand:
    """The blocks of an operand; all figures but the buffer are blocks.

    Attributes:
        buffer: the result of its alloc.
        offset: from the start of the buffer.
        written, read: whether they are written, and read.
    """

    buffer: ir.Value | str
    offset: int
    per_repeat: int
    block_stride: int
    repeat_stride: int
    written: bool
    read: bool

    def stream(self, start: int) -> OperandBlocks:
        return OperandBlocks(start, self.per_repeat, self.block_stride, self.repeat_stride)


@dataclass(frozen=True)
class _Instruction:
    """A vector instruction: its operands, repeats, cycles of each, and the depth of the unit."""

    operands: tuple[_Operand, ...]
    repeats: int
    cycles: int
    depth: int

    @property
    def form(self) -> tuple[object, ...]:
        """The strides of its operands, its repeats and its cycles: instructions of one form lose
        the same cycles where their operands begin at the same blocks."""
        forms = (
            (o.per_repeat, o.block_stride, o.repeat_stride, o.written, o.read)
            for o in self.operands
        )
        return *forms, self.repeats, self.cycles, self.depth

    def lost(self, starts: tuple[int, ...], layout: BankLayout) -> float:
        """Cycles lost with operands that begin at these blocks, -1 for those left out."""
        placed = [(o, start) for o, start in zip(self.operands, starts, strict=True) if start >= 0]
        reads = tuple(operand.stream(start) for operand, start in placed if operand.read)
        writes = tuple(operand.stream(start) for operand, start in placed if operand.written)
        if len(placed) < 2:
            return 0
        repeats = min(self.repeats, SAMPLED_REPEATS)
        taken = repeats_cycles(reads, writes, repeats, self.cycles, self.depth, layout)
        return (taken - repeats * self.cycles) * self.repeats / repeats


@dataclass
class _Issued:
    """An instruction, how often it is issued, and what each of its form loses by where operands
    begin."""

    instruction: _Instruction
    lost: dict[tuple[int, ...], float]
    count: int = 0


class BankConflicts:
    """The elementwise operations of a kernel whose operands meet in the banks of UB.

    Args:
        kernel: with buffers, planned or not.
        unit: the machine's vector unit.
    """

    def __init__(self, kernel: Op, unit: Vector) -> None:
        self._unit, self._layout = unit, BankLayout.of(unit)
        self._of: dict[ir.Value | str, list[_Issued]] = {}
        accesses = Accesses(Forms(), planned=False)
        issued: dict[_Instruction, _Issued] = {}
        lost: dict[tuple[object, ...], dict[tuple[int, ...], float]] = {}
        for op in operations(kernel, "cce"):
            if op.name.removeprefix("cce.") in ELEMENTWISE and "lanes" not in op.attributes:
                for found, count in self._instructions(op, accesses):
                    if found not in issued:
                        issued[found] = _Issued(found, lost.setdefault(found.form, {}))
                    issued[found].count += count
        for one in issued.values():
            for buffer in {operand.buffer for operand in one.instruction.operands}:
                self._of.setdefault(buffer, []).append(one)

    def losses(
        self, buffer: ir.Value, places: Mapping[ir.Value | str, int]
    ) -> Callable[[int], float]:
        """What gives, for each address of a buffer, the cycles lost by the instructions that work
        on it.

        Args:
            places: addresses of other buffers; operands without one are left out.
        """
        met: list[tuple[_Issued, list[int], list[int]]] = []
        for one in self._of.get(buffer, ()):
            operands, repeats = one.instruction.operands, one.instruction.repeats
            own = [n for n, operand in enumerate(operands) if operand.buffer == buffer]
            starts = [
                self._start(operand, places[operand.buffer], repeats)
                if operand.buffer in places
                else -1
                for operand in operands
            ]
            if len(own) > 1 or any(n not in own and start >= 0 for n, start in enumerate(starts)):
                met.append((one, starts, own))

        def lost(address: int) -> float:
            return sum(self._lost(one, starts, own, address) for one, starts, own in met)

        return lost

    def _lost(self, one: _Issued, starts: list[int], own: Sequence[int], address: int) -> float:
        """Cycles lost by an instruction whose operands `own` lie in a buffer at an address, the
        others begin at the blocks `starts`."""
        found = one.instruction
        for number in own:
            starts[number] = self._start(found.operands[number], address, found.repeats)
        key = tuple(starts)
        if key not in one.lost:
            one.lost[key] = found.lost(key, self._layout)
        return one.count * one.lost[key]

    def _start(self, operand: _Operand, address: int, repeats: int) -> int:
        """The first block of the group where an operand begins in the bank where its middle is."""
        block = address // BLOCK_BYTES + operand.offset
        bank = (block + repeats * operand.repeat_stride // 2) // self._layout.row_blocks
        return block % self._layout.groups + bank * self._layout.row_blocks

    def _instructions(self, op: Op, accesses: Accesses) -> Iterator[tuple[_Instruction, int]]:
        """The instructions of an operation and their numbers, none if it is not known where its
        operands begin."""
        parts, unit = parts_of(op), self._unit
        values = [op.operands[number] for part in parts for number in part.operands]
        views = [accesses.of_elements(value, op) for value in values]
        if any(view.offset.terms for view in views):
            return
        sizes = [buffer_of(value).itemsize for value in values]
        lanes = unit.repeat_bytes // max(sizes)
        for nest in nests_of(op, parts, unit):
            first = 0
            for part in parts:
                operands = []
                for place, operand in enumerate(part.record.operands, first):
                    offset = views[place].offset.constant + nest.issue.offsets[place] * sizes[place]
                    operands.append(
                        _Operand(
                            views[place].memory,
                            offset // BLOCK_BYTES,
                            max(1, lanes * sizes[place] // BLOCK_BYTES),
                            nest.issue.blk_stride[place],
                            nest.issue.rep_stride[place],
                            operand.writes,
                            not operand.writes or part.accumulates,
                        )
                    )
                first += len(operands)
                name, kind = part.record.name, part.record.type
                fixed, each = unit.price(name, kind)
                depth = max(fixed - unit.head_cycles, 1)
                yield _Instruction(tuple(operands), nest.issue.repeat, each, depth), nest.count
