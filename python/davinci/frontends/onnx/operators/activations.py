"""Activation functions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.tensor import OnnxTensor, convert

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall


def softplus(x: OnnxTensor) -> OnnxTensor:
    """log(1 + exp(x)), of which no part overflows."""
    return ops.maximum(x, 0) + ops.log(1 + ops.exp(-ops.absolute(x)))


def swish(x: OnnxTensor, alpha: float = 1.0) -> OnnxTensor:
    return x * ops.sigmoid(x if alpha == 1 else alpha * x)


def negative_part(x: OnnxTensor, alpha: float) -> OnnxTensor:
    """alpha * (exp(x) - 1) where x is negative, else 0."""
    return alpha * (ops.exp(ops.minimum(x, 0)) - 1)


@operator("Clip")
def lower_clip(node: NodeCall) -> OnnxTensor:
    """Bounds are attributes before operator set 11; in 6 their defaults are the largest floats."""
    node.ignore("consumed_inputs")
    x = node.take(0)
    low = node.attr("min") if node.version < 11 else node.optional(1)
    high = node.attr("max") if node.version < 11 else node.optional(2)
    x = x if low is None else ops.maximum(x, low)
    return x if high is None else ops.minimum(x, high)


@operator("Relu")
def lower_relu(node: NodeCall) -> OnnxTensor:
    node.ignore("consumed_inputs")
    return ops.maximum(node.take(0), 0)


@operator("LeakyRelu")
def lower_leaky_relu(node: NodeCall) -> OnnxTensor:
    node.ignore("consumed_inputs")
    x = node.take(0)
    return ops.where(ops.compare("GE", x, 0), x, x * node.attr("alpha"))


@operator("PRelu")
def lower_prelu(node: NodeCall) -> OnnxTensor:
    """Before operator set 7 the slope is one number or one for each channel (dimension 1)."""
    node.ignore("consumed_inputs")
    x, slope = node.take(0), node.take(1)
    if node.version < 7 and slope.count > 1:
        slope = ops.reshape(slope, [slope.count, *[1] * (x.rank - 2)])
    return ops.where(ops.compare("LT", x, 0), slope * x, x)


@operator("ThresholdedRelu")
def lower_thresholded_relu(node: NodeCall) -> OnnxTensor:
    x = node.take(0)
    return ops.where(ops.compare("GT", x, node.attr("alpha")), x, 0)


@operator("Elu")
def lower_elu(node: NodeCall) -> OnnxTensor:
    node.ignore("consumed_inputs")
    x = node.take(0)
    return ops.where(ops.compare("LT", x, 0), negative_part(x, node.attr("alpha")), x)


@operator("Celu")
def lower_celu(node: NodeCall) -> OnnxTensor:
    x, alpha = node.take(0), node.attr("alpha")
    return ops.maximum(x, 0) + ops.minimum(alpha * (ops.exp(x / alpha) - 1), 0)


@operator("Selu")
def lower_selu(node: NodeCall) -> OnnxTensor:
    node.ignore("consumed_inputs")
    x, gamma = node.take(0), node.attr("gamma")
    negative = negative_part(x, gamma * node.attr("alpha"))
    return ops.where(ops.compare("LE", x, 0), negative, gamma * x)


@operator("HardSigmoid")
def lower_hard_sigmoid(node: NodeCall) -> OnnxTensor:
    node.ignore("consumed_inputs")
    return ops.clip(node.take(0) * node.attr("alpha") + node.attr("beta"), 0, 1)


@operator("HardSwish")
def lower_hard_swish(node: NodeCall) -> OnnxTensor:
    x = node.take(0)
    return x * ops.clip(x * (1 / 6) + 0.5, 0, 1)


@operator("Mish")
def lower_mish(node: NodeCall) -> OnnxTensor:
    x = node.take(0)
    return x * ops.tanh(softplus(x))


@operator("Softplus")
def lower_softplus(node: NodeCall) -> OnnxTensor:
    return softplus(node.take(0))


@operator("Softsign")
def lower_softsign(node: NodeCall) -> OnnxTensor:
    x = node.take(0)
    return x / (1 + ops.absolute(x))


@operator("Shrink")
def lower_shrink(node: NodeCall) -> OnnxTensor:
    """Lowers Shrink; integers are computed as floats."""
    x, bias, bound = node.take(0), node.attr("bias"), node.attr("lambd")
    real = x if x.is_float else convert(x, np.float32)
    inside = ops.where(ops.compare("GT", real, bound), real - bias, 0)
    return convert(ops.where(ops.compare("LT", real, -bound), real + bias, inside), x.dtype)


@operator("Swish")
def lower_swish(node: NodeCall) -> OnnxTensor:
    return swish(node.take(0), node.attr("alpha"))


@operator("SwiGLU")
def lower_swiglu(node: NodeCall) -> OnnxTensor:
    return swish(node.take(0), node.attr("alpha")) * node.take(1)


@operator("Gelu")
def lower_gelu(node: NodeCall) -> OnnxTensor:
    x = node.take(0)
    if node.attr("approximate") == "tanh":
        return x * 0.5 * (1 + ops.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))))
    return x * 0.5 * (1 + ops.erf(x * math.sqrt(0.5)))
