"""What an ONNX graph computes of shapes and constants is known before the import."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import davinci
from davinci.frontends.onnx_known import fold


def model_of(
    nodes: list[Any],
    inputs: dict[str, tuple[int, ...]],
    result: list[int | str],
    weights: dict[str, Any] | None = None,
    opset: int = 18,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(k, TensorProto.FLOAT, v) for k, v in inputs.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, result)],
        [numpy_helper.from_array(np.asarray(a), name) for name, a in (weights or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def operators(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node if node.op_type != "Constant"]


def reshape_by_shape() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Slice", ["s", "zero", "two"], ["t"]),
        helper.make_node("Concat", ["t", "rest"], ["u"], axis=0),
        helper.make_node("Reshape", ["x", "u"], ["y"]),
    ]
    weights = {"zero": np.array([0]), "two": np.array([2]), "rest": np.array([-1])}
    return model_of(nodes, {"x": (2, 3, 4, 5)}, ["a", "b", "c"], weights)


def test_shapes_are_computed() -> None:
    model = fold(reshape_by_shape())
    assert operators(model) == ["Reshape"]
    constant = next(node for node in model.graph.node if node.op_type == "Constant")
    array = numpy_helper.to_array(constant.attribute[0].t)
    np.testing.assert_array_equal(array, [2, 3, -1])
    again = fold(model)
    assert [n.op_type for n in again.graph.node] == [n.op_type for n in model.graph.node]


def test_constants_become_tensors() -> None:
    nodes = [
        helper.make_node("Constant", [], ["c"], value_floats=[1.0, 2.0]),
        helper.make_node("Add", ["x", "c"], ["y"]),
    ]
    x = np.array([3, 4], np.float32)
    found = davinci.compile(model_of(nodes, {"x": (2,)}, [2])).run({"x": x})["y"]
    np.testing.assert_array_equal(found, [4, 6])


def test_what_depends_on_inputs_stays() -> None:
    nodes = [
        helper.make_node("RandomNormal", [], ["r"], shape=[4]),
        helper.make_node("Add", ["x", "r"], ["y"]),
    ]
    assert operators(fold(model_of(nodes, {"x": (4,)}, [4]))) == ["RandomNormal", "Add"]


@pytest.mark.parametrize("taken", [True, False])
def test_known_branch_replaces_if(taken: bool) -> None:
    branches = {
        name: helper.make_graph(
            [helper.make_node(op, ["x"], ["h"]), helper.make_node("Neg", ["h"], ["out"])],
            name,
            [],
            [helper.make_tensor_value_info("out", TensorProto.FLOAT, [4])],
        )
        for name, op in (("then_branch", "Exp"), ("else_branch", "Relu"))
    }
    nodes = [
        helper.make_node("If", ["c"], ["h"], **branches),
        helper.make_node("Abs", ["h"], ["y"]),
    ]
    model = fold(model_of(nodes, {"x": (4,)}, [4], {"c": np.array(taken)}))
    assert operators(model) == ["Exp" if taken else "Relu", "Neg", "Identity", "Abs"]
    onnx.checker.check_model(model)


def test_computed_shapes_compile() -> None:
    x = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)
    found = davinci.compile(reshape_by_shape()).run({"x": x})["y"]
    np.testing.assert_array_equal(found, x.reshape(2, 3, 20))


def test_operator_with_a_left_out_input_is_expanded() -> None:
    shapes = {"q": (1, 2, 3, 8), "k": (1, 2, 4, 8), "v": (1, 2, 4, 8), "past": (1, 2, 5, 8)}
    node = helper.make_node("Attention", ["q", "k", "v", "", "past", "past"], ["y"])
    model = model_of([node], shapes, [1, 2, 3, 8], opset=23)
    assert [spec.shape for spec in davinci.compile(model).outputs] == [(1, 2, 3, 8)]
