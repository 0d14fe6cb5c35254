"""Some rows of C as a group of their own: the product of these rows of A, and what follows it.

    C = gelu(A B + bias + R)       rows r of it:  C[r] = gelu(A[r] B + bias + R[r])

Nothing of a row of C depends on other rows, where all that stands around the product goes element
by element, or repeats something.
"""

from __future__ import annotations

import math
from dataclasses import replace

from davinci.operators import OPERATORS
from davinci.operators.products import TRANSPOSE_A
from davinci.operators.tensors import ND
from davinci.schedule.graph import Graph, Node
from davinci.schedule.products.group import CONVOLUTION, is_product
from davinci.schedule.vector.space import NoSpace

RowAxes = dict[int, int]
"""Of the values of a group that have a row for each row of C, the dimension of these."""


def row_axes(graph: Graph) -> RowAxes:
    """The dimension of each value along which rows of C lie, for values that have it.

    Raises:
        NoSpace: rows of C need other rows, or do not lie one after the other in memory.
    """
    product = next(node for node in graph.nodes if is_product(node))
    a, b = product.values
    if product.name == CONVOLUTION or graph.windows or product.attributes.get(TRANSPOSE_A):
        raise NoSpace("rows of a product whose A does not lie in rows")
    axes = {value: graph.arrays[value].rank - 2 for value in (a, product.result)}
    others = [node for node in graph.nodes if node is not product]
    known = 0
    while known < len(axes):
        known = len(axes)
        for node in others:
            _spread(graph, node, axes)
    if b in axes:
        raise NoSpace("rows of a product by what is made of its own rows")
    for value, axis in axes.items():
        array = graph.arrays[value]
        if array.layout != ND or math.prod(array.shape[:axis]) != 1:
            raise NoSpace(f"rows of {array}, which do not lie one after the other")
    if not set(graph.outputs) <= axes.keys():
        raise NoSpace("rows of a product that makes something else, too")
    return axes


def _spread(graph: Graph, node: Node, axes: RowAxes) -> None:
    """Notes the dimension of rows of all values of an operator, if one of them has it."""
    repeats = node.name == "broadcast"
    if not repeats and not (node.name in OPERATORS and OPERATORS[node.name].elementwise):
        if axes.keys() & {node.result, *node.values}:
            raise NoSpace(f"{node.name} of rows of a product")
        return
    if not repeats:
        for value in (node.result, *node.values):
            if value in axes:
                _note(axes, [node.result, *node.values], axes[value])
        return
    for value in node.values:
        for axis, to in enumerate(node.attributes["dims"]):
            if graph.arrays[value].shape[axis] == 1 != graph.arrays[node.result].shape[to]:
                continue
            if axes.get(node.result) == to:
                _note(axes, [value], axis)
            elif axes.get(value) == axis:
                _note(axes, [node.result], to)


def _note(axes: RowAxes, values: list[int], axis: int) -> None:
    """Notes the dimension of rows of values.

    Raises:
        NoSpace: a value has rows of C along two dimensions.
    """
    for value in values:
        if axes.setdefault(value, axis) != axis:
            raise NoSpace("rows of a product along two dimensions of a value")


def graph_of_rows(graph: Graph, axes: RowAxes, start: int, stop: int) -> Graph:
    """The group that makes rows `start` to `stop` of C, its values numbered as in the group.

    Args:
        axes: of the group, see `row_axes`.
    """
    made = replace(graph, arrays=list(graph.arrays))
    for value, axis in axes.items():
        shape = list(graph.arrays[value].shape)
        shape[axis] = stop - start
        made.arrays[value] = replace(graph.arrays[value], shape=tuple(shape))
    return made
