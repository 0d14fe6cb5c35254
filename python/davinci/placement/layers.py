"""A network as layers: what is measured, moved between devices and placed as one."""

from __future__ import annotations

import functools
import graphlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx
import onnxruntime
from onnx import helper

from davinci.arrays import Arrays, random_inputs
from davinci.errors import InputError
from davinci.frontends.onnx.model import check_input, inputs_of
from davinci.runtime.arguments import Spec

HEAVY = frozenset(
    (
        *("Conv", "ConvInteger", "ConvTranspose", "QLinearConv"),
        *("Attention", "Einsum", "Gemm", "MatMul", "MatMulInteger", "QLinearMatMul"),
        *("GRU", "LSTM", "RNN", "If", "Loop", "Scan"),
    )
)
"""Operators that begin a layer of their own; others join the layer they read, if it is one."""

FLOPS_OF_ONE = 2
"""Floating-point operations of a multiplication with its addition."""


@dataclass(frozen=True)
class NetworkLayer:
    """Nodes that run on one device, one after the other.

    Attributes:
        name: of the last heavy node, or of the first one; unique in a network.
        operators: the nodes' operators, in their order.
        nodes: numbers of the nodes in the graph.
        inputs: names of values that other layers or the caller make.
        outputs: names of values that other layers or the caller read.
        flops: floating-point operations of its products.
        read_bytes: of its inputs and weights.
        write_bytes: of its outputs.
    """

    name: str
    operators: tuple[str, ...]
    nodes: tuple[int, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    flops: int
    read_bytes: int
    write_bytes: int


class LayeredNetwork:
    """An ONNX model of fixed shapes, cut into layers.

    Attributes:
        model: as given.
        values: every value of one run on random inputs, computed by onnxruntime: they give shapes,
            inputs to measure layers with, and what results are compared with.
        inputs: names of the values that the caller gives.
        results: names of the values that the caller gets.
        layers: in topological order.

    Raises:
        InputError: nodes wait for each other, onnxruntime cannot run the model, a value is a
            sequence, or nothing is computed.
    """

    def __init__(self, model: onnx.ModelProto, inputs: Arrays, where: str) -> None:
        self.model, self.where = model, where
        graph = model.graph
        self.constants = _constants(graph)
        self.producers = {
            name: number for number, node in enumerate(graph.node) for name in node.output if name
        }
        self._check_order()
        self.values = {**inputs, **_run_all(model, inputs, self.constants, where)}
        self.inputs = tuple(inputs)
        self.results = tuple(value.name for value in graph.output)
        self.layers = tuple(self._layers())
        if not self.layers:
            raise InputError("the network computes nothing", where=where)

    def _check_order(self) -> None:
        """Raises an `InputError` if nodes are a cycle."""
        nodes = self.model.graph.node
        needed = {
            number: [self.producers[name] for name in _reads(node) if name in self.producers]
            for number, node in enumerate(nodes)
        }
        try:
            graphlib.TopologicalSorter(needed).prepare()
        except graphlib.CycleError as error:
            names = [nodes[n].name or nodes[n].op_type for n in error.args[1]]
            raise InputError(
                "nodes wait for each other",
                where=self.where,
                found=f"a cycle, {' -> '.join(names)}",
                expected="a graph without cycles",
            ) from None

    def bytes_of(self, names: Iterable[str]) -> int:
        """Bytes of some values."""
        return sum(self.values[name].nbytes for name in names)

    @functools.cached_property
    def readers(self) -> dict[str, tuple[int, ...]]:
        """The layers that read each value which another layer or the caller makes."""
        found: dict[str, list[int]] = {}
        for number, layer in enumerate(self.layers):
            for name in layer.inputs:
                found.setdefault(name, []).append(number)
        return {name: tuple(numbers) for name, numbers in found.items()}

    @functools.cached_property
    def makers(self) -> dict[str, int]:
        """The layer that makes each value which others read."""
        return {name: i for i, layer in enumerate(self.layers) for name in layer.outputs}

    def part(self, layers: Sequence[int]) -> onnx.ModelProto:
        """Some layers as a model: inputs are the values made elsewhere, outputs those read there.

        Args:
            layers: numbers, in increasing order.
        """
        inside = set(layers)
        nodes = sorted(n for i in layers for n in self.layers[i].nodes)
        made = {name for n in nodes for name in self.model.graph.node[n].output}
        inputs = dict.fromkeys(
            name for i in layers for name in self.layers[i].inputs if name not in made
        )
        outputs = [
            name
            for i in layers
            for name in self.layers[i].outputs
            if name in self.results or not inside.issuperset(self.readers.get(name, ()))
        ]
        return self._model(nodes, list(inputs), outputs)

    def _model(self, nodes: list[int], inputs: list[str], outputs: list[str]) -> onnx.ModelProto:
        graph = self.model.graph
        read = {name for n in nodes for name in _reads(graph.node[n])}
        needed = sorted(self._constant_nodes(read))
        read |= {name for n in needed for name in _reads(graph.node[n])}
        made = helper.make_graph(
            [graph.node[n] for n in (*needed, *nodes)],
            "part",
            [self._info(name) for name in inputs],
            [self._info(name) for name in outputs],
            [tensor for tensor in graph.initializer if tensor.name in read],
        )
        made.sparse_initializer.extend(
            tensor for tensor in graph.sparse_initializer if tensor.values.name in read
        )
        model = helper.make_model(
            made, opset_imports=self.model.opset_import, functions=self.model.functions
        )
        model.ir_version = self.model.ir_version
        return model

    def _info(self, name: str) -> onnx.ValueInfoProto:
        array = self.values[name]
        return helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )

    def _constant_nodes(self, names: Iterable[str]) -> set[int]:
        """The nodes that make the constants among these values, and what they read."""
        found: set[int] = set()
        waiting = [name for name in names if name in self.constants]
        while waiting:
            number = self.producers.get(waiting.pop())
            if number is not None and number not in found:
                found.add(number)
                waiting += [
                    name for name in _reads(self.model.graph.node[number]) if name in self.constants
                ]
        return found

    def _layers(self) -> Iterator[NetworkLayer]:
        graph = self.model.graph
        groups: list[list[int]] = []
        group_of: dict[int, int] = {}
        readers: dict[str, set[int]] = {}
        for number, node in enumerate(graph.node):
            for name in _reads(node):
                readers.setdefault(name, set()).add(number)
        for number, node in enumerate(graph.node):
            if all(name in self.constants for name in node.output if name):
                continue
            before = {
                self.producers[name]
                for name in _reads(node)
                if name in self.producers and name not in self.constants
            }
            joined = None
            if len(before) == 1 and node.op_type not in HEAVY:
                (only,) = before
                alone = all(
                    readers.get(name, set()) <= {number} and name not in self.results
                    for name in graph.node[only].output
                )
                # Behind the last node of its layer, and nobody else reads what it reads.
                if alone and groups[group_of[only]][-1] == only:
                    joined = group_of[only]
            if joined is None:
                joined = len(groups)
                groups.append([])
            groups[joined].append(number)
            group_of[number] = joined
        names: dict[str, int] = {}
        for group in groups:
            layer = self._layer(group)
            count = names[layer.name] = names.get(layer.name, 0) + 1
            yield layer if count == 1 else replace(layer, name=f"{layer.name}#{count}")

    def _layer(self, nodes: list[int]) -> NetworkLayer:
        graph = self.model.graph
        inside = set(nodes)
        made = [name for n in nodes for name in graph.node[n].output if name]
        read = dict.fromkeys(name for n in nodes for name in _reads(graph.node[n]))
        outside = {
            name
            for number, node in enumerate(graph.node)
            if number not in inside
            for name in _reads(node)
        }
        inputs = [name for name in read if name not in made and name not in self.constants]
        outputs = [name for name in made if name in outside or name in self.results]
        weights = sum(
            self.constants[name] for name in read if name in self.constants and name not in made
        )
        heavy = [n for n in nodes if graph.node[n].op_type in HEAVY]
        named = graph.node[(heavy or nodes)[-1 if heavy else 0]]
        return NetworkLayer(
            named.name or next(name for name in named.output if name),
            tuple(graph.node[n].op_type for n in nodes),
            tuple(nodes),
            tuple(inputs),
            tuple(outputs),
            sum(self._flops(graph.node[n]) for n in nodes),
            self.bytes_of(inputs) + weights,
            self.bytes_of(outputs),
        )

    def _flops(self, node: onnx.NodeProto) -> int:
        """Floating-point operations of a convolution or product; 0 for what has none."""
        shapes = [self._shape(name) for name in node.input]
        if node.op_type in ("Conv", "QLinearConv", "ConvInteger"):
            weight = shapes[3 if node.op_type == "QLinearConv" else 1]
            result = self._shape(node.output[0])
            if weight is None or result is None:
                return 0
            return FLOPS_OF_ONE * math.prod(result) * math.prod(weight[1:])
        if node.op_type in ("MatMul", "Gemm", "MatMulInteger"):
            left, result = shapes[0], self._shape(node.output[0])
            if left is None or result is None:
                return 0
            turned = any(a.name == "transA" and a.i for a in node.attribute)
            inner = left[0] if turned else left[-1] if left else 1
            return FLOPS_OF_ONE * math.prod(result) * inner
        return 0

    def _shape(self, name: str) -> tuple[int, ...] | None:
        if name in self.values:
            return self.values[name].shape
        found = next((t for t in self.model.graph.initializer if t.name == name), None)
        return None if found is None else tuple(found.dims)


