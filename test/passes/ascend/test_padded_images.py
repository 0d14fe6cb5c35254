"""Images whose last fractals are padded, pixels or channels: what follows convolutions is computed
as they lie."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import davinci


def excited(side: int, channels: int, group: int = 1, end: str = "Mul") -> onnx.ModelProto:
    """x = swish(conv); conv(x * logistic(w mean(x))): a block of squeeze and excitation.

    Args:
        group: groups of the first convolution.
        end: what is done with the gate.
    """
    random, few = np.random.default_rng(side), channels // 4
    shapes = {
        "a": (channels, channels // group, 3, 3),
        "b": (channels,),
        "c": (few, channels, 1, 1),
        "d": (channels, few, 1, 1),
        "e": (channels, channels, 1, 1),
    }
    weights = [
        numpy_helper.from_array(random.standard_normal(shape).astype(np.float32) / 8, name)
        for name, shape in shapes.items()
    ]
    nodes = [
        helper.make_node("Conv", ["x", "a", "b"], ["y"], pads=[1, 1, 1, 1], group=group),
        helper.make_node("Sigmoid", ["y"], ["z"]),
        helper.make_node("Mul", ["y", "z"], ["s"]),
        helper.make_node("GlobalAveragePool", ["s"], ["m"]),
        helper.make_node("Conv", ["m", "c"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("Conv", ["r", "d"], ["o"]),
        helper.make_node("Sigmoid", ["o"], ["g"]),
        helper.make_node(end, ["s", "g"], ["t"]),
        helper.make_node("Conv", ["t", "e"], ["out"]),
    ]
    shape = [2, channels, side, side]
    x, out = (helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("x", "out"))
    graph = helper.make_graph(nodes, "excited", [x], [out], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(("side", "channels"), [(7, 32), (5, 48), (4, 32)])
def test_squeeze_and_excitation(side: int, channels: int) -> None:
    model = excited(side, channels)
    x = np.random.default_rng(0).standard_normal((2, channels, side, side)).astype(np.float32)
    executable = davinci.compile(model)
    (found,) = executable.run({"x": x}).values()
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    np.testing.assert_allclose(found, wanted, rtol=0, atol=0.01 * np.abs(wanted).max())
    kernels = [one["kernel"] for one in executable.profile["launches_list"]]
    assert not [name for name in kernels if name.startswith("broadcast")]
    assert len([name for name in kernels if name.startswith("defractalize")]) <= 1, kernels


@pytest.mark.parametrize(
    ("side", "end", "machine"),
    [
        (7, "Mul", "ascend910b"),
        (4, "Mul", "ascend910"),
        (4, "Add", "ascend910b"),
        (3, "Div", "ascend910"),
    ],
)
def test_channels_of_groups_that_end_inside_a_fractal(side: int, end: str, machine: str) -> None:
    """Gates come in fractals, for what leaves the zeros of padding; a division by these and a sum
    of rows do not."""
    model = excited(side, 40, 5, end)
    x = np.random.default_rng(0).standard_normal((2, 40, side, side)).astype(np.float32)
    executable = davinci.compile(model, machine=machine)
    (found,) = executable.run({"x": x}).values()
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    np.testing.assert_allclose(found, wanted, rtol=0, atol=0.01 * np.abs(wanted).max())
    kernels = [one["kernel"] for one in executable.profile["launches_list"]]
    repeated = [name for name in kernels if name.startswith("broadcast")]
    assert end != "Mul" or not repeated, kernels
