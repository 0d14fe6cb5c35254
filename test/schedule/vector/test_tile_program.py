"""What becomes of operators of a group: quotients by statistics."""

from __future__ import annotations

import pytest

from davinci.operators import Tensor
from davinci.schedule.graph import Graph, Node
from davinci.schedule.vector.space import space_of
from davinci.schedule.vector.tile_program import program_of

ROWS, STATISTIC = Tensor((4, 100), "f32"), Tensor((4,), "f32")


def names(divisor: str, last: str) -> set[str]:
    """Of the steps of x / divisor(sum of x), and what follows."""
    nodes = [
        Node("reduce", (0,), 1, {"kind": "add", "dims": (1,)}),
        Node(divisor, (1,), 2, {}),
        Node("broadcast", (2,), 3, {"dims": (0,)}),
        Node("div", (0, 3), 4, {}),
        Node(last, (4,), 5, {}),
    ]
    graph = Graph([ROWS, STATISTIC, STATISTIC, ROWS, ROWS, ROWS], nodes, [0], [5])
    return {step.name for step in program_of(graph, space_of(graph)).steps}


@pytest.mark.parametrize(
    ("divisor", "last", "wanted", "missing"),
    [
        ("exp", "abs", {"vexp", "vrec", "vmul"}, {"vdiv"}),
        ("sqrt", "abs", {"vrsqrt", "vmul"}, {"vsqrt", "vrec", "vdiv"}),
        ("sqrt", "floor", {"vsqrt", "vdiv"}, {"vrsqrt", "vrec", "vmul"}),
    ],
)
def test_quotients_by_statistics(
    divisor: str, last: str, wanted: set[str], missing: set[str]
) -> None:
    """A product with the inverse, which of a root is one step; what is rounded is divided."""
    found = names(divisor, last)
    assert wanted <= found
    assert not missing & found
