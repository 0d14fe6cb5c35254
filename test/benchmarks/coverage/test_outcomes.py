"""What random networks are judged by: differences that come of rounding alone are no faults."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from outcomes import Case, judge

SIZE = 5


def places_of_least(factors: list[float]) -> Case:
    """ArgMin of a product of a column and a row: the place of the least factor."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [len(factors), 1])
    w = helper.make_tensor_value_info("w", TensorProto.FLOAT, [1, SIZE])
    y = helper.make_tensor_value_info("y", TensorProto.INT64, [SIZE])
    nodes = [
        helper.make_node("Cos", ["x"], ["c"]),
        helper.make_node("MatMul", ["c", "w"], ["p"]),
        helper.make_node("ArgMin", ["p"], ["y"], axis=0, keepdims=0),
    ]
    graph = helper.make_graph(nodes, "places", [x, w], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    column = np.arccos(np.array(factors, np.float64)).astype(np.float32).reshape(-1, 1)
    row = np.linspace(3, 5, SIZE, dtype=np.float32).reshape(1, -1)
    onnx.checker.check_model(model)
    return Case("places", model, {"x": column, "w": row})


@pytest.mark.parametrize(
    ("factors", "kind"),
    [([0.5, -0.99883, -0.99907, 0.1], "unstable"), ([0.5, -0.7, -0.99907, 0.1], "correct")],
)
def test_factors_that_are_equal_in_fp16(factors: list[float], kind: str) -> None:
    """The cube takes fp16, in which the two least factors of the first product are one number."""
    assert judge(places_of_least(factors)).kind == kind
