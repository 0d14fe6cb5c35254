"""Broadcasts that first make a row and then repeat it.

before:
    %b = "ascend.broadcast"(%x) {dims = array<i64: 1>} : (tensor<224xf32>) -> tensor<320x224x4xf32>
after:
    %r = "ascend.broadcast"(%x) {dims = array<i64: 0>} : (tensor<224xf32>) -> tensor<224x4xf32>
    %b = "ascend.broadcast"(%r) {ascend.begins, dims = array<i64: 1, 2>}
        : (tensor<224x4xf32>) -> tensor<320x224x4xf32>

A number that is repeated a few times along a row is no row for the vector unit: all that it is
combined with is computed with as many lanes as the number is repeated, of those that the unit has.
Made once, the row is read again by all kernels for nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.mlir import Op, ir
from davinci.operators.tensors import ND, Tensor
from davinci.passes.analysis.group_graph import graph_of, number_of
from davinci.passes.ascend.grouping import BEGINS
from davinci.passes.ascend.product_grouping import outputs_of
from davinci.passes.ascend.sums_of_exponentials import PAYS, Chip
from davinci.passes.ascend.tensor_ops import TensorOps, defining_op, is_elementwise, users_of
from davinci.schedule.graph import Graph, Node

CAST = "ascend.cast"


@dataclass(frozen=True)
class RepeatedRow:
    """A broadcast of an array to the same places of all leading positions.

    Attributes:
        source: the array.
        front: leading dimensions of the result along which all positions are alike.
        dims: dimensions of the result that are those of the array, all behind these.
        result: of the broadcast.
    """

    source: Tensor
    front: int
    dims: tuple[int, ...]
    result: Tensor

    @staticmethod
    def of(op: Op) -> Iterator[RepeatedRow]:
        """The ways to take a broadcast apart, those with the longest rows first."""
        source, result = tensor_of(op.operands[0].type), tensor_of(op.results[0].type)
        dims = tuple(attribute(op, "dims"))
        if not (source.layout == result.layout == ND and source.count):
            return
        for front in range(1, min(dims, default=0) + 1):
            found = RepeatedRow(source, front, dims, result)
            if source.count < found.row.count < result.count:
                yield found

    @property
    def row(self) -> Tensor:
        """The row that the first of the two broadcasts makes."""
        return Tensor(self.result.shape[self.front :], self.result.element)

    @property
    def inside(self) -> list[int]:
        """Dimensions of the row that are those of the array."""
        return [dim - self.front for dim in self.dims]

    @property
    def behind(self) -> list[int]:
        """Dimensions of the result that are those of the row."""
        return list(range(self.front, self.result.rank))

    def cycles(self, group: Graph, chip: Chip) -> float | None:
        """Estimated cycles of both kernels.

        Args:
            group: that begins with the broadcast.
        """
        alone = Graph([self.source, self.row], [repeated(self.inside)], [0], [1])
        arrays, nodes = [self.row, *group.arrays[1:]], [repeated(self.behind), *group.nodes[1:]]
        return chip.cycles(alone, replace(group, arrays=arrays, nodes=nodes))

    def build(self, op: Op) -> None:
        """Builds both in front of the broadcast, and has its users take what they make."""
        ops = TensorOps()
        with op.location, ir.InsertionPoint(op):
            row = ops.emit("broadcast", [op.operands[0]], self.row, dims=self.inside)
            given = {"dims": self.behind, BEGINS: True}
            made = ops.emit("broadcast", [row], self.result, **given)
        op.results[0].replace_all_uses_with(made)
        op.erase()


def repeated(dims: Sequence[int]) -> Node:
    """A broadcast as the first node of a group."""
    return Node("broadcast", (0,), 1, {"dims": list(dims)})


def group_of(op: Op) -> Graph:
    """A broadcast with the first elementwise operator that reads it, and with what is cast for that
    and of its result, as one group."""
    ops = [op]
    while (reader := first_reader(ops[-1])) is not None and reader.name == CAST:
        ops.append(reader)
    if reader is not None:
        made = [defining_op(value) for value in reader.operands]
        before = [x.operation for x in made if x is not None and x.name == CAST]
        ops += [x for x in before if x not in ops]
        ops += [reader, *(user for user in users_of(reader) if user.name == CAST)]
    graph, _ = graph_of(ops, outputs_of(ops))
    return graph


def first_reader(op: Op) -> Op | None:
    """The first elementwise operator that reads a result."""
    return next((user for user in users_of(op) if is_elementwise(user)), None)


def split_rows(block: ir.Block, chip: Chip) -> int:
    """Takes broadcasts of a block apart where that takes clearly less time; how many."""
    known: dict[Hashable, RepeatedRow | None] = {}
    count = 0
    for op in [operation.operation for operation in block.operations]:
        if op.name != "ascend.broadcast" or BEGINS in op.attributes:
            continue
        ways = list(RepeatedRow.of(op))
        if not ways or number_of(op.operands[0]) is not None:
            continue
        group = group_of(op)
        key = group.key()
        if key not in known:
            known[key] = best_of(ways, group, chip)
        if (found := known[key]) is not None:
            found.build(op)
            count += 1
    return count


def best_of(ways: Sequence[RepeatedRow], group: Graph, chip: Chip) -> RepeatedRow | None:
    """The way that takes clearly less time than a group that begins with a broadcast; None if none
    does."""
    least = chip.cycles(group)
    if least is None:
        return None
    least *= PAYS
    best = None
    for way in ways:
        cycles = way.cycles(group, chip)
        if cycles is not None and cycles < least:
            best, least = way, cycles
    return best
