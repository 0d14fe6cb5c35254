"""Models that cannot be compiled: the message names the node, its form, and what to do."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from davinci import frontends
from davinci.errors import CompileError

Values = dict[str, tuple[int, list[int]]]
FLOAT, INT64, BOOL, UINT8 = (
    TensorProto.FLOAT,
    TensorProto.INT64,
    TensorProto.BOOL,
    TensorProto.UINT8,
)


def model_of(nodes: list[Any], inputs: Values, opset: int = 18) -> onnx.ModelProto:
    values = [helper.make_tensor_value_info(k, *v) for k, v in inputs.items()]
    graph = helper.make_graph(nodes, "graph", values, [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return onnx.shape_inference.infer_shapes(model)


def scaled(operator: str, *inputs: str, **attributes: Any) -> list[Any]:
    """The operator under test between others that compile."""
    return [
        helper.make_node("Relu", ["x"], ["a"], name="before"),
        helper.make_node(operator, ["a", *inputs], ["b"], name="the_node", **attributes),
        helper.make_node("Identity", ["b"], ["y"], name="behind"),
    ]


CASES: list[tuple[str, list[Any], Values, str]] = [
    (
        "random numbers",
        scaled("Bernoulli", seed=2.0),
        {"x": (FLOAT, [4, 4])},
        "inputs FLOAT[4,4], attributes seed=2.0",
    ),
    (
        "a shape that depends on data",
        scaled("NonZero"),
        {"x": (FLOAT, [3, 3])},
        "inputs FLOAT[3,3]",
    ),
    (
        "a parameter that is computed",
        scaled("Tile", "n"),
        {"x": (FLOAT, [3, 4]), "n": (INT64, [2])},
        "inputs FLOAT[3,4], INT64[2]",
    ),
    (
        "a direction that there is not",
        scaled("GRU", "w", "r", hidden_size=5, direction="sideways"),
        {"x": (FLOAT, [1, 3, 2]), "w": (FLOAT, [1, 15, 2]), "r": (FLOAT, [1, 15, 5])},
        "direction='sideways'",
    ),
]


@pytest.mark.parametrize(("case", "nodes", "inputs", "form"), CASES, ids=[c[0] for c in CASES])
def test_the_node_is_named(case: str, nodes: list[Any], inputs: Values, form: str) -> None:
    operator = next(node.op_type for node in nodes if node.name == "the_node")
    with pytest.raises(CompileError) as caught:
        frontends.load(model_of(nodes, inputs))
    text = str(caught.value)
    assert f"operator {operator} of node 'the_node'" in text
    assert form in text and "onnx-coverage.md" in text
    assert "torch" not in text and "stablehlo" not in text


def test_an_operator_inside_of_a_branch() -> None:
    branches = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node("Bernoulli", ["x"], ["h"], name="inside")],
            name,
            [],
            [helper.make_tensor_value_info("h", FLOAT, [4])],
        )
        for name in ("then", "else")
    }
    nodes = [helper.make_node("If", ["c"], ["y"], name="the_node", **branches)]
    with pytest.raises(CompileError, match="operator Bernoulli of node 'inside'"):
        frontends.load(model_of(nodes, {"c": (BOOL, []), "x": (FLOAT, [4])}))


def test_nodes_without_a_name_get_their_place() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("NonZero", ["a"], ["y"])]
    with pytest.raises(CompileError, match="operator NonZero of node 'NonZero_1'"):
        frontends.load(model_of(nodes, {"x": (FLOAT, [3, 3])}))


def test_two_nodes_replaced_by_definitions_keep_their_names() -> None:
    nodes = [
        helper.make_node("Celu", ["x"], ["a"], name="first"),
        helper.make_node("Celu", ["a"], ["y"], name="second"),
    ]
    text = frontends.load(model_of(nodes, {"x": (FLOAT, [4])})).operation.get_asm(
        enable_debug_info=True
    )
    assert 'loc("first")' in text and 'loc("second")' in text


def test_input_that_is_no_tensor() -> None:
    model = model_of([helper.make_node("SequenceAt", ["x", "i"], ["y"])], {"i": (INT64, [])})
    sequence = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, [4]))
    model.graph.input.append(helper.make_value_info("x", sequence))
    with pytest.raises(CompileError, match="'x' is not a tensor; found sequence_type; expected"):
        frontends.load(onnx.shape_inference.infer_shapes(model))
