"""If, Loop, Scan, sequences and optional values, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from davinci.errors import CompileError
from onnx_support import against_onnxruntime, model_of, node_model

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
X = np.arange(12, dtype=np.float32).reshape(3, 4) / 8
TRUE, FALSE = np.array(True), np.array(False)


def typed(name: str, kind: int, shape: list[int] | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def graph(
    nodes: list[Any], inputs: list[Any], outputs: list[Any], constants: dict[str, Any] | None = None
) -> onnx.GraphProto:
    tensors = [onnx.numpy_helper.from_array(a, n) for n, a in (constants or {}).items()]
    return helper.make_graph(nodes, "body", inputs, outputs, tensors)


def branches() -> dict[str, onnx.GraphProto]:
    return {
        name: graph([helper.make_node(op, ["x"], ["r"])], [], [typed("r", FLOAT)])
        for name, op in (("then_branch", "Exp"), ("else_branch", "Neg"))
    }


@pytest.mark.parametrize("condition", [TRUE, FALSE, np.array([True])], ids=["true", "false", "[1]"])
@pytest.mark.parametrize("constant", [False, True], ids=["computed", "constant"])
def test_if(condition: Any, constant: bool) -> None:
    nodes = [helper.make_node("If", ["c"], ["y"], **branches())]
    given = {"c": condition}
    inputs = {"x": X} if constant else {"x": X, **given}
    model = model_of(nodes, inputs, constants=given if constant else {})
    against_onnxruntime(model, inputs)


def test_branches_of_different_shape() -> None:
    other = branches()
    other["else_branch"] = graph(
        [helper.make_node("Transpose", ["x"], ["r"])], [], [typed("r", FLOAT)]
    )
    model = model_of([helper.make_node("If", ["c"], ["y"], **other)], {"x": X, "c": TRUE})
    with pytest.raises(CompileError, match=r"branches give float32\[3, 4\] and float32\[4, 3\]"):
        against_onnxruntime(model, {"x": X, "c": TRUE})


def doubling(condition: list[Any]) -> onnx.GraphProto:
    """v * 2, while what `condition` makes of i, c and v as `again` holds; v is also collected."""
    nodes = [
        *condition,
        helper.make_node("Mul", ["v", "two"], ["w"]),
        helper.make_node("Identity", ["v"], ["seen"]),
    ]
    return graph(
        nodes,
        [typed("i", INT64, []), typed("c", BOOL, []), typed("v", FLOAT, [3, 4])],
        [typed("again", BOOL, []), typed("w", FLOAT, [3, 4]), typed("seen", FLOAT, [3, 4])],
        {"two": np.float32(2), "three": np.array(3), "hundred": np.float32(100)},
    )


GOES_ON = [helper.make_node("Identity", ["c"], ["again"])]
THREE_TIMES = [helper.make_node("Less", ["i", "three"], ["again"])]
UNTIL_LARGE = [
    helper.make_node("ReduceMax", ["v"], ["top"], keepdims=0),
    helper.make_node("Less", ["top", "hundred"], ["again"]),
]


@pytest.mark.parametrize(
    ("condition", "limit", "first"),
    [
        (GOES_ON, np.array(5), None),
        (GOES_ON, np.array(5), TRUE),
        (THREE_TIMES, None, TRUE),
        (THREE_TIMES, np.array(2), TRUE),
    ],
    ids=["for", "for and true", "while", "both"],
)
def test_loop_of_known_length(condition: list[Any], limit: Any, first: Any) -> None:
    names = ["m" if limit is not None else "", "c" if first is not None else "", "x"]
    nodes = [helper.make_node("Loop", names, ["y", "all"], body=doubling(condition))]
    constants = {n: a for n, a in (("m", limit), ("c", first)) if a is not None}
    model = model_of(nodes, {"x": X}, ["y", "all"], constants)
    against_onnxruntime(model, {"x": X})


def without_scan(body: onnx.GraphProto) -> onnx.GraphProto:
    del body.output[2]
    return body


@pytest.mark.parametrize("limit", [np.array(0), np.array(1), np.array(9)], ids=str)
def test_loop_that_depends_on_data(limit: Any) -> None:
    body = without_scan(doubling(UNTIL_LARGE))
    nodes = [helper.make_node("Loop", ["m", "", "x"], ["y"], body=body)]
    inputs = {"x": X, "m": limit}
    against_onnxruntime(model_of(nodes, inputs), inputs)


def test_outputs_of_a_loop_whose_length_depends_on_data() -> None:
    nodes = [helper.make_node("Loop", ["m", "", "x"], ["y", "all"], body=doubling(GOES_ON))]
    inputs = {"x": X, "m": np.array(3)}
    with pytest.raises(CompileError, match="number of steps depends on data"):
        against_onnxruntime(model_of(nodes, inputs, ["y", "all"]), inputs)


def summing() -> onnx.GraphProto:
    nodes = [
        helper.make_node("Add", ["s", "part"], ["t"]),
        helper.make_node("Mul", ["t", "t"], ["square"]),
    ]
    shape = [3]
    return graph(
        nodes,
        [typed("s", FLOAT, shape), typed("part", FLOAT, shape)],
        [typed("t", FLOAT, shape), typed("square", FLOAT, shape)],
    )


@pytest.mark.parametrize("back", [0, 1])
@pytest.mark.parametrize("axis", [0, 1])
def test_scan(back: int, axis: int) -> None:
    inputs = {"s": np.zeros(3, np.float32), "x": X.T}
    attributes = {
        "scan_input_axes": [0],
        "scan_input_directions": [back],
        "scan_output_axes": [axis],
        "scan_output_directions": [1 - back],
    }
    nodes = [
        helper.make_node(
            "Scan", ["s", "x"], ["y", "all"], num_scan_inputs=1, body=summing(), **attributes
        )
    ]
    against_onnxruntime(model_of(nodes, inputs, ["y", "all"]), inputs)


def test_a_long_scan_is_a_loop() -> None:
    inputs = {"s": np.zeros(3, np.float32), "x": np.full((200, 3), 0.01, np.float32)}
    nodes = [helper.make_node("Scan", ["s", "x"], ["y", "all"], num_scan_inputs=1, body=summing())]
    against_onnxruntime(model_of(nodes, inputs, ["y", "all"]), inputs)


def test_sequences() -> None:
    """Split, take apart, put together in another order."""
    nodes = [
        helper.make_node("SplitToSequence", ["x", "size"], ["parts"], axis=1),
        helper.make_node("SequenceAt", ["parts", "last"], ["a"]),
        helper.make_node("SequenceErase", ["parts", "last"], ["rest"]),
        helper.make_node("SequenceInsert", ["rest", "a", "first"], ["turned"]),
        helper.make_node("ConcatFromSequence", ["turned"], ["joined"], axis=1),
        helper.make_node("SequenceLength", ["turned"], ["n"]),
        helper.make_node("Cast", ["n"], ["count"], to=FLOAT),
        helper.make_node("Add", ["joined", "count"], ["y"]),
    ]
    constants = {"size": np.array(2), "last": np.array(-1), "first": np.array(0)}
    against_onnxruntime(model_of(nodes, {"x": X}, constants=constants), {"x": X})


def test_optional_has_element() -> None:
    model, inputs = node_model("OptionalHasElement", X)
    against_onnxruntime(model, inputs)


def test_sequence_as_output() -> None:
    nodes = [helper.make_node("SequenceConstruct", ["x", "x"], ["y"])]
    with pytest.raises(CompileError, match="output 'y' is not a tensor; found a sequence"):
        against_onnxruntime(model_of(nodes, {"x": X}), {"x": X})
