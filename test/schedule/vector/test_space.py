"""Whether elementwise operators keep the zeros that pad fractals."""

from __future__ import annotations

import pytest

from davinci.operators import Tensor
from davinci.schedule.graph import Graph, Node
from davinci.schedule.vector.space import _keeps_zeros


@pytest.mark.parametrize(
    ("name", "operands", "kept"),
    [
        ("sub", (1, 2), False),
        ("sub", (1, 1), True),
        ("sub", (0, 0), True),
        ("mul", (0, 1), True),
        ("mul", (1, 2), False),
        ("add", (0, 1), False),
    ],
)
def test_zeros_of_zeros(name: str, operands: tuple[int, int], kept: bool) -> None:
    """Value 0 has zeros in the padding, 1 and 2 have any numbers, not the same ones."""
    arrays = [Tensor((20, 40), "f32") for _ in range(4)]
    graph = Graph(arrays, [Node(name, operands, 3, {})], [0, 1, 2], [3])
    assert _keeps_zeros(graph.nodes[0], {0}, graph) == kept
