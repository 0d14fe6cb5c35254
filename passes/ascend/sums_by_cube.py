"""Sums over the rows of matrices in fractals, as products with a row of ones.

    reduce(cast(x), add, rows)   ->   ones [b, 1, m] x [b, m, n]

An x of f16 that lies in GM goes to the cube as it is, which multiplies exactly and adds in f32. The
vector unit would make f32 of it first, and add rows of 16 lanes at different distances. What is
done to sums with numbers alone is done to them as the product gives them, and so shares its kernel.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from davinci.dialects.ascend_types import tensor_of, tensor_type
from davinci.dialects.base import attribute
from davinci.errors import CompileError
from davinci.machine import Machine, within_l2
from davinci.mlir import Op, ir
from davinci.operators.products import product_name
from davinci.operators.tensors import NZ, Tensor
from davinci.passes import builder
from davinci.passes.ascend.group_judge import judge_of
from davinci.passes.ascend.tensor_ops import (
    HALF,
    TensorOps,
    defining_op,
    full_value,
    is_elementwise,
    users_of,
)
from davinci.schedule.graph import Graph, Node
from davinci.schedule.products.candidates import Wanted
from davinci.schedule.products.choice import candidates
from davinci.schedule.products.estimate import estimate
from davinci.schedule.products.group import read_group
from davinci.schedule.vector.space import NoSpace

WIDE = "f32"


def sums_by_cube(block: ir.Block, machine: Machine, cores: int) -> int:
    """Has the cube add where it is estimated to take less time; how often it does."""
    faster: dict[Tensor, bool] = {}
    count = 0
    for op in [operation.operation for operation in block.operations]:
        if op.name != "ascend.reduce" or (x := halves_of_rows(op)) is None:
            continue
        kind = tensor_of(x.type)
        if kind not in faster:
            # Another kernel has just made it: the L2 holds it, where it has room.
            view = machine if kind.size_bytes > machine.l2.bytes else within_l2(machine)
            judge = judge_of(view, cores)
            known = judge.cycles(reduction_graph(kind), growing=False)
            cycles = product_cycles(product_graph(kind), view, cores) + judge.launch
            faster[kind] = known is None or cycles < known
        if faster[kind]:
            replace_sum(op, x)
            count += 1
    return count


def halves_of_rows(op: Op) -> ir.Value | None:
    """The f16 in fractals, in GM, whose rows a reduction adds; None if that is not what it does."""
    x = op.operands[0]
    cast = defining_op(x)
    if cast is not None and cast.name == "ascend.cast":
        x = cast.operands[0]
    kind, maker = tensor_of(x.type), defining_op(x)
    rows = attribute(op, "kind") == "add" and list(attribute(op, "dims")) == [kind.rank - 2]
    computed = maker is not None and maker.name.startswith("ascend.")
    if not rows or computed or kind.rank not in (2, 3) or kind.count == 0:
        return None
    return x if (kind.element, kind.layout) == (HALF, NZ) else None


def shapes_of(x: Tensor) -> tuple[Tensor, Tensor]:
    """The ones and the sums."""
    *outer, rows, columns = x.shape
    return Tensor((*outer, 1, rows), HALF, NZ), Tensor((*outer, 1, columns), WIDE)


def product_graph(x: Tensor) -> Graph:
    ones, sums = shapes_of(x)
    return Graph([ones, x, sums], [Node(product_name(x.rank), (0, 1), 2)], [0, 1], [2])


def reduction_graph(x: Tensor) -> Graph:
    dim = x.rank - 2
    sums = Tensor((*x.shape[:dim], x.shape[-1]), WIDE)
    reduce = Node("reduce", (1,), 2, {"kind": "add", "dims": (dim,)})
    return Graph([x, replace(x, element=WIDE), sums], [Node("cast", (0,), 1), reduce], [0], [2])


def product_cycles(graph: Graph, machine: Machine, cores: int) -> float:
    """Estimated; infinite if there is no schedule."""
    try:
        product = read_group(graph, machine).product
        ways, _ = candidates(product, machine, cores, Wanted(), 1)
    except (CompileError, NoSpace):
        return float("inf")
    return estimate(product, ways[0], machine, cores)


def replace_sum(op: Op, x: ir.Value) -> None:
    """Puts a product in the place of a reduction, and what follows it with numbers alone on its
    result."""
    kind, result = tensor_of(x.type), tensor_of(op.results[0].type)
    ones, sums = shapes_of(kind)
    with op.location, ir.InsertionPoint(op):
        ops = TensorOps()
        row = ops.array(np.ones(ones.shape, np.float16), ones)
        product = builder.op(f"ascend.{product_name(kind.rank)}", [row, x], [tensor_type(sums)])
        made = ops.cast(product.result, result.element)
    last: Op = op
    while (follower := only_follower(last)) is not None:
        with follower.location, ir.InsertionPoint(follower):
            ops = TensorOps()
            operands = [
                made if value == last.results[0] else like(value, made, ops)
                for value in follower.operands
            ]
            found = replace(
                tensor_of(made.type), element=tensor_of(follower.results[0].type).element
            )
            attributes = {name: follower.attributes[name] for name in follower.attributes}
            made = builder.op(follower.name, operands, [tensor_type(found)], **attributes).result
        last = follower
    with last.location, ir.InsertionPoint(last):
        shape = tensor_of(last.results[0].type).shape
        last.results[0].replace_all_uses_with(TensorOps().reshape(made, shape))


def only_follower(op: Op) -> Op | None:
    """The elementwise operator that alone reads a result, with nothing beside it but numbers."""
    users = users_of(op)
    if len(users) != 1 or not is_elementwise(users[0]):
        return None
    others = [value for value in users[0].operands if value != op.results[0]]
    return users[0] if all(full_value(value) is not None for value in others) else None


def like(value: ir.Value, made: ir.Value, ops: TensorOps) -> ir.Value:
    """A number everywhere in the shape of another value."""
    return ops.full(tensor_of(made.type).shape, tensor_of(value.type).element, full_value(value))
