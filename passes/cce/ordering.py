"""Reorders the operations of a block so that the pipes of a core work side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from davinci.dialects.cce.effects import Effects, effects_of
from davinci.isa.core import Pipe
from davinci.machine import Machine
from davinci.mlir import ir
from davinci.passes.analysis.accesses import Access, Accesses
from davinci.passes.analysis.affine import Forms
from davinci.passes.analysis.dependences import Dependences
from davinci.passes.analysis.durations import Duration, Durations
from davinci.passes.analysis.lifetimes import VIEWS
from davinci.passes.cce.list_scheduler import Task, schedule

FREE = VIEWS | {"memref.alloc"}
"""Operations, besides those of arith and the scalar unit's registers, that touch nothing."""


@dataclass(frozen=True)
class _Node:
    """An operation that a pipe executes."""

    op: Any
    pipe: Pipe
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    duration: Duration


class Orderer:
    """Orders blocks of one kernel."""

    def __init__(self, machine: Machine, blocks: int) -> None:
        self._machine = machine
        self._durations = Durations(machine, blocks)
        self._sequential = frozenset(Pipe[name] for name in machine.sync.sequential_pipes)

    def order(self, block: Any) -> None:
        """Moves the operations of a block; those with regions, and unknown ones, stay in place."""
        forms = Forms()
        loops = _loops_around(block)
        for loop in loops:
            forms.enter_loop(loop)
        accesses = Accesses(forms, planned=False)
        *ops, end = [view.operation for view in block.operations]
        placed: list[Any] = []
        line: list[_Node] = []
        for op in ops:
            effects = effects_of(op)
            if effects is not None:
                line.append(self._node(op, effects, accesses))
            elif not _is_free(op):
                placed += [*self._best(line, accesses, loops), op]
                line = []
        placed += self._best(line, accesses, loops)
        _place(ops, placed, end)

    def _node(self, op: Any, effects: Effects, accesses: Accesses) -> _Node:
        pipe = Pipe[effects.pipe]
        duration = self._durations.of(op, pipe)
        if op.name in ("memref.load", "memref.store"):
            buffer, *indices = list(op.operands)[0 if op.name == "memref.load" else 1 :]
            element = (accesses.of_element(buffer, indices, op),)
            reads, writes = (element, ()) if effects.reads else ((), element)
            return _Node(op, pipe, reads, writes, duration)
        return _Node(
            op,
            pipe,
            tuple(accesses.of_view(value, op) for value in effects.reads),
            tuple(accesses.of_view(value, op) for value in effects.writes),
            duration,
        )

    def _best(self, line: list[_Node], accesses: Accesses, loops: Sequence[Any]) -> Iterator[Any]:
        """The operations of a straight line in the order found."""
        dependences = Dependences(accesses, loops)
        numbers = {node.op: number for number, node in enumerate(line)}
        tasks = []
        for number, node in enumerate(line):
            before = dependences.add(number, node.reads, node.writes)
            before |= dict.fromkeys(_operand_nodes(node.op, numbers), True)
            tasks.append(
                Task(
                    node.pipe,
                    node.duration.busy,
                    node.duration.result,
                    node.duration.issue,
                    tuple((e, self._distance(line[e], node, w)) for e, w in before.items()),
                    node.pipe == Pipe.S,
                    node.duration.of_memory,
                )
            )
        return (
            line[number].op for number in schedule(tasks, self._machine.gm.idle_credit_cycles).order
        )

    def _distance(self, earlier: _Node, later: _Node, written: bool) -> int:
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


def _is_free(op: Any) -> bool:
    dialect = op.name.partition(".")[0]
    return dialect == "arith" or op.name in FREE or op.name.startswith("cce.get_block_")


def _loops_around(block: Any) -> list[Any]:
    """The `scf.for` operations around a block, outermost first."""
    found: list[Any] = []
    op = block.owner.operation
    while op.name != "func.func":
        if op.name == "scf.for":
            found.insert(0, op)
        op = op.parent.operation
    return found


def _operand_nodes(op: Any, numbers: dict[Any, int]) -> set[int]:
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
            elif owner not in seen and _is_free(owner):
                seen.add(owner)
                waiting.append(owner)
    return found


def _place(ops: Sequence[Any], placed: Sequence[Any], end: Any) -> None:
    """Moves operations into their order, each after what its operands need."""
    missing = set(ops)

    def put(op: Any) -> None:
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

    first = [op for op in ops if op.name in ("memref.alloc", "arith.constant")]
    for op in (*first, *placed, *ops):
        if op in missing:
            put(op)


def _owners(op: Any) -> Iterator[Any]:
    """The operations whose results an operation uses, also inside its regions."""
    values: list[Any] = []

    def visit(nested: Any) -> Any:
        values.extend(nested.operands)
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return (value.owner.operation for value in values if not isinstance(value.owner, ir.Block))
