"""Which operators are attention: two products and what lies between them.

    %s = batch_matmul %q, %k
    ...                           scale, masks, softmax over the keys
    %o = batch_matmul %p, %v

Found by how values depend on each other: everything between the products that depends on the first
one and only on inputs besides (`davinci.schedule.attention.group` says what it may be), with
broadcasts and reshapes of operands, and a conversion of the result. A group is formed where a
schedule holds it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from davinci.machine import Machine
from davinci.mlir import Op, ir
from davinci.passes.analysis.group_graph import graph_of
from davinci.passes.ascend.attention_bands import RowEnds, band_of, with_band
from davinci.passes.ascend.attention_masks import MaskWriter
from davinci.passes.ascend.product_grouping import outputs_of
from davinci.passes.ascend.tensor_ops import CARRIED, PRODUCTS, defining_op, users_of
from davinci.schedule.attention.choice import require_schedule
from davinci.schedule.attention.group import AttentionGroup, read_attention
from davinci.schedule.graph import Graph
from davinci.schedule.vector.space import NoSpace

BEHIND = frozenset({"ascend.cast", "ascend.reshape"})
"""Operators behind the second product."""

MOST_BETWEEN = 64
"""Operators between the products of attention, a limit to the search."""


def attention_groups(block: ir.Block, machine: Machine, cores: int) -> list[list[Op]]:
    """The operators of each attention of a block, in their order."""
    masks, found = MaskWriter(), []
    ends: dict[Hashable, RowEnds | None] = {}
    for ops, graph, inputs, group in attention_in(block, machine, cores):
        results = (member.results[0] for member in ops)
        values = dict(zip(graph.inputs, inputs, strict=True))
        values |= {node.result: x for node, x in zip(graph.nodes, results, strict=True)}
        band = band_of(group, ops, values, ends) if machine.split else None
        found.append(masks.ready(group, ops, values) if band is None else with_band(band, ops))
    return found


def attention_in(
    block: ir.Block, machine: Machine, cores: int
) -> Iterator[tuple[list[Op], Graph, list[ir.Value], AttentionGroup]]:
    """Each attention of a block: its operators in their order, the graph of these with the values
    that it takes, and how that is read."""
    places: dict[Op, int] = {op.operation: place for place, op in enumerate(block.operations)}
    known: dict[Hashable, AttentionGroup | None] = {}
    for op in places:
        if op.name not in PRODUCTS or (members := between(op)) is None:
            continue
        members |= {op, *behind(op)}
        ops = sorted(members | carried(members), key=places.__getitem__)
        graph, inputs = graph_of(ops, outputs_of(ops))
        key = graph.key()
        if key not in known:
            known[key] = attention_of(graph, machine, cores)
        group = known[key]
        if group is not None:
            yield ops, graph, inputs, group


def products_of_attention(block: ir.Block, machine: Machine) -> list[tuple[Op, Op]]:
    """The two products of each attention of a block that one kernel of a machine can hold."""
    found = attention_in(block, machine, machine.cores)
    products = ([op for op in ops if op.name in PRODUCTS] for ops, *_ in found)
    return [(first, second) for first, second in products]


def attention_of(graph: Graph, machine: Machine, cores: int) -> AttentionGroup | None:
    """The attention that a group is, if one kernel can hold it."""
    try:
        group = read_attention(graph)
        require_schedule(group.attention, machine, cores)
    except NoSpace:
        return None
    return group


def between(product: Op) -> set[Op] | None:
    """The product that the first operand of `product` depends on, and what is between the two;
    None if that is not exactly one."""
    order: list[Op] = []
    seen: set[Op] = set()
    waiting: list[tuple[Op | None, bool]] = [(producer(product.operands[0]), False)]
    while waiting and len(seen) <= MOST_BETWEEN:
        op, done = waiting.pop()
        if op is None:
            continue
        if done:
            order.append(op)
        elif op not in seen:
            seen.add(op)
            waiting.append((op, True))
            if op.name not in PRODUCTS:
                waiting += [(producer(value), False) for value in op.operands]
    firsts = {op for op in order if op.name in PRODUCTS}
    if len(firsts) != 1 or waiting:
        return None
    depending = set(firsts)
    for op in order:
        if any(producer(value) in depending for value in op.operands):
            depending.add(op)
    # A kernel that is there already lies between two products, it does not join them.
    return None if any(op.name == "func.call" for op in depending) else depending


def producer(value: ir.Value) -> ir.Operation | None:
    """The operation that a value is the result of, None of an argument."""
    owner = defining_op(value)
    return None if owner is None else owner.operation


def behind(product: Op) -> list[Op]:
    """A conversion of a product's result that is all that is made of it, and what leads there."""
    found: list[Op] = []
    op = product
    while len(uses := list(op.results[0].uses)) == 1:
        op = uses[0].owner.operation
        if op.name not in BEHIND:
            break
        found.append(op)
    while found and found[-1].name != "ascend.cast":
        found.pop()
    return found[:2]


def carried(members: set[Op]) -> set[Op]:
    """Broadcasts and reshapes that only they need."""
    found: set[Op] = set()
    waiting = [producer(value) for op in members for value in op.operands]
    while waiting:
        op = waiting.pop()
        if op is None or op.name not in CARRIED or op in members or op in found:
            continue
        if all(user in members | found for user in users_of(op)):
            found.add(op)
            waiting += [producer(value) for value in op.operands]
    return found
