"""Computes what an ONNX graph says about shapes, before it is imported.

before:
    %s = Shape(%x)            // x: [2, 3, 4]
    %t = Slice(%s, [0], [2])
    %u = Concat(%t, [-1])
    %y = Reshape(%x, %u)      // shape unknown
after:
    %y = Reshape(%x, [2, 3, -1])

ONNX's shape inference follows few operators on shapes. Here a node all of whose inputs are known is
evaluated by ONNX's reference implementation, `Shape` and `Size` need only a type, and a branch
whose condition is known takes the place of its `If`. Inference and evaluation alternate until
nothing new is known.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx.reference import ReferenceEvaluator

KNOWN_ELEMENTS = 4096
"""Larger values are not computed here: they are data, not shapes."""

RANDOM = frozenset(
    {
        *("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike"),
        *("RandomUniform", "RandomUniformLike"),
    }
)

Array = npt.NDArray[Any]


def fold(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of `model` with all types inferred and what is known computed.

    Raises:
        onnx.shape_inference.InferenceError, RuntimeError: types contradict each other.
    """
    while True:
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
        if not fold_once(model):
            return model


def fold_once(model: onnx.ModelProto) -> bool:
    """Computes the nodes of `model` that can be, in place; returns whether there were any."""
    graph = model.graph
    types = {v.name: v.type for v in [*graph.input, *graph.value_info, *graph.output]}
    known = initializers_of(graph)
    outputs = {value.name for value in graph.output}
    kept: list[onnx.NodeProto] = []
    computed: dict[str, Array] = {}
    branched = False
    for node in graph.node:
        branch = known_branch(node, known)
        if branch is not None:
            kept += inlined(node, branch)
            branched = True
            continue
        values = evaluate(node, known, types, model)
        if values is None:
            kept.append(node)
            continue
        known.update(values)
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            kept.append(node)
        else:
            computed.update(values)
    wanted = outputs | used_names(kept)
    constants = [constant_node(name, computed[name]) for name in computed if name in wanted]
    del graph.node[:]
    graph.node.extend([*constants, *kept])
    return bool(computed) or branched


def initializers_of(graph: onnx.GraphProto) -> dict[str, Array]:
    """Values of the small initializers."""
    return {
        t.name: onnx.numpy_helper.to_array(t)
        for t in graph.initializer
        if math.prod(t.dims) <= KNOWN_ELEMENTS and t.data_type != onnx.TensorProto.STRING
    }


def constants_of(model: onnx.ModelProto) -> dict[str, Array]:
    """Values of the small initializers and of the constants of a folded model."""
    known = initializers_of(model.graph)
    for node in model.graph.node:
        if node.op_type == "Constant":
            known |= evaluate(node, known, {}, model) or {}
    return known


def used_names(nodes: Iterable[onnx.NodeProto]) -> set[str]:
    """Names of the values that `nodes` read, in their subgraphs too."""
    used: set[str] = set()
    for node in nodes:
        used.update(node.input)
        for graph in subgraphs(node):
            used |= used_names(graph.node) | {value.name for value in graph.output}
    return used


def subgraphs(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    return [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH] + [
        graph for a in node.attribute for graph in a.graphs
    ]


def known_branch(node: onnx.NodeProto, known: dict[str, Array]) -> onnx.GraphProto | None:
    """The branch that an `If` of known condition takes."""
    if node.op_type != "If" or node.input[0] not in known:
        return None
    name = "then_branch" if known[node.input[0]].all() else "else_branch"
    return next((a.g for a in node.attribute if a.name == name), None)


def inlined(node: onnx.NodeProto, branch: onnx.GraphProto) -> list[onnx.NodeProto]:
    """Nodes that compute what `branch` of `node` does, its own values renamed."""
    own = {name for inner in branch.node for name in inner.output if name}
    own |= {tensor.name for tensor in branch.initializer}
    new = {name: f"{node.output[0]}/{name}" for name in own}
    copy = onnx.GraphProto()
    copy.CopyFrom(branch)
    rename(copy, new)
    values = [constant_node(t.name, onnx.numpy_helper.to_array(t)) for t in copy.initializer]
    results = [
        onnx.helper.make_node("Identity", [value.name], [name])
        for value, name in zip(copy.output, node.output, strict=True)
        if name
    ]
    return [*values, *copy.node, *results]


def rename(graph: onnx.GraphProto, new: dict[str, str]) -> None:
    """Renames values in `graph` and its subgraphs, in place."""
    for tensor in graph.initializer:
        tensor.name = new.get(tensor.name, tensor.name)
    for value in graph.output:
        value.name = new.get(value.name, value.name)
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [new.get(name, name) for name in names]
        for inner in subgraphs(node):
            rename(inner, new)


def evaluate(
    node: onnx.NodeProto,
    known: dict[str, Array],
    types: dict[str, onnx.TypeProto],
    model: onnx.ModelProto,
) -> dict[str, Array] | None:
    """The results of `node` by name, or None if they are not known or too large."""
    if node.op_type in ("Shape", "Size") and node.domain in ("", "ai.onnx"):
        dims = static_shape(types.get(node.input[0]))
        if dims is None:
            return None
        stand_in = np.broadcast_to(np.zeros((), np.int8), dims)
        return run(node, {node.input[0]: stand_in}, model.opset_import)
    given = [name for name in node.input if name]
    if node.op_type in RANDOM or subgraphs(node) or any(name not in known for name in given):
        return None
    if not given and node.op_type != "Constant":
        return None
    sizes = [static_shape(types.get(name)) for name in node.output if name]
    if any(dims is not None and math.prod(dims) > KNOWN_ELEMENTS for dims in sizes):
        return None
    if node.op_type == "ConstantOfShape" and math.prod(known[given[0]]) > KNOWN_ELEMENTS:
        return None
    return run(node, {name: known[name] for name in given}, model.opset_import)


def run(
    node: onnx.NodeProto, inputs: dict[str, Array], opsets: Iterable[onnx.OperatorSetIdProto]
) -> dict[str, Array] | None:
    """Runs one node; None if the reference implementation cannot, or a result is no array."""
    names = [name for name in node.output if name]
    undefined = onnx.TypeProto()
    graph = onnx.helper.make_graph(
        [node],
        "node",
        [onnx.helper.make_value_info(name, undefined) for name in inputs],
        [onnx.helper.make_value_info(name, undefined) for name in names],
    )
    alone = onnx.helper.make_model(graph, opset_imports=list(opsets))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = ReferenceEvaluator(alone).run(None, inputs)
    except Exception:  # whatever is wrong, the importer or the shape inference will say it
        return None
    arrays = {n: np.asarray(r) for n, r in zip(names, results, strict=True)}
    usual = all(a.dtype.kind in "biuf" and a.size <= KNOWN_ELEMENTS for a in arrays.values())
    return arrays if usual else None


def static_shape(found: onnx.TypeProto | None) -> tuple[int, ...] | None:
    """The shape of a tensor type, None if a dimension is not known."""
    if found is None or not found.tensor_type.HasField("shape"):
        return None
    dims = found.tensor_type.shape.dim
    if not all(dim.HasField("dim_value") for dim in dims):
        return None
    return tuple(dim.dim_value for dim in dims)


def constant_node(name: str, array: Array) -> onnx.NodeProto:
    tensor = onnx.numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
    return onnx.helper.make_node("Constant", [], [name], value=tensor)
