"""Reads operators on tensors as a `davinci.schedule.graph.Graph`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import python_value
from davinci.mlir import Op, ir
from davinci.operators import OPERATORS, Call, Tensor
from davinci.operators.composition import Composition
from davinci.schedule.graph import Graph, Node, Operand, Scalar

CONVERSION = "builtin.unrealized_conversion_cast"
"""In kernels: booleans seen as the bytes that hold them, and the other way."""


def node_of(op: Op, operands: Sequence[Operand], result: int, number: int = 0) -> Node:
    """An operator of `ascend`, the one with that number of its group; attributes of other dialects
    are left out."""
    attributes = {
        name: python_value(op.attributes[name]) for name in op.attributes if "." not in name
    }
    name = op.name.removeprefix("ascend.")
    return Node(name, tuple(operands), result, attributes, (number,))


def number_of(value: ir.Value) -> float | None:
    """The number that a value is everywhere, None if it is not one."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "ascend.full":
        return None
    return python_value(owner.attributes["value"])  # type: ignore[no-any-return]


def stored(value: ir.Value) -> Tensor:
    """A value as its buffer holds it: without sign, but for bytes, of which conversions ask it."""
    found = tensor_of(value.type)
    if found.bytes_each == 1 or not found.element.startswith("u"):
        return found
    return replace(found, element=found.element.removeprefix("u"))


def operators_of(around: Op) -> list[Op]:
    """The operators in a kernel, or in one of its loops; not numbers, which they have beside."""
    ops = (view.operation for view in around.regions[0].blocks[0].operations)
    return [op for op in ops if op.name.startswith("ascend.") and op.name != "ascend.full"]


def behind_conversions(value: ir.Value, operators: Sequence[Op]) -> ir.Value:
    """The result of an operator that a value stored by a kernel is."""
    while value.owner not in operators and value.owner.name == CONVERSION:
        value = value.owner.operands[0]
    return value


def _made_of(node: Node, graph: Graph) -> list[Node]:
    """The operators that a node is made of, with their values in the graph; of most itself."""
    rule = OPERATORS[node.name].made_of
    if rule is None or len(node.values) < len(node.operands):
        return [node]
    inputs = tuple(graph.arrays[value] for value in node.values)
    made = Composition(Call(inputs, (graph.arrays[node.result],), node.attributes))
    rule(made)
    values = list(node.values)
    values += [graph.add(member.result) for member in made.members[:-1]]
    values.append(node.result)
    assert made.members[-1].result == graph.arrays[node.result], "the last makes the result"
    return [
        Node(
            member.name,
            tuple(values[x] if isinstance(x, int) else Scalar(x) for x in member.operands),
            result,
            member.attributes,
            node.members,
        )
        for member, result in zip(made.members, values[len(inputs) :], strict=True)
    ]


def graph_of(
    ops: Iterable[Op], outputs: Sequence[ir.Value], first: int = 0
) -> tuple[Graph, list[ir.Value]]:
    """The graph of operators in order, and the values that are its inputs.

    Args:
        outputs: the results that others need, inputs as they are, or numbers.
        first: number of the first operator in its kernel.
    """
    graph, inputs = Graph(), []
    known: dict[ir.Value, int] = {}

    def operand(value: ir.Value) -> Operand:
        number = number_of(value)
        if number is not None:
            return Scalar(int(number) if isinstance(number, int) else number)
        if value not in known:
            known[value] = graph.add(stored(value))
            graph.inputs.append(known[value])
            inputs.append(value)
        return known[value]

    for number, op in enumerate(ops, first):
        operands = [operand(v) for v in op.operands]
        known[op.result] = graph.add(stored(op.result))
        graph.nodes += _made_of(node_of(op, operands, known[op.result], number), graph)
    for value in outputs:
        found = operand(value)
        if isinstance(found, Scalar):
            known[value] = graph.add(stored(value))
            graph.nodes.append(Node("copy", (found,), known[value]))
    graph.outputs = [known[value] for value in outputs]
    return graph, inputs
