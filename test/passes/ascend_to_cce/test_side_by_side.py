"""Groups that have nothing to do with each other share a launch, each on cores of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from davinci.machine import load
from davinci.operators import Tensor
from davinci.schedule.graph import Graph, Node
from davinci.schedule.side_by_side import parts_of, plans_of
from davinci.schedule.vector.space import NoSpace
from support import compile_text

Array = npt.NDArray[Any]

A, B = Tensor((64, 128), "f32"), Tensor((40, 30), "f32")


def two_chains() -> Graph:
    """2 = exp 0, 4 = abs 2; 3 = tanh 1; written in turn."""
    nodes = [Node("exp", (0,), 2), Node("tanh", (1,), 3), Node("abs", (2,), 4)]
    return Graph([A, B, A, B, A], nodes, [0, 1], [3, 4])


def test_parts() -> None:
    first, second = parts_of(two_chains())
    assert [node.name for node in first.graph.nodes] == ["exp", "abs"]
    assert (first.inputs, first.outputs) == ((0,), (1,))
    assert [node.name for node in second.graph.nodes] == ["tanh"]
    assert (second.inputs, second.outputs) == ((1,), (0,))


def test_what_comes_together_later_is_one_part() -> None:
    nodes = [Node("exp", (0,), 1), Node("tanh", (0,), 2), Node("add", (2, 1), 3)]
    (part,) = parts_of(Graph([A] * 4, nodes, [0], [3]))
    assert [node.name for node in part.graph.nodes] == ["exp", "tanh", "add"]


@pytest.mark.parametrize("cores", [2, 3, 32])
def test_cores_are_shared(cores: int) -> None:
    plans = plans_of(parts_of(two_chains()), load("ascend910"), cores)
    assert sum(count for _, count in plans) <= cores
    assert all(0 < chosen.schedule.cores <= count for chosen, count in plans)


def test_more_parts_than_cores() -> None:
    with pytest.raises(NoSpace, match="more parts than cores"):
        plans_of(parts_of(two_chains()), load("ascend910"), 1)


TEXT = """func.func @main(%a: tensor<64x128xf32>, %b: tensor<40x30xf32>, %c: tensor<3x40000xf32>)
    -> (tensor<64x128xf32>, tensor<40x30xf32>, tensor<3x40000xf32>) {
  %0 = stablehlo.exponential %a : tensor<64x128xf32>
  %1 = stablehlo.tanh %b : tensor<40x30xf32>
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %2 = stablehlo.reduce(%c init: %i) applies stablehlo.maximum across dimensions = [1]
    : (tensor<3x40000xf32>, tensor<f32>) -> tensor<3xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<3xf32>) -> tensor<3x40000xf32>
  %4 = stablehlo.subtract %c, %3 : tensor<3x40000xf32>
  return %0, %1, %4 : tensor<64x128xf32>, tensor<40x30xf32>, tensor<3x40000xf32>
}"""


@pytest.mark.parametrize(("cores", "launches"), [(1, 3), (2, 2), (5, 1), (32, 1)])
def test_one_launch(cores: int, launches: int) -> None:
    shapes = [(64, 128), (40, 30), (3, 40000)]
    a, b, c = (np.random.default_rng(0).uniform(-4, 4, s).astype(np.float32) for s in shapes)
    executable = compile_text(TEXT, cores=cores)
    found = list(executable.run({"arg0": a, "arg1": b, "arg2": c}).values())
    wanted: list[Array] = [np.exp(a), np.tanh(b), c - c.max(1, keepdims=True)]
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=4e-6, atol=4e-6)
    assert len(executable.profile["launches_list"]) == launches


def test_groups_that_wait_for_each_other_are_apart() -> None:
    text = """func.func @main(%a: tensor<64x128xf32>) -> tensor<128x64xf32> {
  %0 = stablehlo.exponential %a : tensor<64x128xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<64x128xf32>) -> tensor<128x64xf32>
  %2 = stablehlo.exponential %1 : tensor<128x64xf32>
  return %2 : tensor<128x64xf32>
}"""
    x = np.random.default_rng(0).uniform(-1, 1, (64, 128)).astype(np.float32)
    (found,) = compile_text(text).run({"arg0": x}).values()
    np.testing.assert_allclose(found, np.exp(np.exp(x)).T, rtol=4e-6)
