"""Errors about ONNX models: they name the node, say what it is asked for, and what to do.

A model is rewritten before it is imported. The nodes that come of a node of the file keep its name,
so that an error about one of them is told about the node that its author knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import onnx
from onnx import TensorProto, helper

from davinci.errors import CompileError, shipped

HINT = f"{shipped('onnx-coverage.md')} lists what compiles; replace the node before export"

LONGEST_TEXT = 40
"""Characters of an attribute's value that are shown."""


class LoweringError(CompileError):
    """An operator cannot be imported.

    Attributes:
        operators: that may be at fault.
        node: name of the node at fault, "" if it is not known.
        reason: what was said if it is not.
    """

    def __init__(
        self,
        message: str,
        operators: set[str],
        where: str,
        found: str,
        node: str = "",
        reason: str = "",
    ) -> None:
        super().__init__(message, where=where, found=found, hint=HINT)
        self.operators, self.node, self.reason = operators, node, reason


class Nodes:
    """The nodes of a model as it was given, by name, for messages."""

    def __init__(self, model: onnx.ModelProto) -> None:
        """Args: model: with the types of its values and a name for each node."""
        graph = model.graph
        types = {v.name: v.type for v in [*graph.input, *graph.value_info, *graph.output]}
        for tensor in graph.initializer:
            types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
        self._operators = {node.name: node.op_type for node in graph.node}
        self._forms = {node.name: form_of(node, types) for node in graph.node}

    def describe(self, name: str, operator: str = "") -> str:
        """`operator Pad of node 'p'`; `operator` for a node that is not of the model."""
        return describe(self._operators.get(name, operator), name)

    def form(self, name: str) -> str:
        """Types and attributes of a node; "" for one that is not of the model."""
        return self._forms.get(name, "")


def describe(op_type: str, node: str) -> str:
    return f"operator {op_type} of node {node!r}"


def form_of(node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto]) -> str:
    """`inputs FLOAT[3,4], INT64[2], attributes axis=1`."""
    inputs = [type_text(types.get(name)) if name else "none" for name in node.input]
    attributes = [f"{a.name}={value_text(a)}" for a in node.attribute]
    parts = [f"inputs {', '.join(inputs)}"] if inputs else []
    parts += [f"attributes {', '.join(attributes)}"] if attributes else []
    return ", ".join(parts)


def type_text(found: onnx.TypeProto | None) -> str:
    """`FLOAT[3,4]`; dimensions that are not known are `?`."""
    if found is None or found.WhichOneof("value") != "tensor_type":
        return "?" if found is None else str(found.WhichOneof("value"))
    tensor = found.tensor_type
    dims = [str(d.dim_value) if d.HasField("dim_value") else "?" for d in tensor.shape.dim]
    return f"{TensorProto.DataType.Name(tensor.elem_type)}[{','.join(dims)}]"


def value_text(attribute: onnx.AttributeProto) -> str:
    if attribute.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.TENSOR):
        return f"a {onnx.AttributeProto.AttributeType.Name(attribute.type).lower()}"
    value = helper.get_attribute_value(attribute)
    text = repr(value.decode(errors="replace") if isinstance(value, bytes) else value)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."


def named(error: Any, names: Iterable[str]) -> tuple[str, str]:
    """The first diagnostic of an MLIR error that is about a node of `names`: node and reason.

    Two empty strings if there is none: MLIR merges equal constants, which then are nobody's.
    """
    known = set(names)
    for diagnostic in error.error_diagnostics:
        name = location_name(diagnostic.location)
        if name in known:
            return name, plain(diagnostic.message)
    return "", ""


INTERNAL = re.compile(r"'torch\.|failed to legalize|^'\w+\.\w+' op ")
"""Messages about what the importer has made of a node, which say nothing to the model's author."""


def plain(message: str) -> str:
    """What a diagnostic of MLIR says about the node."""
    if INTERNAL.search(message):
        return "the operator, or this form of it, is not supported"
    # What comes behind the colon is the operation as the importer's dialect prints it.
    return message.partition(": %")[0]


def location_name(location: Any) -> str:
    """Name of the ONNX node in a location, or its text."""
    text = str(location)
    found = re.search(r'"([^"]*)"(?!:)', text)
    return found[1] if found else text


def one_line(error: Exception) -> str:
    """The text of an error of the onnx package, which may be several lines."""
    return " ".join(str(error).split())
