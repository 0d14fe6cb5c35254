"""Which operators compute in nz, and how much longer or shorter they take there than in rows."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping
from dataclasses import replace

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute, python_value
from davinci.machine import Machine
from davinci.mlir import Op, ir
from davinci.operators import OPERATORS, Tensor
from davinci.operators.layouts import joins_blocks
from davinci.operators.tensors import ND, NZ, lanes, width_of
from davinci.passes.analysis.group_graph import graph_of
from davinci.passes.ascend.tensor_ops import (
    CONSTANTS,
    ON_CUBE,
    POOL,
    SCALED_ON_LEAVING,
    defining_op,
    full_value,
    is_elementwise,
)
from davinci.schedule.graph import Graph
from davinci.schedule.products.epilogue import PAIR
from davinci.schedule.vector.schedule import estimate
from davinci.schedule.vector.space import NoSpace
from davinci.units import BLOCK_BYTES, FRACTAL_SIDE, ceil_div

IN_PLACE = "ascend.in_place"
"""Attribute of concatenations and slices of parts that are computed one after the other: where that
can be, operands are made inside the result, and slices are views of what they read."""

NZ_BITS = (1, 8, 16, 32)
"""Sizes of elements that may lie in fractals."""


class Support:
    """What kernels of a machine compute; equal operators are asked for once."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._known: dict[Hashable, int | None] = {}

    def extra_cycles(self, op: Op) -> int | None:
        """What a reduction of values in nz, or a broadcast to nz, takes more than one in rows.

        None if no group of operators can hold it.
        """
        rows, _ = graph_of([op], [op.results[0]])
        nz = Graph(list(rows.arrays), rows.nodes, rows.inputs, rows.outputs)
        (node,) = nz.nodes
        changed = [*node.values[:1]] if node.name == "reduce" else [node.result]
        if node.name == "reduce" and keeps_matrices(op):
            changed.append(node.result)
        for number in changed:
            array = nz.arrays[number]
            if array.rank < 2 or width_of(array.element) not in NZ_BITS:
                return None
            nz.arrays[number] = replace(array, layout=NZ)
        in_nz, in_rows = self._cycles(nz), self._cycles(rows)
        return None if in_nz is None else in_nz - (in_nz if in_rows is None else in_rows)

    def _cycles(self, graph: Graph) -> int | None:
        """Estimated cycles of a group that others may join; None if there is no kernel for it."""
        (node,) = graph.nodes
        key = (node.name, node.operands, tuple(graph.arrays), repr(sorted(node.attributes.items())))
        if key not in self._known:
            try:
                self._known[key] = estimate(graph, self._machine, self._machine.cores)
            except NoSpace:
                self._known[key] = None
        return self._known[key]


def takes_nz(op: Op, cleared: bool = False) -> bool:
    """Whether an elementwise operator has a kernel for operands and result in nz.

    It does to padding what it does to elements, so that must leave zeros, unless these are put
    there behind it (`cleared`).
    """
    result = tensor_of(op.results[0].type)
    tensors = [result, *(tensor_of(v.type) for v in op.operands)]
    if any(x.rank < 2 or width_of(x.element) not in NZ_BITS for x in tensors):
        return False
    if len({lanes(x.element) for x in tensors}) > 1:
        return False
    stored = replace(result, layout=NZ).stored_shape
    return cleared or result.count == math.prod(stored) or keeps_zero(op)


def goes_by_fractals(x: Tensor) -> bool:
    """Whether a value may lie in nz beside others whose fractals have another number of columns."""
    if x.rank < 2 or width_of(x.element) not in NZ_BITS:
        return False
    return width_of(x.element) > 8 or ceil_div(x.shape[-1], FRACTAL_SIDE) % PAIR == 0


def behind_products_of_bytes(block: ir.Block) -> set[Op]:
    """Operators that change elements of what products of bytes make, and these."""
    found: set[Op] = set()
    for operation in block.operations:
        op = operation.operation
        if op.name in ON_CUBE:
            if tensor_of(op.operands[0].type).element == "i8":
                found.add(op)
        elif is_elementwise(op) and any(defining_op(v) in found for v in op.operands):
            found.add(op)
    return found


