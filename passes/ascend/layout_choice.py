"""Chooses the layouts of all values of a function: the cheapest cut between rows and nz.

Each operator that may compute in nz is a node, as are operands and results of products, which have
layouts of their own; the others are in rows. A value that is made in one layout and used in the
other costs a relayout, once for all its uses:

    made in nz, some use in rows      made -> x, x -> each use: never
    made in rows, some use in nz      each use -> y: never, y -> made

A chain of reshapes and transposes that is a view in nz (`Rearrangement`) uses the value it begins
with. What depends on constants only is folded in any layout and costs nothing. Operations that have
layouts already keep them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.operators.layouts import is_view, slice_offset
from davinci.operators.tensors import NZ
from davinci.passes.analysis.min_cut import NEVER, Network
from davinci.passes.ascend.layout_support import Costs, is_elementwise, takes_nz
from davinci.passes.ascend.rearrangement import REARRANGED, Rearrangement, rearrangement, traces
from davinci.passes.ascend.tensor_ops import PRODUCTS, defining_op

IN_NZ, IN_ROWS = Network.SOURCE, Network.SINK


@dataclass
class Layouts:
    """What was chosen.

    Attributes:
        in_nz: operations that compute in nz, and products whose results lie there.
        operands_in_nz: (product, number of the operand).
        views: of a reshape or transpose in nz the value whose bytes it has, and how.
    """

    in_nz: set[Any] = field(default_factory=set)
    operands_in_nz: set[tuple[Any, int]] = field(default_factory=set)
    views: dict[Any, tuple[Any, Rearrangement]] = field(default_factory=dict)


class Choice:
    """Builds the network of a block and reads the cut."""

    def __init__(self, block: Any, free: set[Any], costs: Costs) -> None:
        """`free` are the values that are folded."""
        self._free, self._costs = free, costs
        self._network = Network()
        self._made: dict[Any, int] = {}
        self._uses: dict[Any, list[int]] = defaultdict(list)
        self._joint: dict[Any, int] = {}
        self._operands: dict[tuple[Any, int], int] = {}
        self._views: dict[Any, tuple[Any, Rearrangement]] = {}
        for operation in reversed(list(block.operations)):
            self._visit(operation.operation)
        for value, uses in self._uses.items():
            self._price(value, uses)

    def layouts(self) -> Layouts:
        side = self._network.source_side()
        return Layouts(
            {op for op, node in self._joint.items() if node in side},
            {key for key, node in self._operands.items() if node in side},
            {op: view for op, view in self._views.items() if self._joint[op] in side},
        )

    def _visit(self, op: Any) -> None:
        """Operations come after all that use them, so one without uses is not needed."""
        if len(op.results) == 1 and op.results[0] in self._free:
            return
        if has_layouts(op):
            self._visit_fixed(op)
        elif op.name in PRODUCTS:
            self._visit_product(op)
        elif is_elementwise(op):
            node = self._node(op, takes_nz(op))
            for operand in op.operands:
                self._use(operand, node)
        elif op.name == "ascend.broadcast":
            self._node(op, takes_nz(op))
            self._use(op.operands[0], IN_ROWS)
        elif op.name == "ascend.reduce":
            self._visit_reduction(op)
        elif op.name in REARRANGED or op.name == "ascend.slice":
            self._visit_movement(op)
        else:
            self._visit_fixed(op)

    def _visit_fixed(self, op: Any) -> None:
        """An operation whose layouts are given: rows if nothing is said."""
        for operand in op.operands:
            self._use(operand, given(operand))
        for result in op.results:
            self._made[result] = given(result)

    def _node(self, op: Any, may_be_nz: bool) -> int:
        """The node of an operation whose operands and result have one layout."""
        if not may_be_nz:
            return IN_ROWS
        node = self._joint[op] = self._made[op.results[0]] = self._network.node()
        self._network.edge(node, IN_ROWS, self._costs.padding(tensor_of(op.results[0].type)))
        return node

    def _use(self, value: Any, node: int) -> None:
        if value not in self._free:
            self._uses[value].append(node)

    def _visit_product(self, op: Any) -> None:
        """The cube takes and gives fractals."""
        for number, operand in enumerate(op.operands):
            node = self._operands[op, number] = self._network.node()
            self._network.edge(IN_NZ, node, NEVER)
            self._use(operand, node)
        node = self._joint[op] = self._made[op.results[0]] = self._network.node()
        self._network.edge(IN_NZ, node, NEVER)

    def _visit_reduction(self, op: Any) -> None:
        """Gives rows, unless it keeps the last two dimensions."""
        if not takes_nz(op):
            self._use(op.operands[0], IN_ROWS)
        elif keeps_matrices(op):
            self._use(op.operands[0], self._node(op, True))
        else:
            node = self._joint[op] = self._network.node()
            self._use(op.operands[0], node)

    def _visit_movement(self, op: Any) -> None:
        if op.results[0] not in self._uses:
            return
        view = self._view_of(op)
        node = self._node(op, view is not None)
        if view is None:
            self._use(op.operands[0], IN_ROWS)
            return
        source, how = view
        if how is not None:
            self._views[op] = source, how
        chain = op
        while True:
            self._network.edge(IN_NZ, node, self._costs.movement(chain))
            if chain.operands[0] == source:
                break
            chain = defining_op(chain.operands[0])
        self._use(source, node)

    def _view_of(self, op: Any) -> tuple[Any, Rearrangement | None] | None:
        """The first value of the chain of `op` of which it is a view in nz."""
        result = replace(tensor_of(op.results[0].type), layout=NZ)
        if result.rank < 2:
            return None
        if op.name == "ascend.slice":
            operand = replace(tensor_of(op.operands[0].type), layout=NZ)
            offset = slice_offset(
                operand, result, attribute(op, "starts"), attribute(op, "strides")
            )
            return None if offset is None else (op.operands[0], None)
        for source, lies in reversed(traces(op.results[0])[1:]):
            operand = replace(tensor_of(source.type), layout=NZ)
            how = rearrangement(lies)
            if operand.rank > 1 and is_view(operand, result, how.shape, how.permutation):
                return source, how
        return None

    def _price(self, value: Any, uses: list[int]) -> None:
        """Edges for what a value costs that is not made as it is used."""
        made = self._made.get(value, given(value))
        cost = self._costs.relayout(tensor_of(value.type))
        if made != IN_ROWS and uses != [made]:
            other = self._network.node()
            self._network.edge(made, other, cost)
            for use in uses:
                self._network.edge(other, use, NEVER)
        if made != IN_NZ and uses != [made]:
            other = self._network.node()
            self._network.edge(other, made, cost)
            for use in uses:
                self._network.edge(use, other, NEVER)


def keeps_matrices(reduction: Any) -> bool:
    """Whether the last two dimensions of the operand are those of the result."""
    rank = tensor_of(reduction.operands[0].type).rank
    return max(attribute(reduction, "dims"), default=-1) < rank - 2


def has_layouts(op: Any) -> bool:
    """Whether an operand or result has a layout other than rows."""
    return any(given(value) == IN_NZ for value in (*op.operands, *op.results))


def given(value: Any) -> int:
    return IN_NZ if tensor_of(value.type).layout == NZ else IN_ROWS
