"""Reorders the operations of a block so that the pipes of a core work side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from davinci.dialects.cce.effects import MEETINGS, Effects, effects_of
from davinci.isa.core import Pipe
from davinci.machine import Machine
from davinci.mlir import Op, ir, parent_of
from davinci.passes.analysis.accesses import Accesses, ByteAccess
from davinci.passes.analysis.affine import Forms
from davinci.passes.analysis.dependences import Dependences
from davinci.passes.analysis.durations import Duration, Durations
from davinci.passes.analysis.lifetimes import VIEWS
from davinci.passes.cce.list_scheduler import PipeTask, SchedulerLimits, TaskOrder, mixed, plain

FREE = VIEWS | {"memref.alloc"}
"""Operations, besides those of arith and the scalar unit's registers, that touch nothing."""


@dataclass(frozen=True)
class _PipeNode:
    """An operation that a pipe executes."""

    op: Op
    pipe: Pipe
    reads: tuple[ByteAccess, ...]
    writes: tuple[ByteAccess, ...]
    duration: Duration


@dataclass
class _Line:
    """Operations in a straight line as tasks, and the operation after it, which stays in place."""

    nodes: list[_PipeNode]
    tasks: list[PipeTask]
    end: Op | None


@dataclass(frozen=True)
class Ordering:
    """A block whose operations can be put into several orders.

    Attributes:
        ops: in their given order, without the last one.
        lines: what they consist of.
        end: the last operation of the block.
        credit: see `SchedulerLimits`.
    """

    ops: list[Op]
    lines: list[_Line]
    end: ir.Operation
    credit: int

    @property
    def longest(self) -> int:
        """Tasks of the longest line."""
        return max(len(line.tasks) for line in self.lines)

    def plain(self, window: int) -> list[TaskOrder]:
        """The order of each line's tasks by `list_scheduler.plain`; for `window` see its
        `SchedulerLimits`."""
        return [plain(line.tasks, SchedulerLimits(self.credit, window)) for line in self.lines]

    def mixed(self, window: int, plans: Sequence[TaskOrder]) -> list[TaskOrder]:
        """The order of each line's tasks by `list_scheduler.mixed`, given the plain ones."""
        limits = SchedulerLimits(self.credit, window)
        lines = zip(self.lines, plans, strict=True)
        return [mixed(line.tasks, limits, plan) for line, plan in lines]

    def place(self, plans: Sequence[TaskOrder]) -> None:
        """Moves the operations."""
        placed: list[Op] = []
        for line, plan in zip(self.lines, plans, strict=True):
            placed += [line.nodes[number].op for number in plan.order]
            placed += [] if line.end is None else [line.end]
        first = [op for op in self.ops if op.name in ("memref.alloc", "arith.constant")]
        place([*first, *placed, *self.ops], self.end)


