"""Operators that the importer gets wrong, or dies of, against onnx's reference or NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

import davinci
from davinci import check
from davinci.errors import CompileError

Arrays = dict[str, np.ndarray[Any, Any]]


def model_of(nodes: list[Any], inputs: Arrays, opset: int = 22) -> onnx.ModelProto:
    values = [
        helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for k, a in inputs.items()
    ]
    result = onnx.ValueInfoProto(name="y")
    graph = helper.make_graph(nodes, "graph", values, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return onnx.shape_inference.infer_shapes(model)


def assert_right(nodes: list[Any], inputs: Arrays) -> None:
    model = model_of(nodes, inputs)
    (wanted,) = ReferenceEvaluator(model).run(None, inputs)
    found = davinci.compile(model).run(inputs)
    check.require(check.compare(found, {"y": np.asarray(wanted)}), "mixed")


def values(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.int8])
def test_mod_has_the_sign_of_the_divisor(dtype: Any) -> None:
    x = np.array([-4, 7, 5, 4, -7, 8, 0, -6], dtype)
    y = np.array([2, -3, 8, -2, 3, 5, -3, 4], dtype)
    model = model_of([helper.make_node("Mod", ["a", "b"], ["y"])], {"a": x, "b": y})
    found = davinci.compile(model).run({"a": x, "b": y})["y"]
    np.testing.assert_array_equal(found, np.mod(x, y))


@pytest.mark.parametrize("name", ["ReduceMax", "ReduceMin"])
def test_reduction_of_booleans(name: str) -> None:
    axes = helper.make_node("Constant", [], ["axes"], value_ints=[1])
    nodes = [axes, helper.make_node(name, ["x", "axes"], ["y"])]
    assert_right(nodes, {"x": np.array([[0, 0], [0, 1], [1, 1]], bool)})
    nothing = {"x": np.zeros((3, 0), bool)}
    found = davinci.compile(model_of(nodes, nothing)).run(nothing)["y"]
    np.testing.assert_array_equal(found, np.full((3, 1), name == "ReduceMin"))


def test_normalization_of_zeros() -> None:
    x = values(3, 4)
    x[1] = 0
    model = model_of([helper.make_node("LpNormalization", ["x"], ["y"], axis=1, p=2)], {"x": x})
    norm = np.linalg.norm(x, axis=1, keepdims=True)
    found = davinci.compile(model).run({"x": x})["y"]
    np.testing.assert_allclose(found, x / np.where(norm == 0, 1, norm), rtol=1e-3)


POOLS: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("MaxPool", (1, 1, 4, 4), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    ("MaxPool", (1, 2, 7, 6), {"kernel_shape": [3, 2], "dilations": [2, 2], "ceil_mode": 1}),
    ("AveragePool", (1, 2, 5, 6, 7), {"kernel_shape": [2, 2, 2]}),
    ("AveragePool", (1, 2, 6, 6), {"kernel_shape": [2, 2], "dilations": [2, 2]}),
    ("AveragePool", (1, 2, 6, 6), {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER"}),
    ("AveragePool", (1, 2, 6, 6), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    ("LpPool", (1, 2, 6, 6), {"kernel_shape": [2, 2], "p": 2}),
]


@pytest.mark.parametrize(("name", "shape", "attributes"), POOLS)
def test_pooling(name: str, shape: tuple[int, ...], attributes: dict[str, Any]) -> None:
    assert_right([helper.make_node(name, ["x"], ["y"], **attributes)], {"x": values(*shape)})


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_pooling_of_bytes(dtype: Any) -> None:
    x = np.random.default_rng(0).integers(0, 127, (1, 1, 5, 5)).astype(dtype)
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    found = davinci.compile(model_of([node], {"x": x})).run({"x": x})["y"]
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x[0, 0], 1), (3, 3))
    np.testing.assert_array_equal(found[0, 0], windows.max(axis=(2, 3)))


def test_padding_that_wraps_around() -> None:
    x, pads = values(1, 3, 4, 5), np.array([0, 1, 0, 7, 0, 0, 2, 1])
    constant = helper.make_node("Constant", [], ["p"], value_ints=pads.tolist())
    model = model_of([constant, helper.make_node("Pad", ["x", "p"], ["y"], mode="wrap")], {"x": x})
    found = davinci.compile(model).run({"x": x})["y"]
    wanted = np.pad(x, [(0, 0), (1, 0), (0, 2), (7, 1)], mode="wrap")
    np.testing.assert_array_equal(found, wanted)


RESIZES: list[dict[str, Any]] = [
    {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    {"mode": "nearest"},
    {"mode": "linear"},
    {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
    {"mode": "cubic", "cubic_coeff_a": -0.5, "exclude_outside": 1},
]


@pytest.mark.parametrize("scales", [[1, 1, 2, 2], [1, 1, 0.6, 1.5]])
@pytest.mark.parametrize("attributes", RESIZES)
def test_resize(attributes: dict[str, Any], scales: list[float]) -> None:
    tensor = onnx.numpy_helper.from_array(np.array(scales, np.float32))
    constant = helper.make_node("Constant", [], ["s"], value=tensor)
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], **attributes)
    assert_right([constant, node], {"x": values(1, 2, 5, 6)})


@pytest.mark.parametrize("per_channel", [False, True])
def test_quantization(per_channel: bool) -> None:
    x = values(3, 4, 5)
    scale = np.array([0.02, 0.05, 0.01, 0.5] if per_channel else 0.03, np.float32)
    zero = np.array([3, -4, 0, 7] if per_channel else -2, np.int8)
    nodes = [
        helper.make_node("Constant", [], ["s"], value=onnx.numpy_helper.from_array(scale)),
        helper.make_node("Constant", [], ["z"], value=onnx.numpy_helper.from_array(zero)),
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=1),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], axis=1),
    ]
    assert_right(nodes, {"x": x})


def test_definition_of_an_operator_that_cannot_be_lowered() -> None:
    inputs = {"x": values(1, 2, 3, 8), "c": values(5, 4), "s": values(5, 4)}
    inputs["p"] = np.array([[0, 2, 4]], np.int64)
    node = helper.make_node("RotaryEmbedding", ["x", "c", "s", "p"], ["y"])
    model = model_of([node], inputs, opset=23)
    assert davinci.compile(model).outputs[0].shape == (1, 2, 3, 8)


@pytest.mark.parametrize(
    ("node", "inputs", "message"),
    [
        (
            helper.make_node("RandomNormalLike", ["a"], ["y"], name="noise"),
            {"a": np.zeros(4, np.float32)},
            "found operator RandomNormalLike of node 'noise'",
        ),
        (
            helper.make_node("Compress", ["a", "b"], ["y"], name="some"),
            {"a": np.zeros(4, np.float32), "b": np.zeros(4, np.bool_)},
            "found operator Compress of node 'some'",
        ),
    ],
)
def test_refused(node: Any, inputs: Arrays, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        davinci.compile(model_of([node], inputs))
