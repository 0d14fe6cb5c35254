"""Finds the products of a graph that are worth making of bytes: those with a constant operand.

Products of two computed operands, those of attention, stay in fp16: their kernels keep scores on
the chip. So do convolutions of few channels, stems and depthwise ones: the cube takes bytes in
blocks of 32 channels, which would be mostly padding. Graphs inside of nodes are left as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from davinci.frontends.onnx.errors import name_of
from davinci.quantization.records import Array, Layer
from davinci.units import BLOCK_BYTES

OPERATORS = ("Conv", "Gemm", "MatMul")


def constants_of(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto]:
    """Initializers and what `Constant` nodes hold, by name."""
    found = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            found[node.output[0]] = node.attribute[0].t
    return found


def array_of(tensor: onnx.TensorProto) -> Array:
    return np.asarray(numpy_helper.to_array(tensor))


def layers_of(graph: onnx.GraphProto) -> tuple[Layer, ...]:
    """The products of float32 whose second operand, and only that, is a constant; convolutions of
    less than a block of channels, of each of their groups, are left out.

    A channel is a byte: the cube multiplies a block of them at once (`docs/hardware.md`, fractals).
    """
    constants = constants_of(graph)
    readers = readers_of(graph)
    found = []
    for place, node in enumerate(graph.node):
        if node.op_type not in OPERATORS or node.domain not in ("", "ai.onnx"):
            continue
        activation, weight = node.input[:2]
        tensor = constants.get(weight)
        if activation in constants or tensor is None or tensor.data_type != TensorProto.FLOAT:
            continue
        if node.op_type == "MatMul" and len(tensor.dims) != 2:
            continue  # a matrix for each of a batch has no one scale for each column
        if node.op_type == "Conv" and tensor.dims[1] < BLOCK_BYTES:
            continue
        if node.op_type == "Gemm" and attribute(node, "transA", 0):
            continue
        found.append(layer_of(place, node, tensor, constants, readers))
    return tuple(found)


def layer_of(
    place: int,
    node: onnx.NodeProto,
    weight: onnx.TensorProto,
    constants: Mapping[str, onnx.TensorProto],
    readers: Mapping[str, list[tuple[int, onnx.NodeProto]]],
) -> Layer:
    product = node.output[0]
    last = len(weight.dims) - 1
    axis = 0 if node.op_type == "Conv" or attribute(node, "transB", 0) else 1
    channels = -last if node.op_type == "Conv" else -1
    count = weight.dims[axis]
    bias, adder, output = "", place, product
    if node.op_type == "MatMul":
        behind = readers.get(product, [])
        if len(behind) == 1 and behind[0][1].op_type == "Add":
            number, add = behind[0]
            other = add.input[1 - list(add.input).index(product)]
            if is_bias(constants.get(other), count):
                bias, adder, output = other, number, add.output[0]
    elif len(node.input) > 2 and is_bias(constants.get(node.input[2]), count):
        bias = node.input[2] if attribute(node, "beta", 1.0) == 1.0 else ""
    return Layer(
        node=place,
        name=name_of(node, place),
        operator=node.op_type,
        activation=node.input[0],
        weight=node.input[1],
        axis=axis,
        product=product,
        channels=channels,
        bias=bias,
        adder=adder,
        output=output,
    )


def is_bias(tensor: onnx.TensorProto | None, channels: int) -> bool:
    """Whether a constant has one float for each channel, in the last dimension."""
    return (
        tensor is not None
        and tensor.data_type == TensorProto.FLOAT
        and list(tensor.dims) == [channels]
    )


def readers_of(graph: onnx.GraphProto) -> dict[str, list[tuple[int, onnx.NodeProto]]]:
    """Places and nodes that read each value; what graphs inside of a node read, the node does, and
    an output of the graph is read by a node that has no operator."""
    found: dict[str, list[tuple[int, onnx.NodeProto]]] = {}
    for place, node in enumerate(graph.node):
        for name in [*node.input, *captured(node)]:
            found.setdefault(name, []).append((place, node))
    for value in graph.output:
        found.setdefault(value.name, []).append((len(graph.node), onnx.NodeProto()))
    return found


def captured(node: onnx.NodeProto) -> Iterator[str]:
    """Names that graphs inside of a node read, also those of their own."""
    for attr in node.attribute:
        for graph in [*([attr.g] if attr.HasField("g") else []), *attr.graphs]:
            for inner in graph.node:
                yield from inner.input
                yield from captured(inner)
            yield from (value.name for value in graph.output)


def attribute(node: onnx.NodeProto, name: str, default: float) -> float:
    for attr in node.attribute:
        if attr.name == name:
            return float(helper.get_attribute_value(attr))
    return default
