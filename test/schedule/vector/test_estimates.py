"""Estimated against simulated cycles of kernels of the vector unit with one tile a core."""

from __future__ import annotations

import pytest

from davinci import machine as machines
from davinci.operators import Tensor
from davinci.schedule.graph import Graph, Node
from davinci.schedule.vector.schedule import plan
from support import compile_text

MACHINE = machines.load("ascend910")


def mean_of_rows(rows: int, lanes: int) -> tuple[Graph, str]:
    """Sums of rows of f32, which leave as f16, as a graph and as text."""
    arrays = [Tensor((rows, lanes), "f32"), Tensor((lanes,), "f32"), Tensor((lanes,), "f16")]
    nodes = [
        Node("reduce", (0,), 1, {"kind": "add", "dims": (0,)}),
        Node("cast", (1,), 2, {}),
    ]
    text = f"""
      func.func @main(%0: tensor<{rows}x{lanes}xf32>) -> tensor<{lanes}xf16> {{
        %1 = "ascend.reduce"(%0) {{kind = "add", dims = array<i64: 0>}}
          : (tensor<{rows}x{lanes}xf32>) -> tensor<{lanes}xf32>
        %2 = "ascend.cast"(%1) : (tensor<{lanes}xf32>) -> tensor<{lanes}xf16>
        return %2 : tensor<{lanes}xf16>
      }}"""
    return Graph(arrays, nodes, [0], [2]), text


def shares(lanes: int) -> tuple[Graph, str]:
    """A row over its sum, as a graph and as text."""
    row, one = Tensor((1, lanes), "f32"), Tensor((1,), "f32")
    nodes = [
        Node("reduce", (0,), 1, {"kind": "add", "dims": (1,)}),
        Node("broadcast", (1,), 2, {"dims": (0,)}),
        Node("div", (0, 2), 3, {}),
    ]
    text = f"""
      func.func @main(%0: tensor<1x{lanes}xf32>) -> tensor<1x{lanes}xf32> {{
        %1 = "ascend.reduce"(%0) {{kind = "add", dims = array<i64: 1>}}
          : (tensor<1x{lanes}xf32>) -> tensor<1xf32>
        %2 = "ascend.broadcast"(%1) {{dims = array<i64: 0>}}
          : (tensor<1xf32>) -> tensor<1x{lanes}xf32>
        %3 = "ascend.div"(%0, %2)
          : (tensor<1x{lanes}xf32>, tensor<1x{lanes}xf32>) -> tensor<1x{lanes}xf32>
        return %3 : tensor<1x{lanes}xf32>
      }}"""
    return Graph([row, one, row, row], nodes, [0], [3]), text


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(mean_of_rows(144, 72), id="rows end inside a block"),
        pytest.param(mean_of_rows(144, 1000), id="the last tile overlaps the one before"),
        pytest.param(shares(768), id="instructions wait for those before"),
    ],
)
def test_estimates_are_what_kernels_take(case: tuple[Graph, str]) -> None:
    graph, text = case
    executable = compile_text(text, cores=1, timing_only=True)
    executable.run()
    (kernel,) = executable.profile["kernels"]
    assert plan(graph, MACHINE, 1).schedule.cycles == pytest.approx(kernel["cycles"], rel=0.2)
