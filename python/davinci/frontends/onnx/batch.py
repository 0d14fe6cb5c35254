"""An ONNX model of one sample as a model of several.

before: input [1, 128], Reshape of it to [1, 128, 12, 64], or to [1, 128, -1, 64]
after:  input [4, 128], Reshape of it to [-1, 128, 12, 64], or to [4, 128, -1, 64]

The first dimension of every input is the batch. What a `Reshape` of something that depends on an
input makes, to a shape that is a constant, keeps all of its dimensions but the first: that one
takes what is left, or is the batch where another dimension does so already. Whether a model means
the same then is for the caller to find out: that its outputs for several samples are those of each
sample, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import numpy_helper

from davinci.errors import InputError
from davinci.frontends.onnx.model import inputs_of


def batched(model: onnx.ModelProto, count: int, where: str) -> onnx.ModelProto:
    """The model for `count` samples at once.

    Raises:
        InputError: an input whose first dimension is not 1, or is none.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for value in inputs_of(made):
        dims = value.type.tensor_type.shape.dim
        if not dims or dims[0].dim_value not in (0, 1):
            raise InputError(
                "not a model of one sample",
                where=f"{where}: input {value.name!r}",
                found=f"{dims[0].dim_value} as its first dimension" if dims else "a number",
                expected="1",
                hint=f"export the model with a batch of {count}",
            )
        dims[0].dim_value = count
    graph, shapes = made.graph, result_shapes(model)
    for value in graph.output:
        value.type.tensor_type.shape.Clear()
    del graph.value_info[:]
    constants = constant_tensors(graph)
    depending = {value.name for value in inputs_of(made)}
    for node in graph.node:
        if not depending.intersection(node.input):
            continue
        depending.update(node.output)
        name = node.input[1] if node.op_type == "Reshape" else ""
        if name not in constants or node.input[0] not in depending:
            continue
        sizes = shapes.get(node.output[0], ())
        wanted = [int(size) for size in numpy_helper.to_array(constants[name])]
        if sizes and all(sizes):
            node.input[1] = _shape(graph, [-1, *sizes[1:]])
        elif wanted[:1] == [1] and -1 in wanted:
            node.input[1] = _shape(graph, [count, *wanted[1:]])
    return made


def constant_tensors(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto]:
    """Initializers and the tensors of `Constant` nodes by name."""
    found = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            found[node.output[0]] = node.attribute[0].t
    return found


def result_shapes(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    """Shapes of values by name, as far as they are known; a dimension that is not is 0."""
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    return {
        value.name: tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
        for value in (*inferred.value_info, *inferred.output)
    }


def _shape(graph: onnx.GraphProto, sizes: Sequence[int]) -> str:
    """The name of the constant that says this shape, which is made if it is not there."""
    name = f"batched/{'x'.join(map(str, sizes))}"
    if all(tensor.name != name for tensor in graph.initializer):
        graph.initializer.append(numpy_helper.from_array(np.array(sizes, np.int64), name))
    return name