def ends_of_products(block: ir.Block) -> set[Op]:
    """Products, pools, and the operators that their kernels will do: of what these make, of
    constants, and of rows of constants."""
    found: set[Op] = set()

    def is_there(value: ir.Value) -> bool:
        owner = defining_op(value)
        if owner is not None and owner.name == "ascend.broadcast":
            owner = defining_op(owner.operands[0])
        return owner in found or (owner is not None and owner.name in CONSTANTS)

    def goes_on(op: Op) -> bool:
        if not is_elementwise(op) or tensor_of(op.results[0].type).element == "i1":
            return False  # Flags do not come to rows again.
        return any(defining_op(v) in found for v in op.operands) and all(map(is_there, op.operands))

    for operation in block.operations:
        op = operation.operation
        if op.name in ON_CUBE or op.name == POOL or goes_on(op):
            found.add(op)
    return found


def joins_nz(op: Op) -> bool:
    """Whether a concatenation has a kernel for operands and result in nz."""
    operands = [tensor_of(value.type) for value in op.operands]
    legal = operands[0].rank > 1 and width_of(operands[0].element) in NZ_BITS
    return legal and joins_blocks(operands, attribute(op, "dim"))


def joins_in_place(op: Op) -> bool:
    """Whether a concatenation in nz is its operands' arrays one behind the other."""
    result = tensor_of(op.results[0].type)
    dim = attribute(op, "dim")
    before = result.shape[: -2 if dim == result.rank - 1 else dim]
    return joins_nz(op) and math.prod(before) == 1


def joins_rows(op: Op) -> bool:
    """Whether a concatenation in rows is its operands' arrays, which are whole blocks long, one
    behind the other."""
    operands, dim = [tensor_of(value.type) for value in op.operands], attribute(op, "dim")
    if any(each.layout != ND for each in operands) or math.prod(operands[0].shape[:dim]) != 1:
        return False
    return all(each.size_bytes % BLOCK_BYTES == 0 for each in operands[:-1])


def keeps_zero(op: Op, beside: Mapping[ir.Value, float] | None = None) -> bool:
    """Whether an elementwise result is zero wherever its operands are.

    Args:
        beside: operands that are no zeros there, but this one number each, as are all that are one
            number everywhere.
    """
    numbers = []
    for operand in op.operands:
        known = (beside or {}).get(operand, full_value(operand))
        numbers.append((tensor_of(operand.type).element, 0 if known is None else known))
    attributes = {key: python_value(op.attributes[key]) for key in op.attributes}
    record = OPERATORS[op.name.removeprefix("ascend.")]
    return record.makes_zero(numbers, tensor_of(op.results[0].type).element, attributes)


def spreads_row(op: Op) -> bool:
    """Whether a broadcast makes the rows of matrices equal."""
    rank = tensor_of(op.results[0].type).rank
    dims = attribute(op, "dims")
    return op.name == "ascend.broadcast" and rank - 1 in dims and rank - 2 not in dims


def last_makers(block: ir.Block, makers: Collection[str], on_the_way: str = "") -> dict[Op, int]:
    """For each of some operators, and each that changes elements of what these make: the number of
    the last one of them that it depends on.

    Args:
        makers: names.
        on_the_way: an operator through which elements go beside elementwise ones.
    """
    found: dict[Op, int] = {}
    for number, operation in enumerate(block.operations):
        op = operation.operation
        if op.name in makers:
            found[op] = number
        elif is_elementwise(op) or op.name in (on_the_way, *SCALED_ON_LEAVING):
            owners = (defining_op(operand) for operand in op.operands)
            last = max((found.get(owner, -1) for owner in owners if owner is not None), default=-1)
            if last >= 0:
                found[op] = last
    return found


def keeps_matrices(reduction: Op) -> bool:
    """Whether the last two dimensions of the operand are those of the result."""
    rank = tensor_of(reduction.operands[0].type).rank
    return max(attribute(reduction, "dims"), default=-1) < rank - 2
