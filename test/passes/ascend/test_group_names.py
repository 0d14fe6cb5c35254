"""Names of groups, from what depends on what in them."""

from __future__ import annotations

from typing import Any

import pytest

import davinci
from davinci.operators import Tensor
from davinci.passes.ascend.group_names import MORE, NAMED, parts_of, shortened
from davinci.schedule.graph import Graph, Node, Operand, Scalar

ROWS, STATISTIC = (8, 128), (8,)


class Made:
    """A graph, operator by operator."""

    def __init__(self) -> None:
        self.graph = Graph()

    def input(self) -> int:
        self.graph.inputs.append(self.graph.add(Tensor(ROWS, "f32")))
        return self.graph.inputs[-1]

    def op(self, name: str, *operands: Operand, **attributes: Any) -> int:
        shape = STATISTIC if name == "reduce" else ROWS
        result = self.graph.add(Tensor(shape, "f32"))
        self.graph.nodes.append(Node(name, operands, result, attributes))
        return result

    def total(self, value: Operand, kind: str = "add") -> int:
        """Of each row, at every place of the row."""
        return self.op("broadcast", self.op("reduce", value, dims=[1], kind=kind), dims=[0])

    def mean(self, value: Operand) -> int:
        return self.op("mul", self.total(value), Scalar(1 / 128))

    @property
    def parts(self) -> list[str]:
        return parts_of(self.graph)


def softmax(g: Made, x: int, *, shifted: bool = True) -> int:
    exp = g.op("exp", g.op("sub", x, g.total(x, "max")) if shifted else x)
    return g.op("div", exp, g.total(exp))


def norm(g: Made, x: int, *, rsqrt: bool) -> int:
    variance = g.op("add", g.mean(g.op("mul", x, x)), Scalar(1e-5))
    if rsqrt:
        return g.op("mul", g.op("rsqrt", variance), x)
    return g.op("div", x, g.op("sqrt", variance))


@pytest.mark.parametrize("shifted", [True, False])
def test_softmax(shifted: bool) -> None:
    g = Made()
    g.op("cast", softmax(g, g.op("add", g.input(), g.input()), shifted=shifted))
    assert g.parts == ["add", "softmax"]


@pytest.mark.parametrize("rsqrt", [True, False])
def test_normalisations(rsqrt: bool) -> None:
    g = Made()
    norm(g, g.input(), rsqrt=rsqrt)
    assert g.parts == ["rms_norm"]
    g = Made()
    x = g.input()
    norm(g, g.op("sub", x, g.mean(x)), rsqrt=rsqrt)
    assert g.parts == ["layer_norm"]


def test_what_scales_a_normalisation_belongs_to_it_and_a_residual_does_not() -> None:
    g = Made()
    x = g.input()
    y = g.op("mul", norm(g, g.op("sub", x, g.mean(x)), rsqrt=True), g.input())
    y = g.op("add", y, g.input())
    assert g.parts == ["layer_norm"]
    g.op("add", y, g.input())
    assert g.parts == ["layer_norm", "add"]


def test_two_of_a_kind_are_named_once() -> None:
    g = Made()
    softmax(g, softmax(g, g.input()))
    assert g.parts == ["softmax"]


def test_what_only_looks_like_a_softmax_is_none() -> None:
    """The sum is that of another exponential; the sum of squares is that of another array."""
    g = Made()
    x, y = g.input(), g.input()
    g.op("div", g.op("exp", x), g.total(g.op("exp", y)))
    assert g.parts == ["exp", "reduce", "div"]
    g = Made()
    x, y = g.input(), g.input()
    g.op("mul", x, g.op("rsqrt", g.mean(g.op("mul", y, y))))
    assert g.parts == ["mul", "reduce", "rsqrt"]


def test_what_says_nothing_is_named_if_there_is_nothing_else() -> None:
    g = Made()
    g.op("cast", g.op("broadcast", g.input(), dims=[0, 1]))
    assert g.parts == ["broadcast", "cast"]


def test_long_names_keep_what_says_most() -> None:
    parts = ["add", "mul", "select", "abs", "softmax", "sub"]
    assert shortened(parts) == ["add", "mul", "select", "softmax", *MORE]
    assert shortened(parts[:NAMED]) == parts[:NAMED]


def test_two_products_side_by_side_are_no_attention() -> None:
    g = Made()
    x = g.input()
    first, second = (g.op("matmul", x, g.input()) for _ in range(2))
    g.op("add", first, second)
    assert g.parts == ["matmul", "add"]


SLICES = """
func.func @main(%t: tensor<4096x128xf32>) -> tensor<16x128xf32> {
  %0 = stablehlo.slice %t [32:48, 0:128] : (tensor<4096x128xf32>) -> tensor<16x128xf32>
  %1 = stablehlo.slice %t [64:80, 0:128] : (tensor<4096x128xf32>) -> tensor<16x128xf32>
  %2 = stablehlo.add %0, %1 : tensor<16x128xf32>
  return %2 : tensor<16x128xf32>
}"""


def test_work_has_what_is_read_of_an_input() -> None:
    """Two slices of it."""
    (kernel,) = davinci.compile(SLICES, timing_only=True).kernels.values()
    assert kernel.work["read_bytes"] == (16 + 16) * 128 * 4
