"""Which outputs of a group may lie where an input lies."""

from __future__ import annotations

import pytest

from davinci.operators import Tensor
from davinci.schedule.graph import Graph, Node
from davinci.schedule.in_place import shareable

WIDE = Tensor((40, 64), "f32")


@pytest.mark.parametrize(
    ("operands", "pairs"),
    [
        # out0 = -a, out1 = out0 + b: each lies where the input lies that only it reads.
        ((0, 1), [(0, 0), (1, 1)]),
        # out0 = -b, out1 = out0 + a: out0 may be written before a is read.
        ((1, 0), [(0, 1), (1, 0)]),
    ],
)
def test_outputs_are_computed_from_what_they_overwrite(
    operands: tuple[int, int], pairs: list[tuple[int, int]]
) -> None:
    first, second = operands
    nodes = [Node("neg", (first,), 2), Node("add", (2, second), 3)]
    assert shareable(Graph([WIDE] * 4, nodes, inputs=[0, 1], outputs=[2, 3])) == pairs


def test_nothing_to_overwrite() -> None:
    """The only output that could lie in `a` is not computed from it."""
    nodes = [Node("neg", (1,), 2), Node("reduce_max", (0,), 3, {"dims": [1]})]
    graph = Graph([WIDE, WIDE, WIDE, Tensor((40,), "f32")], nodes, inputs=[0, 1], outputs=[2, 3])
    assert (0, 0) not in shareable(graph)
