"""Operators of onnxruntime on bytes: what the floats give that the bytes stand for, as bytes again.

A byte b stands for (b - zero point) * scale; scales and zero points are inputs behind each tensor.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import MICROSOFT, operator
from davinci.frontends.onnx.operators.channels_last import channels_first
from davinci.frontends.onnx.operators.fused_activations import leaky_relu
from davinci.frontends.onnx.operators.pooling import average_pool
from davinci.frontends.onnx.operators.quantization import dequantized, quantized
from davinci.frontends.onnx.operators.quantized_products import collapsed
from davinci.frontends.onnx.tensor import BadNode, OnnxTensor

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall

UNARY = "X X_scale X_zero_point Y_scale Y_zero_point"
BINARY = "A A_scale A_zero_point B B_scale B_zero_point C_scale C_zero_point"


def single(x: OnnxTensor, what: str) -> OnnxTensor:
    """A scale or zero point for all of a tensor."""
    if x.count != 1:
        raise BadNode(f"{what} of shape {list(x.shape)}", "one number")
    return collapsed(x)


def zero_point(node: NodeCall, number: int) -> OnnxTensor | None:
    """The zero point that is input `number`; None if it is left out."""
    x = node.optional(number)
    return None if x is None else single(x, "a zero point")


def floats(node: NodeCall, first: int) -> OnnxTensor:
    """The floats that input number `first` stands for, by the scale and zero point behind it."""
    x, scale = node.take(first), single(node.take(first + 1), "a scale")
    return dequantized(x, scale, zero_point(node, first + 2))


def as_bytes(node: NodeCall, x: OnnxTensor, first: int, dtype: Any) -> OnnxTensor:
    """Floats as bytes of the scale and zero point that are inputs number `first` and the next."""
    scale = single(node.take(first), "a scale")
    return quantized(x, scale, zero_point(node, first + 1), dtype)


@operator("QLinearAdd", domain=MICROSOFT, inputs=BINARY)
def lower_add(node: NodeCall) -> OnnxTensor:
    return as_bytes(node, floats(node, 0) + floats(node, 3), 6, node.take(0).dtype)


@operator("QLinearMul", domain=MICROSOFT, inputs=BINARY)
def lower_mul(node: NodeCall) -> OnnxTensor:
    return as_bytes(node, floats(node, 0) * floats(node, 3), 6, node.take(0).dtype)


@operator("QLinearSigmoid", domain=MICROSOFT, inputs=UNARY)
def lower_sigmoid(node: NodeCall) -> OnnxTensor:
    return as_bytes(node, ops.sigmoid(floats(node, 0)), 3, node.take(0).dtype)


@operator("QLinearLeakyRelu", domain=MICROSOFT, inputs=UNARY)
def lower_leaky_relu(node: NodeCall) -> OnnxTensor:
    found = leaky_relu(floats(node, 0), node.attr("alpha", 0.01))
    return as_bytes(node, found, 3, node.take(0).dtype)


@operator("QLinearSoftmax", domain=MICROSOFT, inputs=UNARY)
def lower_softmax(node: NodeCall) -> OnnxTensor:
    """Along one axis; before operator set 13, along all dimensions from it on."""
    x, along_one = floats(node, 0), node.attr("opset") >= 13
    axis = ops.axis_of(node.attr("axis", -1 if along_one else 1), x.rank)
    rows = [math.prod(x.shape[:axis]), math.prod(x.shape[axis:])]
    found = ops.softmax(x, axis) if along_one else ops.softmax(ops.reshape(x, rows), 1)
    return as_bytes(node, ops.reshape(found, x.shape), 3, node.take(0).dtype)


@operator("QLinearReduceMean", domain=MICROSOFT, inputs=UNARY)
def lower_reduce_mean(node: NodeCall) -> OnnxTensor:
    x = floats(node, 0)
    axes = node.attr("axes", None) or range(x.rank)
    found = ops.mean(x, axes, keepdims=bool(node.attr("keepdims", 1)))
    return as_bytes(node, found, 3, node.take(0).dtype)


@operator("QLinearGlobalAveragePool", domain=MICROSOFT, inputs=UNARY)
def lower_global_average_pool(node: NodeCall) -> OnnxTensor:
    last = bool(node.attr("channels_last", 0))
    x = floats(node, 0)
    axes = range(1, x.rank - 1) if last else range(2, x.rank)
    return as_bytes(node, ops.mean(x, axes, keepdims=True), 3, node.take(0).dtype)


@operator("QLinearAveragePool", domain=MICROSOFT, inputs=UNARY)
def lower_average_pool(node: NodeCall) -> OnnxTensor:
    last = bool(node.attr("channels_last", 0))
    found = channels_first(floats(node, 0), last, lambda x: average_pool(node, x))
    return as_bytes(node, found, 3, node.take(0).dtype)


@operator("QLinearConcat", domain=MICROSOFT, inputs="Y_scale Y_zero_point inputs")
def lower_concat(node: NodeCall) -> OnnxTensor:
    """Inputs come with their scales and zero points, three by three."""
    parts = [floats(node, i) for i in range(2, node.count, 3)]
    return as_bytes(node, ops.concat(parts, node.attr("axis")), 0, node.take(2).dtype)


@operator(
    "QLinearWhere",
    domain=MICROSOFT,
    inputs="condition X x_scale x_zero_point Y y_scale y_zero_point z_scale z_zero_point",
)
def lower_where(node: NodeCall) -> OnnxTensor:
    found = ops.where(node.take(0), floats(node, 1), floats(node, 4))
    return as_bytes(node, found, 7, node.take(1).dtype)
