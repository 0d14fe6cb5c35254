"""ascend-split-moves: moves that take long at once become several, one after the other.

before:
    %t = "ascend.transpose"(%x) {permutation = array<i64: 0, 3, 2, 1>}
        : (tensor<1x4x64x192xf16>) -> tensor<1x192x64x4xf16>
after:
    %s = "ascend.transpose"(%x) {permutation = array<i64: 0, 1, 3, 2>}
        : (tensor<1x4x64x192xf16>) -> tensor<1x4x192x64xf16>
    %t = "ascend.transpose"(%s) {permutation = array<i64: 0, 2, 3, 1>}
        : (tensor<1x4x192x64xf16>) -> tensor<1x192x64x4xf16>

Transfers move runs of whole blocks, and the vector unit squares of 16 x 16 words and whole points
of an array. What needs several of these at a time, as transpositions that turn three dimensions
round and pads between elements of several dimensions do, is taken apart into steps that need one
each (`davinci.schedule.moves.move_steps`), where these with their launches take clearly less time:
always where only the scalar unit could do all at once, but for a few elements. Broadcasts that
repeat numbers along rows, and rows, do one after the other likewise (`repeated_rows`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from davinci import machine as machines
from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.mlir import Op, ir
from davinci.operators import Tensor
from davinci.operators.tensors import ND
from davinci.passes.analysis.group_graph import number_of
from davinci.passes.analysis.rewrite_counts import note
from davinci.passes.ascend.repeated_rows import split_rows
from davinci.passes.ascend.sums_of_exponentials import PAYS, Chip
from davinci.passes.ascend.tensor_ops import TensorOps, tensor_functions
from davinci.passes.pipeline.base import Pass, option, register_pass
from davinci.schedule.graph import Graph, Node, Operand, Scalar
from davinci.schedule.group_plan import plan_of
from davinci.schedule.moves.choice import MovePlan
from davinci.schedule.moves.move_steps import (
    DimensionSteps,
    MoveStep,
    TransposeSteps,
    cheapest_steps,
)
from davinci.schedule.vector.space import NoSpace

BOUNDS = {"pad": ("low", "high", "interior"), "slice": ("starts", "limits", "strides")}
"""Operators that treat each dimension on its own, and their attributes."""


@register_pass
@dataclass(frozen=True)
class AscendSplitMovesPass(Pass):
    """Take moves apart into steps that take less time together."""

    NAME = "ascend-split-moves"

    machine: str = option("ascend910", "machine file that gives sizes and limits")
    cores: int = option(0, "most blocks a kernel may use; 0: all cores of the machine")

    def run(self, op: Op) -> None:
        loaded = machines.load(self.machine)
        machine, cores = machines.for_vector(loaded), machines.vector_cores_for(loaded, self.cores)
        chip = Chip(machine, cores, joined=False)
        known: dict[Hashable, list[MoveStep]] = {}
        blocks = [function.regions[0].blocks[0] for function in tensor_functions(op)]
        count = sum(
            MoveSplitting(move, chip).split(known) for block in blocks for move in moves_of(block)
        )
        count += sum(split_rows(block, chip) for block in blocks)
        note(op, "split-moves", count)


def moves_of(block: ir.Block) -> Iterator[Op]:
    """The operators of a block that can be taken apart, on arrays in rows."""
    for operation in list(block.operations):
        op = operation.operation
        name = op.name.removeprefix("ascend.")
        if name != "transpose" and name not in BOUNDS:
            continue
        source, result = tensor_of(op.operands[0].type), tensor_of(op.results[0].type)
        if source.layout == result.layout == ND and source.count and result.count:
            yield op


class MoveSplitting:
    """Weighs the ways to take one operator apart."""

    def __init__(self, op: Op, chip: Chip) -> None:
        self._op, self._chip = op, chip
        self._name = op.name.removeprefix("ascend.")
        self._source, self._result = tensor_of(op.operands[0].type), tensor_of(op.results[0].type)
        keys = BOUNDS.get(self._name, ("permutation",))
        self._attributes = {key: tuple(attribute(op, key)) for key in keys}

    def split(self, known: dict[Hashable, list[MoveStep]]) -> bool:
        """Replaces the operator by the steps that take least time, if that is clearly less than it
        takes alone (`PAYS`); whether it did.

        Args:
            known: the steps of operators that were weighed, by their groups.
        """
        shapes = self._source.shape, self._result.shape
        whole = self._graph(MoveStep(self._name, self._attributes, *shapes))
        key = whole.key()
        if key not in known:
            known[key] = self._steps(whole)
        self._build(known[key])
        return bool(known[key])

    def _steps(self, whole: Graph) -> list[MoveStep]:
        """The steps that take clearly less time than the operator alone; none if there are none."""
        shapes = self._source.shape, self._result.shape
        alone = self._chip.cycles(whole)
        smaller = min(self._source, self._result, key=lambda array: array.count)
        least = self._chip.cycles(Graph([smaller, smaller], [Node("copy", (0,), 1)], [0], [1]))
        if alone is None or least is None:
            return []
        search: TransposeSteps | DimensionSteps
        if self._name == "transpose":
            search = TransposeSteps(self._source.shape, self._attributes["permutation"])
        else:
            search = DimensionSteps(self._name, self._attributes, *shapes)
        return cheapest_steps(search, self._cycles, least, PAYS * alone)

    def _build(self, steps: list[MoveStep]) -> None:
        if not steps:
            return
        ops, (value, *others) = TensorOps(), self._op.operands
        with self._op.location, ir.InsertionPoint(self._op):
            for step in steps:
                result = Tensor(step.result, self._source.element)
                value = ops.emit(step.name, [value, *others], result, **step.attributes)
        self._op.results[0].replace_all_uses_with(value)
        self._op.erase()

    def _graph(self, step: MoveStep) -> Graph:
        """The group of one step."""
        element = self._source.element
        graph = Graph([Tensor(step.source, element)], [], [0], [])
        operands: list[Operand] = [0]
        for value in self._op.operands[1:]:
            number = number_of(value)
            operands.append(
                Scalar(number) if number is not None else graph.add(Tensor((), element))
            )
        graph.inputs = list(range(len(graph.arrays)))
        result = graph.add(Tensor(step.result, element))
        graph.nodes.append(Node(step.name, tuple(operands), result, dict(step.attributes)))
        graph.outputs.append(result)
        return graph

    def _cycles(self, step: MoveStep) -> float | None:
        """Estimated cycles of a step with its launch; None of one that the scalar unit would do."""
        graph = self._graph(step)
        return None if self._by_scalars(graph) else self._chip.cycles(graph)

    def _by_scalars(self, graph: Graph) -> bool:
        """Whether the scalar unit moves some of a group, or nothing can."""
        try:
            plan = plan_of(graph, self._chip.machine, self._chip.cores)
        except NoSpace:
            return True
        return isinstance(plan, MovePlan) and plan.schedule.scalar
