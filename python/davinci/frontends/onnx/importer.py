"""Walks an ONNX graph and builds StableHLO, node by node.

A node all of whose operands are known is computed at once. One with a lowering in `operators/` is
lowered. One that ONNX defines by others, or that is a function of the model, is replaced by the
nodes of its definition. Any other is refused by name. Shapes are those that lowerings compute, so
what a model says about the shapes of values in between is not needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from davinci.element_types import DTYPES
from davinci.errors import CompileError, InputError
from davinci.frontends.onnx.errors import HINT, describe, form_of, name_of, one_line
from davinci.frontends.onnx.evaluate import evaluate
from davinci.frontends.onnx.model import check_size, is_elsewhere
from davinci.frontends.onnx.node import MAIN_DOMAINS, OnnxNode
from davinci.frontends.onnx.operators import INPUTS, LOWERINGS
from davinci.frontends.onnx.tensor import BadNode, Flowing, OnnxTensor, Refused, constant, emit_all
from davinci.frontends.own_kernels import OwnKernel
from davinci.mlir import ir
from davinci.stand_ins import stand_in

OF_ONE_PROCESSOR = {
    "com.microsoft.nchwc": "a model that onnxruntime optimized at ORT_ENABLE_EXTENDED: this layout "
    "is of one kind of processor"
}
"""What to give instead of operators of domains that no other machine has."""

OR_A_KERNEL = "an operator of ONNX, or a kernel of its name: compile(model, kernels=[file])"

Scope = dict[str, Flowing]
"""What the names of a graph stand for."""


class Importer:
    """Builds the nodes of a model at the current insertion point.

    Args:
        model: the whole model, for its operator sets and functions.
        where: what messages call the model.
        left_out: initializers of the graph whose values are not looked at.
        kernels: of the user's own, called by nodes of their names of other domains than ONNX's.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        where: str,
        left_out: Set[str] = frozenset(),
        kernels: Sequence[OwnKernel] = (),
    ) -> None:
        self.where = where
        self._kernels = {kernel.name: kernel for kernel in kernels}
        self.left_out = left_out
        self.opsets = versions_of(model.opset_import)
        self._functions = {(f.domain, f.name, f.overload): f for f in model.functions}

    def graph(self, graph: onnx.GraphProto, scope: Scope) -> list[Flowing]:
        """Builds a graph whose inputs are in `scope`; returns what its outputs stand for.

        Values of the graph are added to `scope`: give a subgraph a copy.
        """
        for tensor in graph.initializer:
            left_out = tensor.name in self.left_out or is_elsewhere(tensor)
            scope[tensor.name] = (without_values if left_out else weight)(tensor, self.where)
        for sparse in graph.sparse_initializer:
            scope[sparse.values.name] = dense(sparse)
        self.nodes(graph.node, scope, self.opsets)
        return [scope[value.name] for value in graph.output]

    def nodes(
        self,
        nodes: Iterable[onnx.NodeProto],
        scope: Scope,
        opsets: Mapping[str, int],
        owner: str = "",
    ) -> None:
        """Builds nodes in order; `owner` is the node of the model whose definition they are."""
        for number, proto in enumerate(nodes):
            name = owner or name_of(proto, number)
            domain = "" if proto.domain in MAIN_DOMAINS else proto.domain
            operands = [scope[x] if x else None for x in proto.input]
            node = OnnxNode(proto, operands, opsets.get(domain, 1), name)
            with ir.Location.name(name):
                results = self._guarded(node, operands, scope, opsets, bool(owner))
            for output, result in zip(proto.output, results, strict=False):
                if output:
                    scope[output] = named(result, output)

    def _guarded(
        self,
        node: OnnxNode,
        operands: list[Flowing],
        scope: Scope,
        opsets: Mapping[str, int],
        inner: bool,
    ) -> Sequence[Flowing]:
        """The results of a node; what is refused inside of a definition is told of its owner."""
        try:
            return self._readable(node, operands, scope, opsets)
        except Refused as refused:
            if inner:
                form = f"{node.op_type} with {form_of(node.proto, operands)}"
                refused.add_form(form)
                raise
            kind = InputError if isinstance(refused, BadNode) else CompileError
            raise kind(
                refused.message,
                where=self.where,
                found=f"{describe(node.op_type, node.name)}, {form_of(node.proto, operands)}"
                f"{refused.within}",
                expected=refused.expected,
                hint="" if kind is InputError else HINT,
            ) from None

    def _readable(
        self, node: OnnxNode, operands: list[Flowing], scope: Scope, opsets: Mapping[str, int]
    ) -> Sequence[Flowing]:
        """The results of a node; lists of unlike lengths and their like are told as its fault."""
        try:
            return self._node(node, operands, scope, opsets)
        except (ValueError, IndexError, KeyError, ZeroDivisionError, OverflowError) as error:
            message = f"operands and attributes do not fit together: {one_line(error)}"
            raise BadNode(message) from error

    def _node(
        self, node: OnnxNode, operands: list[Flowing], scope: Scope, opsets: Mapping[str, int]
    ) -> Sequence[Flowing]:
        kernel = self._kernels.get(node.op_type) if node.domain else None
        if kernel is not None:
            outputs = called(kernel, node.tensors())
            node.check_all_asked(len(outputs))
            return outputs
        if all(x is None or isinstance(x, OnnxTensor) for x in operands):
            values = evaluate(node, operands, opsets)  # type: ignore[arg-type]
            if values is not None:
                return [constant(array) for array in values]
        function = self._functions.get((node.proto.domain, node.op_type, node.proto.overload))
        if function is not None:
            return self._expand(node, operands, function, opsets)
        lowering = LOWERINGS.get((node.domain, node.op_type))
        if lowering is not None:
            node.input_names = INPUTS.get((node.domain, node.op_type), [])
            node.check_types()
            made = lowering(NodeCall(node, self, scope))
            results = list(made) if isinstance(made, tuple) else [made]
            node.check_all_asked(len(results))
            return results
        definition = definition_of(node, operands)
        if definition is None:
            domain = f" of domain {node.domain!r}" if node.domain else ""
            expected = OF_ONE_PROCESSOR.get(node.domain, OR_A_KERNEL if domain else "")
            raise Refused(f"unsupported operator{domain}", expected)
        return self._expand(node, operands, definition, opsets)

    def _expand(
        self,
        node: OnnxNode,
        operands: Sequence[Flowing],
        function: onnx.FunctionProto,
        opsets: Mapping[str, int],
    ) -> list[Flowing]:
        """The results of a node that is the call of a function."""
        given = {a.name: a for a in node.proto.attribute}
        given = {a.name: a for a in function.attribute_proto} | given
        scope: Scope = dict.fromkeys(function.input)
        scope |= dict(zip(function.input, operands, strict=False))
        opsets = {**opsets, **versions_of(function.opset_import)}
        body = [bound(inner, given) for inner in function.node]
        self.nodes(body, scope, opsets, owner=node.name)
        # A definition leaves out what is made for optional outputs that nobody asked for.
        missing = [name for name in function.output if name not in scope]
        wanted = [f for i, f in enumerate(function.output) if node.wants(i) and f in missing]
        if wanted:
            raise Refused(f"output {wanted[0]!r} is not supported")
        return [scope.get(name) for name in function.output]


