"""Shorter forms of what a step computes one thing after the other.

A loop takes as long as the chain of its step. tanh is a polynomial for small operands beside a
quotient of exponentials for others, with a small relative error; where products of f16 stand in the
loop, their factors' rounding is an absolute error of some 2^-12, and the quotient alone does, whose
absolute error is less than 2^-21:

    tanh x = 2 / (1 + exp(-2 x)) - 1
"""

from __future__ import annotations

from dataclasses import replace

from davinci.schedule.graph import Graph, Node, Operand, Scalar


def with_short_forms(graph: Graph) -> Graph:
    """The step of a loop around products, with its f32 tanh as quotients."""
    made = replace(graph, arrays=list(graph.arrays), nodes=[])
    for node in graph.nodes:
        array = graph.arrays[node.result]
        if node.name != "tanh" or array.element != "f32" or not node.values:
            made.nodes.append(node)
            continue
        (x,) = node.values

        def step(name: str, *operands: Operand, node: Node = node) -> int:
            result = made.add(made.arrays[node.result])
            made.nodes.append(Node(name, operands, result, members=node.members))
            return result

        e = step("exp", step("mul", x, Scalar(-2.0)))
        quotient = step("div", Scalar(2.0), step("add", e, Scalar(1.0)))
        last = Node("add", (quotient, Scalar(-1.0)), node.result, members=node.members)
        made.nodes.append(last)
    return made
