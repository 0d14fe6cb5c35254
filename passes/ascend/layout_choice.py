"""Chooses the layouts of all values of a function: the cheapest cut between rows and nz.

Each operator that may compute in nz is a node, as are operands and results of products, which have
layouts of their own: rows take a product longer. The others are in rows. A value that is made in
one layout and used in the other costs a relayout, once for all its uses:

    made in nz, some use in rows      made -> x, x -> each use: never
    made in rows, some use in nz      each use -> y: never, y -> made

Operators of the vector unit share kernels with each other, and with a product that they follow. A
relayout between two of them parts a kernel in two and costs a launch more, and where a statistic is
made in one layout and spread in the other, it leaves its kernel, so that the reduction and the
broadcast are launched alone. What takes in the result of a later product goes with that (a residual
is added where the product leaves), so it parts nothing.

A chain of reshapes and transposes that is a view in nz (`Rearrangement`) uses the value it begins
with. What depends on constants only is folded in any layout and costs nothing. Operations that have
layouts already keep them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.machine import Machine
from davinci.mlir import Op, ir, owner_of
from davinci.operators.layouts import is_view, slice_offset
from davinci.operators.tensors import NZ
from davinci.passes.analysis.min_cut import NEVER, FlowNetwork
from davinci.passes.ascend.attention_grouping import products_of_attention
from davinci.passes.ascend.fractal_padding import cleared_behind
from davinci.passes.ascend.grouping import is_free
from davinci.passes.ascend.layout_costs import UNIT, LayoutCosts, stored_bytes
from davinci.passes.ascend.layout_support import (
    Support,
    behind_products_of_bytes,
    ends_of_products,
    goes_by_fractals,
    joins_nz,
    keeps_matrices,
    last_makers,
    spreads_row,
    takes_nz,
)
from davinci.passes.ascend.product_grouping import is_widening
from davinci.passes.ascend.rearrangement import REARRANGED, Rearrangement, rearrangement, traces
from davinci.passes.ascend.tensor_ops import ON_CUBE, POOL, defining_op, is_elementwise, users_of

IN_NZ, IN_ROWS = FlowNetwork.SOURCE, FlowNetwork.SINK


SHARING = ("ascend.broadcast", "ascend.reduce", "ascend.reshape")
"""Operators that groups hold besides elementwise ones."""


@dataclass(frozen=True)
class Use:
    """A use of a value.

    Attributes:
        node: of the operator, or of its operand.
        shares_kernels: whether the operator may share one with what makes the value.
    """

    node: int
    shares_kernels: bool


@dataclass
class Layouts:
    """What was chosen.

    Attributes:
        in_nz: operations that compute in nz, and products whose results lie there.
        operands_in_nz: (product, number of the operand).
        views: of a reshape or transpose in nz the value whose bytes it has, and how.
    """

    in_nz: set[Op] = field(default_factory=set)
    operands_in_nz: set[tuple[Op, int]] = field(default_factory=set)
    views: dict[Op, tuple[ir.Value, Rearrangement]] = field(default_factory=dict)


class LayoutChoice:
    """Builds the network of a block and reads the cut."""

    def __init__(self, block: ir.Block, free: set[ir.Value], machine: Machine) -> None:
        """`free` are the values that are folded."""
        self._free = free
        self._costs, self._support = LayoutCosts.of(machine), Support(machine)
        self._network = FlowNetwork()
        self._made: dict[ir.Value, int] = {}
        self._uses: dict[ir.Value, list[Use]] = defaultdict(list)
        self._joint: dict[Op, int] = {}
        self._operands: dict[tuple[Op, int], int] = {}
        self._views: dict[Op, tuple[ir.Value, Rearrangement]] = {}
        self._product = last_makers(block, ON_CUBE, "ascend.reshape")
        self._following = last_makers(block, (*ON_CUBE, POOL))
        self._of_bytes = behind_products_of_bytes(block)
        self._cleared = ends_of_products(block) | cleared_behind(block)
        attention = products_of_attention(block, machine) if machine.split else []
        self._scores = {first.results[0] for first, _ in attention}
        self._weights = {(second, 0) for _, second in attention}
        for operation in reversed(list(block.operations)):
            self._visit(operation.operation)
        for value, uses in self._uses.items():
            self._price(value, list(dict.fromkeys(uses)))
        for operation in block.operations:
            if operation.operation.name == "ascend.broadcast":
                self._tie(operation.operation)

    def layouts(self) -> Layouts:
        side = self._network.source_side()
        return Layouts(
            {op for op, node in self._joint.items() if node in side},
            {key for key, node in self._operands.items() if node in side},
            {op: view for op, view in self._views.items() if self._joint[op] in side},
        )

    def _visit(self, op: Op) -> None:
        """Operations come after all that use them, so one without uses is not needed."""
        if len(op.results) == 1 and op.results[0] in self._free:
            return
        if has_layouts(op):
            self._visit_fixed(op)
        elif op.name in ON_CUBE or op.name == POOL:
            self._visit_product(op)
        elif is_elementwise(op):
            cleared = op in self._cleared
            node = self._node(op, takes_nz(op, cleared) or self._makes_bytes_behind_product(op))
            for operand in op.operands:
                self._use(operand, node, op)
        elif op.name == "ascend.broadcast":
            self._use(op.operands[0], IN_ROWS, op)
            self._statistics_node(op)
        elif op.name == "ascend.reduce":
            self._use(op.operands[0], self._statistics_node(op), op)
        elif op.name == "ascend.concat":
            node = self._node(op, joins_nz(op))
            for operand in op.operands:
                self._use(operand, node, op)
        elif op.name in REARRANGED or op.name == "ascend.slice":
            self._visit_movement(op)
        else:
            self._visit_fixed(op)

    def _visit_fixed(self, op: Op) -> None:
        """An operation whose layouts are given: rows if nothing is said."""
        for operand in op.operands:
            self._use(operand, given(operand), op)
        for result in op.results:
            self._made[result] = given(result)

    def _node(self, op: Op, may_be_nz: bool) -> int:
        """The node of an operation whose operands and result have one layout."""
        if not may_be_nz:
            return IN_ROWS
        node = self._joint[op] = self._made[op.results[0]] = self._network.node()
        self._network.edge(node, IN_ROWS, self._costs.padding(tensor_of(op.results[0].type)))
        return node

    def _use(self, value: ir.Value, node: int, user: Op) -> None:
        if value not in self._free:
            together = is_left_to_readers(defining_op(value))
            shares = together or not self._goes_with_product(user, value)
            self._uses[value].append(Use(node, shares_kernels(user) and shares))

    def _goes_with_product(self, user: Op, value: ir.Value) -> bool:
        """Whether a user of a value takes in the result of a product that comes after it, or widens
        the value for such users, which do it."""
        if is_left_to_readers(user):
            wide = user.results[0]
            return all(self._goes_with_product(reader, wide) for reader in users_of(user))
        others = (defining_op(operand) for operand in user.operands if operand != value)
        numbers = [self._product.get(op, -1) for op in others if op is not None]
        maker = defining_op(value)
        return max(numbers, default=-1) > (-1 if maker is None else self._product.get(maker, -1))

    def _visit_product(self, op: Op) -> None:
        """The cube takes and gives fractals; a kernel changes rows on their way, which costs.

        Windows are taken of fractals only. What is between the products of attention in one kernel
        has no layout in memory: it counts as rows, which all its operators have. Factors of f32 are
        rows, whose fractals have other columns than what is stored in nz.
        """
        for number, operand in enumerate(op.operands):
            single = tensor_of(operand.type).element == "f32"
            if single or (op, number) in self._weights:
                self._use(operand, IN_ROWS, op)
                continue
            node = self._operands[op, number] = self._network.node()
            self._network.edge(IN_NZ, node, self._costs.of_rows(op, operand))
            self._use(operand, node, op)
        if op.results[0] in self._scores:
            self._made[op.results[0]] = IN_ROWS
            return
        node = self._joint[op] = self._made[op.results[0]] = self._network.node()
        self._network.edge(IN_NZ, node, self._costs.of_rows(op, op.results[0]))

    def _makes_bytes_behind_product(self, op: Op) -> bool:
        """Whether an operator is on the way from the sums of a product to bytes in nz, or changes
        such bytes: kernels of products alone change the columns of fractals on their way, and see
        to what pads them. `ascend-fuse` brings to rows what they do not take in."""
        tensors = [tensor_of(value.type) for value in (*op.operands, *op.results)]
        of_bytes = any(x.element == "i8" for x in tensors)
        if not (op in self._of_bytes or (of_bytes and op in self._following)):
            return False
        return all(goes_by_fractals(x) for x in tensors)

    def _statistics_node(self, op: Op) -> int:
        """The node of a broadcast from rows, or of a reduction, whose results are rows unless it
        keeps the last two dimensions."""
        extra = self._support.extra_cycles(op)
        if extra is None and self._is_row_beside_product(op):
            extra = 0
        if extra is None:
            return IN_ROWS
        node = self._joint[op] = self._network.node()
        if op.name == "ascend.broadcast" or keeps_matrices(op):
            self._made[op.results[0]] = node
        longer = (node, IN_ROWS) if extra > 0 else (IN_NZ, node)
        self._network.edge(*longer, UNIT * abs(extra))
        return node

    def _is_row_beside_product(self, op: Op) -> bool:
        """Whether a row is spread for what follows a product or a pool only.

        What they are followed by is done in their kernels, which take rows as they are and see to
        what pads fractals; kernels of the vector unit alone hold no rows in fractals with padding.
        """
        users = users_of(op)
        return spreads_row(op) and bool(users) and all(user in self._following for user in users)

    def _visit_movement(self, op: Op) -> None:
        if op.results[0] not in self._uses:
            return
        view = self._view_of(op)
        node = self._node(op, view is not None)
        if view is None:
            self._use(op.operands[0], IN_ROWS, op)
            return
        source, how = view
        if how is not None:
            self._views[op] = source, how
        chain: Op = op
        while True:
            self._network.edge(IN_NZ, node, self._costs.movement(chain))
            if chain.operands[0] == source:
                break
            chain = owner_of(chain.operands[0])
        self._use(source, node, op)

    def _view_of(self, op: Op) -> tuple[ir.Value, Rearrangement | None] | None:
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

    def _price(self, value: ir.Value, uses: list[Use]) -> None:
        """Edges for what a value costs that is not made as it is used."""
        made = self._made.get(value, given(value))
        cost = self._costs.relayout(tensor_of(value.type))
        if all(use.node == made for use in uses):
            return
        if made != IN_ROWS:
            other = self._network.node()
            self._network.edge(made, other, cost)
            for use in uses:
                self._network.edge(other, use.node, NEVER)
        if made != IN_NZ:
            other = self._network.node()
            self._network.edge(other, made, cost)
            for use in uses:
                self._network.edge(use.node, other, NEVER)
        self._part(value, made, [use.node for use in uses if use.shares_kernels])

    def _part(self, value: ir.Value, made: int, uses: list[int]) -> None:
        """Edges for a kernel that is parted between a value and its uses: a launch more, and the
        value leaves and comes back, so that kernels are parted where values are narrow."""
        owner = defining_op(value)
        if owner is None or not (shares_kernels(owner) or owner in self._following):
            return
        other, another = self._network.node(), self._network.node()
        parted = self._costs.launch + self._costs.moved(2 * stored_bytes(tensor_of(value.type)))
        self._network.edge(made, other, parted)
        self._network.edge(another, made, parted)
        for use in uses:
            self._network.edge(other, use, NEVER)
            self._network.edge(use, another, NEVER)

    def _tie(self, broadcast: Op) -> None:
        """Edges from a broadcast to the reductions whose statistics it spreads."""
        node = self._joint.get(broadcast, IN_ROWS)
        for reduction in reductions_before(broadcast):
            other = self._joint.get(reduction, IN_ROWS)
            self._network.edge(node, other, 2 * self._costs.launch)
            self._network.edge(other, node, 2 * self._costs.launch)


def reductions_before(broadcast: Op) -> set[Op]:
    """The reductions of which a broadcast spreads statistics, or what is computed from them."""
    most = tensor_of(broadcast.results[0].type).count
    waiting, seen = [broadcast.operands[0]], set()
    found: set[Op] = set()
    while waiting:
        value = waiting.pop()
        owner = defining_op(value)
        if owner is None or owner in seen or tensor_of(value.type).count >= most:
            continue
        seen.add(owner)
        if owner.name == "ascend.reduce":
            found.add(owner)
        elif is_elementwise(owner) or owner.name == "ascend.reshape":
            waiting += owner.operands
    return found


def is_left_to_readers(op: Op | None) -> bool:
    """Whether an operator widens values for others, whose kernels do it."""
    return op is not None and is_widening(op) and is_free(op)


def shares_kernels(op: Op) -> bool:
    """Whether an operator is computed in one kernel with its neighbours, if all goes well."""
    return is_elementwise(op) or op.name in SHARING


def has_layouts(op: Op) -> bool:
    """Whether an operand or result has a layout other than rows."""
    return any(given(value) == IN_NZ for value in (*op.operands, *op.results))


def given(value: ir.Value) -> int:
    return IN_NZ if tensor_of(value.type).layout == NZ else IN_ROWS