class NodeCall(OnnxNode):
    """A node with what lowerings need of the importer: graphs that the node holds."""

    def __init__(self, node: OnnxNode, importer: Importer, scope: Scope) -> None:
        self.__dict__.update(node.__dict__)
        self._importer, self._scope = importer, scope

    def subgraph(self, name: str, inputs: Sequence[Flowing] = ()) -> list[Flowing]:
        """Builds the graph that an attribute holds, in place; returns its outputs."""
        graph = self.attr(name)
        scope = dict(self._scope)
        scope |= {v.name: x for v, x in zip(graph.input, inputs, strict=True)}
        return self._importer.graph(graph, scope)

    def call(self, op_type: str, *operands: Flowing, **attributes: Any) -> list[Flowing]:
        """Builds another operator of ONNX, of the newest version, on these operands.

        The results are as many as its schema has at least one of.
        """
        schema = onnx.defs.get_schema(op_type)
        outputs = [f"y{i}" for i in range(max(1, schema.min_output))]
        names = [f"x{i}" if x is not None else "" for i, x in enumerate(operands)]
        proto = helper.make_node(op_type, names, outputs, **attributes)
        scope: Scope = {n: x for n, x in zip(names, operands, strict=True) if n}
        self._importer.nodes([proto], scope, {"": onnx.defs.onnx_opset_version()}, self.name)
        return [scope[name] for name in outputs]


