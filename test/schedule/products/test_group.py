"""Groups around a product, read as plain data."""

from __future__ import annotations

import pytest

from davinci.operators import Tensor
from davinci.schedule.graph import Graph, Node, Scalar
from davinci.schedule.products.group import read_group
from davinci.schedule.vector.space import NoSpace


@pytest.mark.parametrize(("flag", "is_group"), [(1, True), (0, False)])
def test_an_output_that_is_an_input(flag: int, is_group: bool) -> None:
    """A selection that takes what it was given: no tile of the kernel would hold it."""
    rows, sums = Tensor((16, 32), "f16"), Tensor((16, 16), "f32")
    graph = Graph()
    a, b, extra, c, y = (graph.add(t) for t in (rows, Tensor((32, 16), "f16"), sums, sums, sums))
    graph.inputs, graph.outputs = [a, b, extra], [y]
    graph.nodes = [Node("matmul", (a, b), c), Node("select", (Scalar(flag), c, extra), y)]
    if is_group:
        assert read_group(graph).outputs == (y,)
    else:
        with pytest.raises(NoSpace, match="has no part in"):
            read_group(graph)
