"""Groups that have nothing to do with each other share a launch, each on cores of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from davinci.machine import load
from davinci.operators import Tensor
from davinci.schedule.graph import Graph, Node
from davinci.schedule.side_by_side import part_choice, partings_of, parts_of, plans_of
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
    plans = plans_of(partings_of(two_chains()), load("ascend910"), cores)
    assert sum(each.cores for each in plans) <= cores
    assert all(0 < each.plan.schedule.cores <= each.cores for each in plans)


def test_more_parts_than_cores() -> None:
    with pytest.raises(NoSpace, match="more parts than cores"):
        plans_of(partings_of(two_chains()), load("ascend910"), 1)


def two_statistics(rows: int, columns: int) -> Graph:
    """1 = largest of the rows of 0, 3 = sums of the rows of 2 = f32 of 0."""
    whole, wide = Tensor((rows, columns), "f16"), Tensor((rows, columns), "f32")
    largest, total = ({"kind": kind, "dims": (1,)} for kind in ("max", "add"))
    nodes = [
        Node("reduce", (0,), 1, largest),
        Node("cast", (0,), 2),
        Node("reduce", (2,), 3, total),
    ]
    return Graph([whole, Tensor((rows,), "f16"), wide, Tensor((rows,), "f32")], nodes, [0], [1, 3])


@pytest.mark.parametrize(("rows", "columns", "parts"), [(64, 128, 2), (512, 4096, 1)])
def test_what_reads_the_same_is_one_part_where_it_takes_less_time(
    rows: int, columns: int, parts: int
) -> None:
    machine, cores = load("ascend310"), 2
    partings = partings_of(two_statistics(rows, columns))
    assert [len(each) for each in partings] == [2, 1]
    for parting in partings:
        plans = plans_of([parting], machine, cores)
        choices = tuple(map(part_choice, plans))
        again = plans_of(partings, machine, cores, choices)
        assert tuple(map(part_choice, again)) == choices
    chosen = plans_of(partings, machine, cores)
    assert len(chosen) == parts
    assert sum(each.cores for each in chosen) == cores


def test_one_pass_over_an_array() -> None:
    text = """func.func @main(%a: tensor<512x4096xf16>) -> (tensor<512xf32>, tensor<512xf32>) {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.convert %a : (tensor<512x4096xf16>) -> tensor<512x4096xf32>
  %2 = stablehlo.reduce(%1 init: %0) applies stablehlo.add across dimensions = [1]
    : (tensor<512x4096xf32>, tensor<f32>) -> tensor<512xf32>
  %3 = stablehlo.multiply %1, %1 : tensor<512x4096xf32>
  %4 = stablehlo.reduce(%3 init: %0) applies stablehlo.add across dimensions = [1]
    : (tensor<512x4096xf32>, tensor<f32>) -> tensor<512xf32>
  return %2, %4 : tensor<512xf32>, tensor<512xf32>
}"""
    x = np.random.default_rng(0).uniform(-4, 4, (512, 4096)).astype(np.float16)
    executable = compile_text(text, machine="ascend310")
    total, squares = executable.run({"arg0": x}).values()
    wide = x.astype(np.float64)
    np.testing.assert_allclose(total, wide.sum(1), rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(squares, (wide * wide).sum(1), rtol=1e-5)
    (kernel,) = executable.profile["kernels"]
    assert "|" not in kernel["schedule"]


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