def called(kernel: OwnKernel, operands: Sequence[OnnxTensor]) -> list[OnnxTensor]:
    """The results of a kernel of the user's own."""
    results = [(DTYPES[output.element], output.shape) for output in kernel.outputs]
    return emit_all("custom_call", operands, results, call_target_name=kernel.name)


def versions_of(entries: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """Versions of operator sets by domain, ONNX's own under ""."""
    return {"" if x.domain in MAIN_DOMAINS else x.domain: x.version for x in entries}


def weight(tensor: onnx.TensorProto, where: str) -> OnnxTensor:
    """An initializer; its bytes are used in place where they can be.

    Raises:
        InputError: they are too few or too many.
    """
    try:
        array = numpy_helper.to_array(tensor)
    except ValueError:
        check_size(tensor, where)
        raise
    return constant(array, name=tensor.name)


def without_values(tensor: onnx.TensorProto, where: str) -> OnnxTensor:
    """An initializer for whose values others stand in.

    Raises:
        InputError: it has too few or too many.
    """
    check_size(tensor, where)
    dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    return constant(stand_in(tuple(tensor.dims), dtype), name=tensor.name)


def dense(sparse: onnx.SparseTensorProto) -> OnnxTensor:
    """A sparse initializer, spelt out."""
    values, indices = numpy_helper.to_array(sparse.values), numpy_helper.to_array(sparse.indices)
    array = np.zeros(tuple(sparse.dims), values.dtype)
    array[tuple(indices.T) if indices.ndim == 2 else np.unravel_index(indices, array.shape)] = (
        values
    )
    return constant(array, name=sparse.values.name)


def named(value: Flowing, name: str) -> Flowing:
    """A constant takes the name of the value that it is."""
    if isinstance(value, OnnxTensor) and value.known is not None and value.name == "constant":
        return constant(value.known, name=name)
    return value


def bound(node: onnx.NodeProto, given: Mapping[str, onnx.AttributeProto]) -> onnx.NodeProto:
    """A node of a function's body with the attributes of the call in place of references."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    del copy.attribute[:]
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            copy.attribute.append(with_bound_graph(attribute, given))
        elif attribute.ref_attr_name in given:
            value = copy.attribute.add()
            value.CopyFrom(given[attribute.ref_attr_name])
            value.name = attribute.name
    return copy


def with_bound_graph(
    attribute: onnx.AttributeProto, given: Mapping[str, onnx.AttributeProto]
) -> onnx.AttributeProto:
    """An attribute whose graph, if it is one, refers to no attributes of the function."""
    if attribute.type != onnx.AttributeProto.GRAPH:
        return attribute
    copy = onnx.AttributeProto()
    copy.CopyFrom(attribute)
    inner = [bound(node, given) for node in attribute.g.node]
    del copy.g.node[:]
    copy.g.node.extend(inner)
    return copy


def definition_of(node: OnnxNode, operands: Sequence[Flowing]) -> onnx.FunctionProto | None:
    """ONNX's definition of an operator by simpler ones; None if there is none."""
    schema = node.schema
    if schema is None:
        return None
    if schema.has_context_dependent_function:
        versions = schema.context_dependent_function_opset_versions
        types = [type_of(x).SerializeToString() for x in operands]
        text = schema.get_context_dependent_function_with_opset_version(
            _nearest(versions, node.version), node.proto.SerializeToString(), types
        )
    elif schema.has_function:
        text = schema.get_function_with_opset_version(
            _nearest(schema.function_opset_versions, node.version)
        )
    else:
        return None
    return onnx.FunctionProto.FromString(text) if text else None


def _nearest(versions: Sequence[int], wanted: int) -> int:
    """The newest version of a definition that is not newer than the model's."""
    return max((v for v in versions if v <= wanted), default=min(versions))


def type_of(value: Flowing) -> onnx.TypeProto:
    if value is None:
        return onnx.TypeProto()
    if isinstance(value, list):
        return helper.make_sequence_type_proto(type_of(value[0]) if value else onnx.TypeProto())
    kind = helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_type_proto(kind, value.shape)
