"""Networks as steps that read and write tensors, read off their ONNX graphs without compiling.

`Vertices` says what is an operator of its own, in which frameworks differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import onnx
from onnx import helper

from davinci.planning import Step, Work

FLOAT_BYTES = 4

VIEWS = frozenset(["Identity", "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Dropout"])
"""Operators whose result is their operand under another shape: no step, and no bytes."""

ACTIVATIONS = frozenset(["Relu", "Clip", "HardSwish", "Sigmoid"])


@dataclass(frozen=True)
class Vertices:
    """Chooses which parts of a network count as operators of their own.

    Attributes:
        activations: whether these are, behind convolutions and sums; else they are computed with
            what is in front of them.
        norms: whether a batch normalisation behind each convolution is.
        overwrites: whether an activation or normalisation that is one writes over its operand, if
            nothing else reads that.
    """

    activations: bool = True
    norms: bool = False
    overwrites: bool = False


def groups_apart(model: onnx.ModelProto) -> onnx.ModelProto:
    """A network whose convolutions of groups are one convolution for each group, between an
    operator that splits channels and one that joins them; those of single channels stay."""
    graph = model.graph
    shapes = {value.name: sizes_of(value) for value in (*graph.value_info, *graph.input)}
    weights = {tensor.name: tensor for tensor in graph.initializer}
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.node[:]
    for node in graph.node:
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        groups = attributes.get("group", 1)
        if node.op_type != "Conv" or groups == 1 or groups == shapes[node.input[0]][1]:
            made.graph.node.append(node)
            continue
        attributes["group"] = 1
        name, rest = node.name or node.output[0], list(node.input[1:])
        parts = [f"{name}/in{i}" for i in range(groups)]
        made.graph.node.append(
            helper.make_node("Split", node.input[:1], parts, name=f"{name}/split", axis=1)
        )
        results = []
        taken = [_parts_of(made, weights[each], groups) for each in rest]
        for i in range(groups):
            inputs = [parts[i], *(names[i] for names in taken)]
            result = f"{name}/out{i}"
            conv = helper.make_node("Conv", inputs, [result], name=f"{name}/{i}", **attributes)
            made.graph.node.append(conv)
            results.append(result)
            for value, of in ((parts[i], node.input[0]), (result, node.output[0])):
                shape = list(shapes[of])
                shape[1] //= groups
                info = helper.make_tensor_value_info(value, onnx.TensorProto.FLOAT, shape)
                made.graph.value_info.append(info)
        joined = helper.make_node("Concat", results, node.output, name=f"{name}/join", axis=1)
        made.graph.node.append(joined)
    return made


def _parts_of(model: onnx.ModelProto, tensor: onnx.TensorProto, groups: int) -> list[str]:
    """Names of the rows of a weight that belong to each group, added to the model."""
    array = onnx.numpy_helper.to_array(tensor)
    names = []
    for i, part in enumerate(array.reshape(groups, -1, *array.shape[1:])):
        names.append(f"{tensor.name}/{i}")
        model.graph.initializer.append(onnx.numpy_helper.from_array(part, names[-1]))
    return names


def sizes_of(value: onnx.ValueInfoProto) -> tuple[int, ...]:
    """The shape of a value."""
    return tuple(int(d.dim_value) for d in value.type.tensor_type.shape.dim)


def weights_bytes(model: onnx.ModelProto) -> int:
    """Bytes of all weights in floats; biases, into which batch normalisations are folded, too."""
    shapes = [tensor.dims for tensor in model.graph.initializer if tensor.dims]
    return sum(FLOAT_BYTES * int(math.prod(shape)) for shape in shapes)


def work_of(model: onnx.ModelProto, vertices: Vertices) -> Work:
    """The steps of a network, its input and its weights left out."""
    return _Reader(model, vertices).work()


class _Reader:
    """Reads the nodes of a network in order."""

    def __init__(self, model: onnx.ModelProto, vertices: Vertices) -> None:
        graph = model.graph
        self._nodes: Sequence[onnx.NodeProto] = graph.node
        self._vertices = vertices
        values = (*graph.value_info, *graph.output)
        self._sizes = {v.name: FLOAT_BYTES * math.prod(sizes_of(v)) for v in values}
        self._readers: dict[str, int] = {}
        for node in graph.node:
            for name in node.input:
                self._readers[name] = self._readers.get(name, 0) + 1
        self._tensors: list[int] = []
        self._place: dict[str, int] = {}
        self._steps: list[Step] = []
        self._last: dict[int, str] = {}

    def work(self) -> Work:
        for node in self._nodes:
            self._visit(node)
        return Work(tuple(self._tensors), tuple(self._steps))

    def _visit(self, node: onnx.NodeProto) -> None:
        inputs = [name for name in node.input if name in self._place]
        if node.op_type in VIEWS:
            if inputs:
                self._place[node.output[0]] = self._place[inputs[0]]
            return
        alone = len(inputs) == 1 and self._readers[inputs[0]] == 1
        if node.op_type in ACTIVATIONS and alone:
            before = self._last.get(self._place[inputs[0]], "")
            over = self._vertices.overwrites
            if over or (not self._vertices.activations and before in ("Conv", "Add", "Gemm")):
                self._place[node.output[0]] = self._place[inputs[0]]
                return
        reads = tuple(dict.fromkeys(self._place[name] for name in inputs))
        self._add(node, reads)
        behind = node.op_type == "Conv"
        if behind and self._vertices.norms and not self._vertices.overwrites:
            self._add(node, (self._place[node.output[0]],))

    def _add(self, node: onnx.NodeProto, reads: tuple[int, ...]) -> None:
        writes = []
        for name in node.output:
            self._place[name] = len(self._tensors)
            self._last[len(self._tensors)] = node.op_type
            writes.append(len(self._tensors))
            self._tensors.append(self._sizes[name])
        self._steps.append(Step(reads, tuple(writes), name=node.name))
