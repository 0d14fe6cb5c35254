"""Writes QDQ models: QuantizeLinear and DequantizeLinear around what becomes integers.

    x -> Conv(w, b)    ==>    x -> QuantizeLinear -> DequantizeLinear -> Conv(w', b')
                              with w' the DequantizeLinear of int8 constants

All readers of a quantized activation read the integers, so that only these are stored. Results keep
their names. Biases stay floats.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from davinci.quantization.layers import array_of, captured, constants_of
from davinci.quantization.records import Array, Layer, QuantizationPlan, QuantizedWeight, Scale

TWIN = "_twin"


class AddedParts:
    """Nodes and constants that are added to a graph, under names that nothing has."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        names = {name for node in graph.node for name in (*node.input, *node.output)}
        inner = {name for node in graph.node for name in captured(node)}
        self.names = names | inner | {tensor.name for tensor in graph.initializer}
        self.constants: list[onnx.TensorProto] = []

    def fresh(self, name: str) -> str:
        while name in self.names:
            name += "_"
        self.names.add(name)
        return name

    def constant(self, name: str, values: npt.ArrayLike) -> str:
        name = self.fresh(name)
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def through_int8(self, value: str, scale: Scale) -> tuple[list[onnx.NodeProto], str]:
        """Nodes that make int8 of a value and floats of that again, and the name of these."""
        given = self.constant(f"{value}_scale", np.float32(scale.scale))
        zero = self.constant(f"{value}_zero_point", np.int8(scale.zero))
        integers = self.fresh(f"{value}_quantized")
        floats = self.fresh(f"{value}_dequantized")
        nodes = [
            helper.make_node("QuantizeLinear", [value, given, zero], [integers], name=integers),
            helper.make_node("DequantizeLinear", [integers, given, zero], [floats], name=floats),
        ]
        return nodes, floats

    def weight(self, layer: Layer, weight: QuantizedWeight) -> tuple[onnx.NodeProto, str]:
        """The node that makes floats of a layer's weight, and their name."""
        integers = self.constant(f"{layer.weight}_quantized", weight.integers)
        scales = self.constant(f"{layer.weight}_scale", weight.scales)
        zero = self.constant(f"{layer.weight}_zero_point", np.zeros(weight.scales.shape, np.int8))
        floats = self.fresh(f"{layer.weight}_dequantized")
        given = [integers, scales, zero]
        return helper.make_node(
            "DequantizeLinear", given, [floats], name=floats, axis=layer.axis
        ), floats


def written(model: onnx.ModelProto, plan: QuantizationPlan) -> onnx.ModelProto:
    """The model with the layers of the plan as products of integers."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    parts = AddedParts(graph)
    kept = constants_of(graph)
    activations = list(dict.fromkeys(layer.activation for layer in plan.layers))
    quantized: dict[str, str] = {}
    behind: dict[str, list[onnx.NodeProto]] = {}
    for value in activations:
        behind[value], quantized[value] = parts.through_int8(value, plan.scales[value])
    nodes = list(graph.node)
    results = [list(node.output) for node in nodes]
    before: dict[int, list[onnx.NodeProto]] = {}
    for node in nodes:
        node.input[:] = [quantized.get(name, name) for name in node.input]
    for layer in plan.layers:
        node = nodes[layer.node]
        made, node.input[1] = parts.weight(layer, plan.weights[layer.name])
        before[layer.node] = [made]
        if layer.name in plan.shifts:
            shift = plan.shifts[layer.name].astype(np.float32)
            added = shifted(nodes, layer, shift, kept, parts)
            behind.setdefault(layer.output, [])[:0] = added
    ordered = [added for value in graph.input for added in behind.pop(value.name, [])]
    for place, node in enumerate(nodes):
        ordered += [*before.get(place, []), node]
        ordered += [added for name in results[place] for added in behind.pop(name, [])]
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in ordered]
    del graph.node[:]
    graph.node.extend(copies)
    graph.initializer.extend(parts.constants)
    drop_unread(graph)
    return result


def shifted(
    nodes: list[onnx.NodeProto],
    layer: Layer,
    shift: Array,
    constants: dict[str, onnx.TensorProto],
    parts: AddedParts,
) -> list[onnx.NodeProto]:
    """Takes a shift off the results of a layer: off its bias if it has one, as a bias if it can
    have one, else by a node behind it, which is returned."""
    if layer.bias:
        adder = nodes[layer.adder]
        place = list(adder.input).index(layer.bias)
        bias = array_of(constants[layer.bias]) - shift
        adder.input[place] = parts.constant(f"{layer.bias}_corrected", bias)
        return []
    node = nodes[layer.node]
    if layer.operator == "Conv" and (len(node.input) == 2 or not node.input[2]):
        node.input[2:] = [parts.constant(f"{layer.weight}_bias", -shift)]
        return []
    each = (-shift).reshape(-1, *[1] * (-1 - layer.channels))
    added = parts.constant(f"{layer.weight}_bias", each)
    product = parts.fresh(f"{layer.product}_uncorrected")
    node.output[0] = product
    name = parts.fresh(f"{layer.product}_corrected")
    return [helper.make_node("Add", [product, added], [layer.product], name=name)]


def beside(
    model: onnx.ModelProto, plan: QuantizationPlan
) -> tuple[onnx.ModelProto, dict[str, str]]:
    """The model of floats, in which each layer has a twin of integers that reads the same floats.

    Returns:
        The model, and the name of each layer's result in it as its twin has it.
    """
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    parts = AddedParts(graph)
    through: dict[str, str] = {}
    twins: dict[str, str] = {}
    for layer in plan.layers:
        if layer.activation not in through:
            nodes, floats = parts.through_int8(layer.activation, plan.scales[layer.activation])
            graph.node.extend(nodes)
            through[layer.activation] = floats
        made, weight = parts.weight(layer, plan.weights[layer.name])
        twin = onnx.NodeProto()
        twin.CopyFrom(graph.node[layer.node])
        twin.name = parts.fresh(f"{layer.name}{TWIN}")
        twin.input[:2] = [through[layer.activation], weight]
        twin.output[0] = twins[layer.name] = parts.fresh(f"{layer.product}{TWIN}")
        graph.node.extend([made, twin])
    graph.initializer.extend(parts.constants)
    return result, twins


def drop_unread(graph: onnx.GraphProto) -> None:
    """Drops constants that nothing reads any more."""
    read = {name for node in graph.node for name in (*node.input, *captured(node))}
    read |= {value.name for value in graph.output}
    unread = {tensor.name for tensor in graph.initializer} - read
    constants = (node for node in graph.node if node.op_type == "Constant")
    unread |= {node.output[0] for node in constants} - read
    for field in (graph.initializer, graph.input):
        for place in reversed(range(len(field))):
            if field[place].name in unread:
                del field[place]
    for place in reversed(range(len(graph.node))):
        if unread.intersection(graph.node[place].output):
            del graph.node[place]
