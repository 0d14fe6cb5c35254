"""A thin builder over `onnx.helper`: nodes named after their scopes, weights from one seed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from davinci.errors import InputError
from davinci.stand_ins import has_stand_in

OPSET = 17
IR_VERSION = 9
"""Old enough for every onnxruntime in use, and what PyTorch exported for years."""

WEIGHT_STD = 0.05

_SKETCHING: ContextVar[bool] = ContextVar("large weights have no values", default=False)


@contextmanager
def weights_left_out() -> Iterator[None]:
    """Networks that are built inside have large weights without values, for runs that find times
    only: the importer puts others in their place, see `davinci.stand_ins`."""
    token = _SKETCHING.set(True)
    try:
        yield
    finally:
        _SKETCHING.reset(token)


class OnnxGraph:
    """Nodes and weights of a graph under construction; values are their names."""

    def __init__(self, name: str, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        # Holds the weights from the start: messages that are put together later are copied.
        self.proto = onnx.ModelProto(ir_version=IR_VERSION, producer_name="davinci.zoo")
        self.proto.opset_import.append(helper.make_opsetid("", OPSET))
        self.proto.graph.name = name
        self.weights: set[str] = set()
        self._scopes: list[str] = []

    def input(self, name: str, dtype: int, shape: Sequence[int]) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, dtype, list(shape)))
        return name

    def output(
        self, value: str, name: str, shape: Sequence[int], dtype: int = TensorProto.FLOAT
    ) -> None:
        """Makes a value an output of the graph under the name `name`."""
        self.nodes.append(helper.make_node("Identity", [value], [name], name=f"Identity_{name}"))
        self.outputs.append(helper.make_tensor_value_info(name, dtype, list(shape)))

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Nodes made inside are called `/{name}/MatMul_3`, as PyTorch names those of modules."""
        self._scopes.append(name)
        yield
        self._scopes.pop()

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = self._name(operator)
        result = f"{name}_output"
        self.nodes.append(helper.make_node(operator, inputs, [result], name=name, **attributes))
        return result

    def parts(self, operator: str, *inputs: str, count: int, **attributes: Any) -> list[str]:
        """The results of a node that has several."""
        name = self._name(operator)
        results = [f"{name}_output_{i}" for i in range(count)]
        self.nodes.append(helper.make_node(operator, inputs, results, name=name, **attributes))
        return results

    def _name(self, operator: str) -> str:
        own = f"{operator}_{len(self.nodes)}"
        return "/".join(["", *self._scopes, own]) if self._scopes else own

    def constant(self, array: npt.ArrayLike) -> str:
        name = f"constant_{len(self.proto.graph.initializer)}"
        self.proto.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def scalar(self, value: float) -> str:
        return self.constant(np.float32(value))

    def weight(self, name: str, *shape: int, mean: float = 0.0, std: float = WEIGHT_STD) -> str:
        """A float32 weight, normally distributed around `mean`."""
        tensor = self.proto.graph.initializer.add()
        tensor.dims.extend(shape)
        tensor.data_type = TensorProto.FLOAT
        tensor.name = name
        if _SKETCHING.get() and has_stand_in(shape, np.float32):
            tensor.data_location = TensorProto.EXTERNAL
        else:
            values = self.rng.standard_normal(math.prod(shape), dtype=np.float32)
            values *= np.float32(std)
            values += np.float32(mean)
            tensor.raw_data = values.astype("<f4", copy=False).tobytes()
        self.weights.add(name)
        return name

    def model(self) -> onnx.ModelProto:
        """The graph as a checked model with the shapes of all values inferred.

        The check and the inference copy their model several times; they see weights as inputs.
        """
        tensors = self.proto.graph.initializer
        kept = [tensor for tensor in tensors if tensor.name not in self.weights]
        weights = [
            helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            for tensor in tensors
            if tensor.name in self.weights
        ]
        inputs = [*self.inputs, *weights]
        name = self.proto.graph.name
        light = helper.make_model(
            helper.make_graph(self.nodes, name, inputs, self.outputs, kept),
            opset_imports=self.proto.opset_import,
            ir_version=IR_VERSION,
        )
        light = onnx.shape_inference.infer_shapes(light, check_type=True, strict_mode=True)
        onnx.checker.check_model(light)
        graph = self.proto.graph
        graph.node.extend(self.nodes)
        graph.input.extend(self.inputs)
        graph.output.extend(self.outputs)
        graph.value_info.extend(light.graph.value_info)
        return self.proto


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
