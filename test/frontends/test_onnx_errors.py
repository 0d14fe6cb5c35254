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
        "equal constants have no node",
        scaled("ScatterND", "i", "u", reduction="add"),
        {"x": (FLOAT, [4, 4]), "i": (INT64, [2, 1]), "u": (FLOAT, [2, 4])},
        "inputs FLOAT[4,4], INT64[2,1], FLOAT[2,4], attributes reduction='add'",
    ),
    ("no conversion", scaled("Det"), {"x": (FLOAT, [3, 3])}, "inputs FLOAT[3,3]"),
    (
        "sizes that are not known",
        scaled("GRU", "w", "r", hidden_size=5),
        {"x": (FLOAT, [1, 3, 2]), "w": (FLOAT, [1, 15, 2]), "r": (FLOAT, [1, 15, 5])},
        "attributes hidden_size=5",
    ),
    (
        "internal types of the importer",
        scaled("Hardmax", axis=0),
        {"x": (FLOAT, [3, 4])},
        "inputs FLOAT[3,4], attributes axis=0",
    ),
    (
        "bytes",
        [
            helper.make_node("ConvInteger", ["x", "w"], ["b"], name="the_node"),
            helper.make_node("Cast", ["b"], ["y"], to=FLOAT, name="behind"),
        ],
        {"x": (UINT8, [1, 1, 3, 3]), "w": (UINT8, [1, 1, 2, 2])},
        "inputs UINT8[1,1,3,3], UINT8[1,1,2,2]",
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
    """The importer refuses the attribute; the If is what the author sees."""
    inner = helper.make_node(
        "Optional",
        [],
        ["o"],
        type=helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, [5])),
    )
    value = helper.make_node("OptionalHasElement", ["o"], ["h"])
    branches = {
        f"{name}_branch": helper.make_graph(
            [inner, value], name, [], [helper.make_tensor_value_info("h", BOOL, [])]
        )
        for name in ("then", "else")
    }
    nodes = [helper.make_node("If", ["c"], ["y"], name="the_node", **branches)]
    with pytest.raises(CompileError, match="operator If of node 'the_node' cannot be lowered"):
        frontends.load(model_of(nodes, {"c": (BOOL, [])}))


def test_nodes_without_a_name_get_their_place() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Det", ["a"], ["y"])]
    with pytest.raises(CompileError, match="operator Det of node 'Det_1'"):
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
