"""Models that cannot be compiled: the message names the node, its form, and what to do."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from davinci import frontends
from davinci.errors import CompileError, InputError

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
        scaled("Multinomial", sample_size=5),
        {"x": (FLOAT, [3, 4])},
        "inputs FLOAT[3,4], attributes sample_size=5",
    ),
    ("too large", scaled("Det"), {"x": (FLOAT, [33, 33])}, "inputs FLOAT[33,33]"),
    (
        "axes that are not known",
        scaled("ReduceSum", "axes", keepdims=0),
        {"x": (FLOAT, [3, 4]), "axes": (INT64, [1])},
        "inputs FLOAT[3,4], INT64[1], attributes keepdims=0",
    ),
    (
        "training",
        [
            helper.make_node("Constant", [], ["t"], value=helper.make_tensor("t", BOOL, [], [1])),
            *scaled("Dropout", "", "t", seed=3),
        ],
        {"x": (FLOAT, [3, 4])},
        "inputs FLOAT[3,4], none, BOOL[], attributes seed=3",
    ),
    (
        "a mode that there is not",
        [helper.make_node("BitShift", ["x", "i"], ["y"], name="the_node", direction="UP")],
        {"x": (UINT8, [4]), "i": (UINT8, [4])},
        "attributes direction='UP'",
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
    inner = helper.make_node("Multinomial", ["x"], ["h"], name="inner", sample_size=2)
    value = helper.make_tensor_value_info("h", TensorProto.INT32, [3, 2])
    branches = {
        f"{name}_branch": helper.make_graph([inner], name, [], [value]) for name in ("then", "else")
    }
    nodes = [helper.make_node("If", ["c"], ["y"], name="the_node", **branches)]
    with pytest.raises(CompileError, match="operator Multinomial of node 'inner'"):
        frontends.load(model_of(nodes, {"c": (BOOL, []), "x": (FLOAT, [3, 4])}))


def test_shapes_that_leave_nothing_to_sample_or_add() -> None:
    def load(nodes: list[Any], inputs: Values) -> None:
        model = model_of(nodes, inputs)
        model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", FLOAT, None))
        frontends.load(model)

    grid = helper.make_node("GridSample", ["x", "g"], ["y"], name="the_node")
    with pytest.raises(InputError, match=r"a grid \[1, 0\] on images \[1, 1\]; found operator"):
        load([grid], {"x": (FLOAT, [1, 1]), "g": (FLOAT, [1, 0])})
    sizes = [
        helper.make_node("Constant", [], [name], value_ints=value)
        for name, value in (("image", [3, 3]), ("block", [0, 2]))
    ]
    blocks = helper.make_node("Col2Im", ["x", "image", "block"], ["y"], name="the_node")
    with pytest.raises(InputError, match=r"blocks of \[0, 2\] elements; found operator Col2Im"):
        load([*sizes, blocks], {"x": (FLOAT, [1, 4, 4])})


def test_nodes_without_a_name_get_their_place() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Multinomial", ["a"], ["y"])]
    with pytest.raises(CompileError, match="operator Multinomial of node 'Multinomial_1'"):
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