class Orderer:
    """Orders blocks of one kernel."""

    def __init__(self, machine: Machine, blocks: int) -> None:
        self._machine = machine
        self._durations = Durations(machine, blocks)
        self._sequential = frozenset(Pipe[name] for name in machine.sync.sequential_pipes)

    def ordering(self, block: ir.Block) -> Ordering:
        """What there is to order in a block; operations with regions, and unknown ones, stay."""
        forms = Forms()
        loops = _loops_around(block)
        for loop in loops:
            forms.enter_loop(loop)
        accesses = Accesses(forms, planned=False)
        *ops, end = [view.operation for view in block.operations]
        lines = [_Line([], [], None)]
        for op in ops:
            effects = effects_of(op)
            if effects is not None and op.name not in MEETINGS:
                lines[-1].nodes.append(self._node(op, effects, accesses))
            elif not is_free(op):
                lines[-1].end = op
                lines.append(_Line([], [], None))
        for line in lines:
            line.tasks = self._tasks(line.nodes, Dependences(accesses, loops))
        return Ordering(list(ops), lines, end, self._machine.gm.idle_credit_cycles)

    def _node(self, op: Op, effects: Effects, accesses: Accesses) -> _PipeNode:
        pipe = Pipe[effects.pipe]
        duration = self._durations.of(op, pipe)
        return _PipeNode(
            op,
            pipe,
            tuple(accesses.of_operand(value, op) for value in effects.reads),
            tuple(accesses.of_operand(value, op) for value in effects.writes),
            duration,
        )

    def _tasks(self, nodes: list[_PipeNode], dependences: Dependences) -> list[PipeTask]:
        """The operations of a line as tasks, with those that each has to wait for."""
        numbers = {node.op: number for number, node in enumerate(nodes)}
        fresh = self._fresh(nodes)
        tasks = []
        for number, node in enumerate(nodes):
            before = dependences.add(number, node.reads, node.writes)
            before |= dict.fromkeys(_operand_nodes(node.op, numbers), True)
            tasks.append(
                PipeTask(
                    node.pipe,
                    node.duration.busy,
                    node.duration.result,
                    node.duration.issue,
                    tuple((e, self._distance(nodes[e], node, w)) for e, w in before.items()),
                    node.pipe == Pipe.S,
                    math.ceil(node.duration.of_memory * fresh.get(_source(node), 1.0)),
                )
            )
        return tasks

    def _fresh(self, nodes: list[_PipeNode]) -> dict[object, float]:
        """How much of what a line reads of an array in global memory comes from the memory: no more
        than there is, however many cores read it; the L2 has the rest.

        All blocks are taken to read as much of it.
        """
        cycles: dict[ir.Value, int] = {}
        for node in nodes:
            if node.duration.of_memory and isinstance(source := _source(node), ir.Value):
                cycles[source] = cycles.get(source, 0) + node.duration.of_memory
        rate = self._machine.gm.read_bytes_per_cycle * self._machine.cores
        return {
            source: min(1.0, _bytes_of(source) / rate / taken) for source, taken in cycles.items()
        }

    def _distance(self, earlier: _PipeNode, later: _PipeNode, written: bool) -> int:
        """Cycles from the start of one operation to that of one that depends on it.

        Between pipes a flag tells; within one a flag goes to an idle pipe and back, while other
        work of the pipe goes on. What only overwrites what its pipe has read follows in the queue.
        """
        flag = self._machine.sync.flag_cycles
        if earlier.pipe != later.pipe:
            return earlier.duration.result + flag
        if not written or earlier.pipe in self._sequential:
            return 0
        return earlier.duration.result + 2 * flag


def _source(node: _PipeNode) -> ir.Value | str | None:
    """The array that an operation reads first."""
    return node.reads[0].memory if node.reads else None


def _bytes_of(array: ir.Value) -> int:
    kind = ir.MemRefType(array.type)
    return math.prod(kind.shape) * kind.element_type.width // 8


def is_free(op: Op) -> bool:
    """Whether an operation takes no pipe's time and may lie anywhere its operands are."""
    dialect = op.name.partition(".")[0]
    return dialect == "arith" or op.name in FREE or op.name.startswith("cce.get_")


def _loops_around(block: ir.Block) -> list[Op]:
    """The `scf.for` operations around a block, outermost first."""
    found: list[Op] = []
    op = block.owner.operation
    while op.name != "func.func":
        if op.name == "scf.for":
            found.insert(0, op)
        op = parent_of(op)
    return found


def _operand_nodes(op: Op, numbers: dict[Op, int]) -> set[int]:
    """Operations of a line whose results an operation is made of, by way of free ones."""
    found: set[int] = set()
    waiting, seen = [op], {op}
    while waiting:
        for value in waiting.pop().operands:
            if isinstance(value.owner, ir.Block):
                continue
            owner = value.owner.operation
            if owner in numbers:
                found.add(numbers[owner])
            elif owner not in seen and is_free(owner):
                seen.add(owner)
                waiting.append(owner)
    return found


def place(ops: Sequence[Op], end: Op) -> None:
    """Moves operations of a block in front of another one, in their order, each after what its
    operands need; what is named twice stays where it is first."""
    missing = set(ops)

    def put(op: Op) -> None:
        stack = [op]
        while stack:
            top = stack[-1]
            needed = [owner for owner in _owners(top) if owner in missing]
            if needed:
                stack += needed
                continue
            stack.pop()
            if top in missing:
                missing.remove(top)
                top.move_before(end)

    for op in ops:
        if op in missing:
            put(op)


def _owners(op: Op) -> Iterator[ir.Operation]:
    """The operations whose results an operation uses, also inside its regions."""
    values: list[ir.Value] = []

    def visit(nested: Op) -> ir.WalkResult:
        values.extend(nested.operands)
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return (value.owner.operation for value in values if not isinstance(value.owner, ir.Block))
