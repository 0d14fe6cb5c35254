"""Convolutions of floats; of what was dequantized in front of them, as convolutions of bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.operators.convolution import add_bias, convolution
from davinci.frontends.onnx.operators.quantized_products import (
    dequantized_convolution,
    known_floats,
)
from davinci.frontends.onnx.tensor import OnnxTensor
from davinci.frontends.onnx.windows import windows_of

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall


@operator("Conv")
def lower_conv(node: NodeCall) -> OnnxTensor:
    return convolved(node, node.take(0))


def convolved(node: NodeCall, x: OnnxTensor) -> OnnxTensor:
    """The convolution of `x` [N, C, ..] by a node's weights, with its bias."""
    w, bias = node.take(1), node.optional(2)
    made = dequantized_convolution(node, x, w)
    if made is None:
        w = known_floats(w)
        made = convolution(x, w, windows_of(node, x, w.shape[2:]), node.attr("group", 1))
    return add_bias(made, bias)
