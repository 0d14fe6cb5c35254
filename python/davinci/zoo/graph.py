"""A thin builder over `onnx.helper`: nodes named after their operator, weights from one seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from davinci.errors import InputError

OPSET = 17
IR_VERSION = 9
"""Old enough for every onnxruntime in use, and what PyTorch exported for years."""

WEIGHT_STD = 0.05


class Graph:
    """Nodes and weights of a graph under construction; values are their names."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, dtype: int, shape: Sequence[int]) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, dtype, list(shape)))
        return name

    def output(self, value: str, name: str, shape: Sequence[int]) -> None:
        """Makes a float value an output of the graph under the name `name`."""
        self.nodes.append(helper.make_node("Identity", [value], [name], name=f"Identity_{name}"))
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)))

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = f"{operator}_{len(self.nodes)}"
        result = f"{name}_output"
        self.nodes.append(helper.make_node(operator, inputs, [result], name=name, **attributes))
        return result

    def constant(self, array: npt.ArrayLike, name: str = "") -> str:
        name = name or f"constant_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def scalar(self, value: float) -> str:
        return self.constant(np.float32(value))

    def weight(self, name: str, *shape: int, mean: float = 0.0) -> str:
        """A float32 weight, normally distributed around `mean`."""
        values = self.rng.standard_normal(shape, dtype=np.float32) * np.float32(WEIGHT_STD)
        return self.constant(values + np.float32(mean), name)

    def model(self) -> onnx.ModelProto:
        """The graph as a checked model with the shapes of all values inferred."""
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.weights)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="davinci.zoo",
        )
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        onnx.checker.check_model(inferred)
        return inferred


def require(network: str, holds: bool, message: str, found: object) -> None:
    """Raises an `InputError` about the parameters of `network` unless `holds`."""
    if not holds:
        raise InputError(message, where=f"zoo:{network}", found=str(found))


def require_positive(network: object, *parameters: str) -> None:
    """Raises an `InputError` unless these parameters of a network are at least 1."""
    for name in parameters:
        value = getattr(network, name)
        message = f"parameter '{name}' must be at least 1"
        require(type(network).__name__.lower(), value >= 1, message, value)
