"""Activations as onnxruntime's optimizer writes them, alone or as attributes of other operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import MICROSOFT, operator
from davinci.frontends.onnx.operators.activations import swish
from davinci.frontends.onnx.tensor import BadNode, OnnxTensor

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall


def gelu(x: OnnxTensor) -> OnnxTensor:
    return x * 0.5 * (1 + ops.erf(x * math.sqrt(0.5)))


def tanh_gelu(x: OnnxTensor) -> OnnxTensor:
    return x * 0.5 * (1 + ops.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))))


def leaky_relu(x: OnnxTensor, alpha: float = 0.01) -> OnnxTensor:
    return ops.where(ops.compare("GE", x, 0), x, x * alpha)


def hard_sigmoid(x: OnnxTensor, alpha: float = 0.2, beta: float = 0.5) -> OnnxTensor:
    return ops.clip(x * alpha + beta, 0, 1)


ACTIVATIONS: dict[str, Callable[..., OnnxTensor]] = {
    "Relu": lambda x: ops.maximum(x, 0),
    "Tanh": ops.tanh,
    "Sigmoid": ops.sigmoid,
    "LeakyRelu": leaky_relu,
    "Clip": ops.clip,
    "HardSigmoid": hard_sigmoid,
    "HardSwish": lambda x: x * hard_sigmoid(x, 1 / 6),
    "Elu": lambda x, alpha=1.0: ops.where(
        ops.compare("LT", x, 0), alpha * (ops.exp(ops.minimum(x, 0)) - 1), x
    ),
    "Softplus": lambda x: ops.maximum(x, 0) + ops.log(1 + ops.exp(-ops.absolute(x))),
    "Gelu": gelu,
    "QuickGelu": lambda x, alpha=1.702: swish(x, alpha),
}
"""What `activation` of a fused operator names, with the parameters that follow it."""


def activated(node: NodeCall, x: OnnxTensor, parameters: Sequence[float]) -> OnnxTensor:
    """`x` behind the activation that a fused operator names, if it does."""
    kind = node.attr("activation", "")
    if not kind:
        return x
    if kind not in ACTIVATIONS:
        node.refuse(f"activation={kind!r} is not supported", ", ".join(ACTIVATIONS))
    try:
        return ACTIVATIONS[kind](x, *parameters)
    except TypeError:
        raise BadNode(f"{len(parameters)} parameters of activation {kind}") from None


def single_parameters(node: NodeCall) -> list[float]:
    """The parameters of an activation that are attributes of their own."""
    names = [f"activation_{name}" for name in ("alpha", "beta", "gamma")]
    found = [node.attr(name, None) for name in names]
    return [value for value in found if value is not None]


@operator("Gelu", domain=MICROSOFT, inputs="X")
def lower_gelu(node: NodeCall) -> OnnxTensor:
    return gelu(node.take(0))


@operator("BiasGelu", domain=MICROSOFT, inputs="A B")
def lower_bias_gelu(node: NodeCall) -> OnnxTensor:
    return gelu(node.take(0) + node.take(1))


@operator("FastGelu", domain=MICROSOFT, inputs="X bias")
def lower_fast_gelu(node: NodeCall) -> OnnxTensor:
    x, bias = node.take(0), node.optional(1)
    return tanh_gelu(x if bias is None else x + bias)


@operator("QuickGelu", domain=MICROSOFT, inputs="X")
def lower_quick_gelu(node: NodeCall) -> OnnxTensor:
    return swish(node.take(0), node.attr("alpha", 1.702))


@operator("ScaledSiLU", domain=MICROSOFT, inputs="X scale")
def lower_scaled_silu(node: NodeCall) -> OnnxTensor:
    scale = node.optional(1)
    x = node.take(0) * (node.attr("alpha", 1.0) if scale is None else ops.reshape(scale, []))
    return swish(x)


@operator("BiasSplitGelu", domain=MICROSOFT, inputs="X bias")
def lower_bias_split_gelu(node: NodeCall) -> OnnxTensor:
    """The first half of the columns times the gelu of the second."""
    x = node.take(0) + node.take(1)
    if x.shape[-1] % 2:
        raise BadNode(f"{x.shape[-1]} columns in two halves", "an even number")
    left, right = ops.split(x, x.rank - 1, [x.shape[-1] // 2] * 2)
    return left * gelu(right)


@operator("BiasAdd", domain=MICROSOFT, inputs="X bias skip")
def lower_bias_add(node: NodeCall) -> OnnxTensor:
    return node.take(0) + node.take(1) + node.take(2)


@operator("GatedAdd", domain=MICROSOFT, inputs="X Y gate")
def lower_gated_add(node: NodeCall) -> OnnxTensor:
    return node.take(0) + node.take(1) * node.take(2)


@operator("BiasSoftmax", domain=MICROSOFT, inputs="data bias")
def lower_bias_softmax(node: NodeCall) -> OnnxTensor:
    """Softmax over all dimensions from `axis` on, of the sum with a bias.

    The bias has the dimensions of the data, or those of one side of the dimension from which on it
    is repeated.
    """
    x, bias = node.take(0), node.take(1)
    axis = ops.axis_of(node.attr("axis", 1), x.rank)
    inner = node.attr("is_inner_broadcast")
    if bias.rank < x.rank and inner:
        bias = ops.reshape(
            bias,
            [
                *bias.shape[: -(x.rank - axis)],
                *[1] * (x.rank - bias.rank),
                *bias.shape[-(x.rank - axis) :],
            ],
        )
    rows = [math.prod(x.shape[:axis]), math.prod(x.shape[axis:])]
    return ops.reshape(ops.softmax(ops.reshape(x + bias, rows), 1), x.shape)
