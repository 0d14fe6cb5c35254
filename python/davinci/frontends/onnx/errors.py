"""How messages name nodes of ONNX models, and what they are asked for."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
from onnx import TensorProto, helper

from davinci.errors import shipped
from davinci.frontends.onnx.tensor import Flowing

HINT = f"{shipped('onnx-coverage.md')} lists what compiles; replace the node before export"

LONGEST_TEXT = 40
"""Characters of an attribute's value that are shown."""


def describe(op_type: str, node: str) -> str:
    return f"operator {op_type} of node {node!r}"


def name_of(node: onnx.NodeProto, number: int) -> str:
    """Its name, or operator and place in the graph of a node without one."""
    return node.name or f"{node.op_type}_{number}"


def form_of(node: onnx.NodeProto, operands: Sequence[Flowing]) -> str:
    """`inputs FLOAT[3,4], INT64[2], attributes axis=1`."""
    attributes = [f"{a.name}={value_text(a)}" for a in node.attribute]
    parts = [f"inputs {', '.join(type_text(x) for x in operands)}"] if operands else []
    parts += [f"attributes {', '.join(attributes)}"] if attributes else []
    return ", ".join(parts)


def type_text(value: Flowing) -> str:
    """`FLOAT[3,4]`, in ONNX's words."""
    if value is None:
        return "none"
    if isinstance(value, list):
        return f"a sequence of {len(value)}"
    kind = TensorProto.DataType.Name(helper.np_dtype_to_tensor_dtype(value.dtype))
    return f"{kind}[{','.join(map(str, value.shape))}]"


def value_text(attribute: onnx.AttributeProto) -> str:
    if attribute.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.TENSOR):
        return f"a {onnx.AttributeProto.AttributeType.Name(attribute.type).lower()}"
    value = helper.get_attribute_value(attribute)
    text = repr(value.decode(errors="replace") if isinstance(value, bytes) else value)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."


def one_line(error: Exception) -> str:
    """The text of an error of the onnx package, which may be several lines."""
    return " ".join(str(error).split())
