"""Models that onnxruntime's quantizer makes, and its optimizer rewrites, against onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

import davinci
from davinci.errors import CompileError

RNG = np.random.default_rng(0)
SHAPE = (1, 32, 8, 8)

STEPS = 3
"""Of 255 in the range of a result, by how many it may differ: integers in front of the last layer
are next to those of onnxruntime where a sum lies between two of them."""


class Samples(CalibrationDataReader):  # type: ignore[misc]
    """Four random images."""

    def __init__(self) -> None:
        self._left = [{"x": RNG.standard_normal(SHAPE, np.float32)} for _ in range(4)]

    def get_next(self) -> Any:
        return self._left.pop() if self._left else None


def network(path: Path) -> Path:
    """Convolutions with a residual, a largest of windows, an average, a vector, a fully connected
    layer."""
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w0", "b0"], ["a"], name="first", pads=[1] * 4),
        node("Relu", ["a"], ["r"], name="relu"),
        node("MaxPool", ["r"], ["p"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["p", "w1"], ["c"], name="second", pads=[1] * 4),
        node("Add", ["c", "p"], ["s"], name="residual"),
        node("GlobalAveragePool", ["s"], ["g"], name="average"),
        node("Flatten", ["g"], ["f"], name="flat"),
        node("Add", ["f", "v"], ["h"], name="vector"),
        node("Gemm", ["h", "w2", "b2"], ["y"], name="last", transB=1),
    ]
    shapes = {"w0": (32, 32, 3, 3), "b0": (32,), "w1": (32, 32, 3, 3), "v": (32,)}
    shapes |= {"w2": (10, 32), "b2": (10,)}
    tensors = [
        numpy_helper.from_array(RNG.standard_normal(shape, np.float32) * np.float32(0.1), name)
        for name, shape in shapes.items()
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", SHAPE), ("y", (1, 10)))
    ]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], tensors)
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path / "net.onnx")
    return path / "net.onnx"


def optimized(path: Path, level: str = "ORT_ENABLE_ALL") -> Path:
    """The model as onnxruntime rewrites it."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path.with_name("all.onnx"))
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    onnxruntime.InferenceSession(str(path), options)
    return path.with_name("all.onnx")


def agrees(path: Path) -> None:
    inputs = Samples().get_next()
    (wanted,) = onnxruntime.InferenceSession(str(path)).run(None, inputs)
    executable = davinci.compile(path)
    (found,) = executable.run(inputs).values()
    assert np.abs(found - wanted).max() <= STEPS / 255 * np.ptp(wanted)


@pytest.mark.parametrize("per_channel", [False, True], ids=["per-tensor", "per-channel"])
@pytest.mark.parametrize("form", [QuantFormat.QDQ, QuantFormat.QOperator], ids=lambda f: f.name)
def test_static(form: QuantFormat, per_channel: bool, tmp_path: Path) -> None:
    """Where all columns of a layer have one scale, that is a number in its kernel."""
    made = tmp_path / "int8.onnx"
    quantize_static(
        network(tmp_path),
        made,
        Samples(),
        quant_format=form,
        per_channel=per_channel,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )
    agrees(made)
    if per_channel:
        agrees(optimized(made))


def test_dynamic(tmp_path: Path) -> None:
    quantize_dynamic(network(tmp_path), tmp_path / "int8.onnx", weight_type=QuantType.QUInt8)
    agrees(tmp_path / "int8.onnx")


def test_optimized_floats(tmp_path: Path) -> None:
    agrees(optimized(network(tmp_path), "ORT_ENABLE_EXTENDED"))


def test_layouts_of_one_processor_are_refused_with_what_to_do(tmp_path: Path) -> None:
    """The highest level leaves blocks of channels as this machine's vectors want them."""
    path = network(tmp_path)
    model = onnx.load(path)
    model.graph.node[0].domain = "com.microsoft.nchwc"
    model.opset_import.append(helper.make_opsetid("com.microsoft.nchwc", 1))
    with pytest.raises(CompileError, match=r"Conv of node 'first'.*ORT_ENABLE_EXTENDED"):
        davinci.compile(model)
