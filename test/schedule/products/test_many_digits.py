"""Sums of bytes that are scaled, with numbers of as many digits as there may be."""

from __future__ import annotations

from davinci import machine as machines
from davinci.operators.tensors import Tensor
from davinci.schedule.graph import Graph, Node
from davinci.schedule.products.candidates import Wanted
from davinci.schedule.products.choice import choose
from davinci.schedule.products.group import read_group


def test_a_buffer_is_left_for_what_leaves() -> None:
    """Columns of digits take as many event ids as there are."""
    arrays = [
        Tensor((16, 64), "i8", "nz"),
        Tensor((64, 64), "i8", "nz"),
        Tensor((64,), "f16"),
        Tensor((64, 128), "i8", "nz"),
        Tensor((16, 64), "i32", "nz"),
        Tensor((16, 64), "f16", "nz"),
    ]
    product = Node("matmul", (0, 1), 4, {"transpose_b": True})
    graph = Graph(arrays, [product, Node("dequantize", (4, 2, 3), 5)], [0, 1, 2, 3], [5])
    found = read_group(graph).product
    assert found.end.columns == 4
    assert choose(found, machines.load("ascend910"), 1, Wanted()).leaving == 1
