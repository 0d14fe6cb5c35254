"""Operators of ONNX on fp16 whose sums leave its range, or its precision, on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import davinci
from davinci.reference import check

HALF = np.float16
PLANE = np.full((1, 2, 64, 64), 300, HALF)
ROWS = (np.random.default_rng(0).standard_normal((4, 768)) * 2000).astype(HALF)
AXES = np.array([2, 3], np.int64)


def model(nodes: list[Any], x: Any, shape: tuple[int, ...], **constants: Any) -> onnx.ModelProto:
    kind = onnx.TensorProto.FLOAT16
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", kind, x.shape)],
        [helper.make_tensor_value_info("y", kind, shape)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def single(operator: str, x: Any, shape: tuple[int, ...], constants: Any, **attributes: Any) -> Any:
    node = helper.make_node(operator, ["x", *constants], ["y"], **attributes)
    return model([node], x, shape, **constants), x


def layer_norm() -> Any:
    nodes = [
        helper.make_node("ReduceMean", ["x", "axes"], ["mean"]),
        helper.make_node("Sub", ["x", "mean"], ["d"]),
        helper.make_node("Mul", ["d", "d"], ["square"]),
        helper.make_node("ReduceMean", ["square", "axes"], ["variance"]),
        helper.make_node("Sqrt", ["variance"], ["deviation"]),
        helper.make_node("Div", ["d", "deviation"], ["y"]),
    ]
    return model(nodes, ROWS, ROWS.shape, axes=np.array([-1], np.int64)), ROWS


POOLED = (1, 2, 1, 1)
CASES = {
    "ReduceSum": single("ReduceSum", np.ones(4096, HALF), (1,), {"axes": np.array([0])}),
    "GlobalAveragePool": single("GlobalAveragePool", PLANE, POOLED, {}),
    "AveragePool": single("AveragePool", PLANE, POOLED, {}, kernel_shape=[64, 64]),
    "ReduceMean": single("ReduceMean", PLANE, POOLED, {"axes": AXES}),
    "ReduceL2": single("ReduceL2", PLANE, POOLED, {"axes": AXES}),
    "LpNormalization": single("LpNormalization", ROWS, ROWS.shape, {}, axis=1, p=2),
    "Conv": single(
        "Conv", PLANE[:, :1] / HALF(300), (1, 1, 1, 1), {"w": np.ones((1, 1, 64, 64), HALF)}
    ),
    "MatMul": single("MatMul", np.ones((2, 4096), HALF), (2, 2), {"w": np.ones((4096, 2), HALF)}),
}


@pytest.mark.parametrize("name", CASES)
def test_like_onnxruntime(name: str) -> None:
    proto, x = CASES[name]
    (found,) = davinci.compile(proto).run(x).values()
    (wanted,) = check.reference_onnx(proto, {"x": x}).values()
    np.testing.assert_allclose(found.astype(float), wanted.astype(float), rtol=2**-10)


def test_a_layer_norm_of_primitive_operators() -> None:
    """onnxruntime itself rounds every step to fp16 here."""
    proto, x = layer_norm()
    (found,) = davinci.compile(proto).run(x).values()
    d = x.astype(float) - x.astype(float).mean(1, keepdims=True)
    wanted = d / np.sqrt((d * d).mean(1, keepdims=True))
    np.testing.assert_allclose(found.astype(float), wanted, rtol=2**-10, atol=2**-10)


def test_the_interpreter_as_reference_sums_in_f32(tmp_path: Any) -> None:
    from davinci.tools import npu_run

    path = tmp_path / "sum.mlir"
    path.write_text(
        """func.func @main() -> tensor<8xf16> {
          %x = stablehlo.constant dense<1.0> : tensor<4096x8xf16>
          %c = stablehlo.constant dense<0.0> : tensor<f16>
          %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [0]
            : (tensor<4096x8xf16>, tensor<f16>) -> tensor<8xf16>
          return %0 : tensor<8xf16>
        }"""
    )
    assert npu_run.main([str(path), "--check"]) == 0