def random_inputs_of(model: onnx.ModelProto, seed: int, where: str) -> Arrays:
    """Random inputs of a model, the same for the same seed.

    Raises:
        CompileError: an input is no tensor of known shape.
    """
    specs = []
    for value in inputs_of(model):
        check_input(value, where)
        kind = value.type.tensor_type
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(kind.elem_type))
        specs.append(Spec(value.name, tuple(d.dim_value for d in kind.shape.dim), dtype))
    return random_inputs(specs, seed)


def _reads(node: onnx.NodeProto) -> list[str]:
    """Names of the values that a node reads, also in its subgraphs, of this graph."""
    names = [name for name in node.input if name]
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs) if attribute.graphs else (attribute.g,):
            own = {name for inner in graph.node for name in inner.output}
            own |= {value.name for value in graph.input}
            own |= {tensor.name for tensor in graph.initializer}
            names += [n for inner in graph.node for n in _reads(inner) if n not in own]
            names += [value.name for value in graph.output if value.name not in own]
    return names


def _constants(graph: onnx.GraphProto) -> dict[str, int]:
    """Bytes of each value that depends on no input; 0 where a node makes it."""
    found = {tensor.name: _bytes(tensor) for tensor in graph.initializer}
    found |= {tensor.values.name: _bytes(tensor.values) for tensor in graph.sparse_initializer}
    random = {"RandomNormal", "RandomUniform"}
    for node in graph.node:
        if node.op_type not in random and all(name in found for name in _reads(node)):
            found |= dict.fromkeys((name for name in node.output if name), 0)
    return found


def _bytes(tensor: onnx.TensorProto) -> int:
    kind = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    return math.prod(tensor.dims) * int(np.dtype(kind).itemsize)  # type: ignore[no-any-return]


def _run_all(
    model: onnx.ModelProto, inputs: Arrays, constants: dict[str, int], where: str
) -> Arrays:
    """Runs the graph as it is by onnxruntime; returns all values that nodes make of the inputs."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    results = {value.name for value in copy.graph.output}
    wanted = [
        name
        for node in copy.graph.node
        for name in node.output
        if name and name not in results and name not in constants
    ]
    copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(
            copy.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        found = session.run(None, inputs)
    except Exception as error:  # onnxruntime's errors have no common class of their own
        text = " ".join(str(error).split())[:200]
        raise InputError(f"onnxruntime cannot run the model: {text}", where=where) from None
    names = [value.name for value in session.get_outputs()]
    made = dict(zip(names, found, strict=True))
    for name, value in made.items():
        if not isinstance(value, np.ndarray):
            raise InputError(
                f"value {name!r} is no tensor", where=where, hint="layers pass tensors only"
            )
    return made
