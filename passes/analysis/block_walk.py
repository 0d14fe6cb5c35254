"""Follows a block through its kernel, see `block_places`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

from davinci.dialects.base import attribute
from davinci.dialects.cce.effects import SYNC_OPS
from davinci.mlir import Op, ir, location_text
from davinci.passes.analysis.accesses import Dims
from davinci.passes.analysis.affine import AffineForm
from davinci.passes.analysis.block_steps import (
    BlockMeeting,
    BlockStep,
    BranchNode,
    FlagSet,
    FlagWait,
    GlobalAccess,
    KernelNode,
    LoopNode,
    PlacedTransfer,
)
from davinci.passes.analysis.block_values import BlockValues, DependsOnData, NeedsIterations
from davinci.passes.analysis.core_pipes import PIPES, CorePipes
from davinci.passes.analysis.meetings import FLAG_OF_ALL, storing_pipe
from davinci.passes.analysis.not_provable import NotProvable

MOST_STEPS = 1 << 18
"""Most steps of a block, where iterations of loops are taken one by one."""


@dataclass
class BlockWalk:
    """Follows a block through its kernel.

    Attributes:
        pipes: of its core, where they are followed.
    """

    values: BlockValues
    loops: dict[ir.Value, range] = field(default_factory=dict)
    pipes: CorePipes | None = None

    def walk(self, nodes: Sequence[KernelNode], certain: bool) -> list[BlockStep]:
        found: list[BlockStep] = []
        for node in nodes:
            if isinstance(node, PlacedTransfer):
                found.append(self._transfer(node, certain))
            elif isinstance(node, LoopNode):
                found += self._loop(node, certain)
            elif isinstance(node, BranchNode):
                found += self._branch(node, certain)
            elif node.name in SYNC_OPS:
                if self.pipes is not None:
                    _synchronise(self.pipes, node)
            elif self.pipes is not None:
                found += _talk(self.pipes, node)
            else:
                found.append(self._meeting(node))
            if len(found) > MOST_STEPS:
                raise NotProvable(f"a block does more than {MOST_STEPS} steps")
        return found

    def _transfer(self, node: PlacedTransfer, certain: bool) -> GlobalAccess:
        try:
            form = self.values.form(node.offset)
        except DependsOnData:
            kind = node.memory.type
            size = math.prod(kind.shape) * kind.element_type.width // 8
            where = self._numbered(node)
            return GlobalAccess(node.op, node.what, node.memory, 0, (), size, False, *where)
        start, dims = form.constant, list(node.dims)
        for variable, coefficient in form.terms:
            if variable not in self.loops:
                raise NeedsIterations(variable)
            iterations = self.loops[variable]
            ends = iterations[0] * coefficient, iterations[-1] * coefficient
            start += min(ends)
            dims.append((len(iterations), abs(coefficient * iterations.step)))
        merged, run = merge_dims(dims, node.run)
        where = self._numbered(node)
        return GlobalAccess(node.op, node.what, node.memory, start, merged, run, certain, *where)

    def _numbered(self, node: PlacedTransfer) -> tuple[str, tuple[int, int]]:
        """The pipe of a transfer, and its number there."""
        number = 0 if self.pipes is None else self.pipes.work(node.pipe)
        return node.pipe, (number, number)

    def _loop(self, node: LoopNode, certain: bool) -> list[BlockStep]:
        variable = node.variable
        try:
            iterations = self.values.iterations(node.op)
        except DependsOnData:
            if node.meets:
                where = location_text(node.op.location)
                raise NotProvable(f"blocks meet in a loop that depends on data, {where}") from None
            return self._perhaps([node.body])
        if not iterations:
            return []
        if not node.meets:
            values = self.values.with_variable(variable, AffineForm(0, ((variable, 1),)))
            inside = BlockWalk(values, {**self.loops, variable: iterations})
            try:
                return self._counted(node, inside.walk(node.body, certain))
            except NeedsIterations as needed:
                if needed.variable != variable:
                    raise
        found: list[BlockStep] = []
        for number in iterations:
            values = self.values.with_variable(variable, AffineForm(number))
            found += BlockWalk(values, self.loops, self.pipes).walk(node.body, certain)
            if len(found) > MOST_STEPS:
                raise NotProvable(f"a block does more than {MOST_STEPS} steps")
        return found

    def _branch(self, node: BranchNode, certain: bool) -> list[BlockStep]:
        try:
            taken = bool(self.values.number(node.op.operands[0]))
        except DependsOnData:
            if node.meets:
                where = location_text(node.op.location)
                raise NotProvable(f"blocks meet if data say so, {where}") from None
            return self._perhaps(node.bodies)
        if taken:
            return self.walk(node.bodies[0], certain)
        return self.walk(node.bodies[1], certain) if len(node.bodies) > 1 else []

    def _perhaps(self, bodies: Sequence[list[KernelNode]]) -> list[BlockStep]:
        """The steps of bodies each of which a block runs or not, as data say."""
        found: list[BlockStep] = []
        for body in bodies:
            with nullcontext() if self.pipes is None else self.pipes.perhaps():
                found += self.walk(body, False)
        return found

    def _counted(self, node: LoopNode, steps: list[BlockStep]) -> list[BlockStep]:
        """The steps of a loop in which blocks do not meet, with numbers of pipes' work."""
        if self.pipes is None:
            return steps
        before = list(self.pipes.done)
        _repeat(self.pipes, node, self.values)
        after = self.pipes.done
        return [
            replace(step, numbers=(before[place] + 1, after[place]))
            for step in steps
            if isinstance(step, GlobalAccess)
            for place in [PIPES.index(step.pipe)]
        ]

    def _meeting(self, op: Op) -> BlockMeeting:
        lines = _lines_of(op.operands[0])
        own, early = attribute(op, "own", 0), attribute(op, "early")
        places = [(own, 0)] if early is None else [(early[0], early[1]), (own, 0)]
        counted = tuple((self.values.block + place, ahead) for place, ahead in places)
        group = attribute(op, "group", op.operands[0].type.shape[0])
        first, count = attribute(op, "seen", (self.values.block // group * group, group))
        seen = range(first, first + count)
        if op.name == "cce.read_counter":
            return BlockMeeting(op, lines, 0, True, counted, seen, reads=True)
        try:
            form = self.values.of(op.operands[1])
        except DependsOnData:
            where = location_text(op.location)
            raise NotProvable(f"the number that blocks wait for is not known, {where}") from None
        if len(form.terms) != 1 or form.terms[0][1] != 1:
            where = location_text(op.location)
            raise NotProvable(f"the number of a meeting does not count on, {where}")
        ((base, _),) = form.terms
        relative = not isinstance(base.owner, ir.Block)
        return BlockMeeting(op, lines, form.constant, relative, counted, seen)


def _repeat(pipes: CorePipes, node: LoopNode, values: BlockValues) -> None:
    """Has pipes do what a loop gives them to do."""
    try:
        iterations = values.iterations(node.op)
    except DependsOnData:
        with pipes.perhaps():
            _pass(pipes, node.body, values)
        return
    variable = node.variable

    def turn(number: int) -> None:
        _pass(pipes, node.body, values.with_variable(variable, AffineForm(number)))

    pipes.repeat(iterations, turn)


def _pass(pipes: CorePipes, nodes: Sequence[KernelNode], values: BlockValues) -> None:
    """Has pipes do what operations give them to do, wherever in memory."""
    for node in nodes:
        if isinstance(node, PlacedTransfer):
            pipes.work(node.pipe)
        elif isinstance(node, LoopNode):
            _repeat(pipes, node, values)
        elif isinstance(node, BranchNode):
            _choose(pipes, node, values)
        else:
            _synchronise(pipes, node)


def _choose(pipes: CorePipes, node: BranchNode, values: BlockValues) -> None:
    """Has pipes do what a branch gives them to do."""
    try:
        taken = bool(values.number(node.op.operands[0]))
    except DependsOnData:
        for body in node.bodies:
            with pipes.perhaps():
                _pass(pipes, body, values)
        return
    for body in node.bodies[:1] if taken else node.bodies[1:]:
        _pass(pipes, body, values)


def _synchronise(pipes: CorePipes, op: Op) -> None:
    """A flag between pipes, or a barrier."""
    if op.name == "cce.pipe_barrier":
        pipes.barrier(attribute(op, "pipe"))
        return
    source, target, event = (attribute(op, name) for name in ("src", "dst", "event"))
    if op.name == "cce.set_flag":
        pipes.set_flag(source, target, event)
    else:
        pipes.wait_flag(source, target, event)


def _talk(pipes: CorePipes, op: Op) -> Iterator[FlagSet | FlagWait]:
    """A flag between cores, or a meeting of all cores of a kind by one (`cce_to_hivm/cores.py`)."""
    if op.name == "cce.wait_core_flag":
        yield FlagWait(op, attribute(op, "flag"))
    elif op.name == "cce.set_core_flag":
        yield _set(
            pipes, op, attribute(op, "pipe"), attribute(op, "flag"), "of_all" in op.attributes
        )
    elif op.name != "cce.read_counter":
        stores = storing_pipe(op).name
        pipes.set_flag("MTE2", stores, -1)
        pipes.wait_flag("MTE2", stores, -1)
        yield _set(pipes, op, stores, FLAG_OF_ALL, of_all=True)
        yield FlagWait(op, FLAG_OF_ALL)


def _set(pipes: CorePipes, op: Op, pipe: str, flag: int, of_all: bool) -> FlagSet:
    number = pipes.work(pipe)
    return FlagSet(op, pipe, flag, of_all, number, pipes.behind(pipe))


def _lines_of(value: ir.Value) -> ir.Value:
    """The array of counters, which is an argument as it is."""
    while not isinstance(value.owner, ir.Block):
        if value.owner.name != "memref.cast":
            raise NotProvable("counters are a part of an array")
        value = value.owner.operands[0]
    return value


def merge_dims(dims: Sequence[tuple[int, int]], run: int) -> tuple[Dims, int]:
    """Strided dimensions in order of their strides, those that leave no gaps part of the run."""
    merged: list[tuple[int, int]] = []
    for count, stride in sorted(dims, key=lambda each: each[1]):
        if count == 1 or not stride:
            continue
        if not merged and stride <= run:
            run += (count - 1) * stride
        elif merged and stride == merged[-1][0] * merged[-1][1]:
            merged[-1] = (merged[-1][0] * count, merged[-1][1])
        else:
            merged.append((count, stride))
    return tuple(merged), run
