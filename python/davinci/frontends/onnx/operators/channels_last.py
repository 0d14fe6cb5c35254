"""Convolutions and pools of onnxruntime on images whose channels are last, [N, .., C].

They are computed on [N, C, ..]: the compiler chooses how images lie, and drops what turns them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import MICROSOFT, operator
from davinci.frontends.onnx.operators.conv import convolved
from davinci.frontends.onnx.operators.fused_activations import activated
from davinci.frontends.onnx.operators.quantized_products import quantized_convolution
from davinci.frontends.onnx.tensor import OnnxTensor
from davinci.frontends.onnx.windows import fold, windows_of

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall


def channels_first(
    x: OnnxTensor, last: bool, compute: Callable[[OnnxTensor], OnnxTensor]
) -> OnnxTensor:
    """`compute` of images [N, C, ..], which come and go as [N, .., C] where channels are `last`."""
    if not last:
        return compute(x)
    return ops.move_axis(compute(ops.move_axis(x, x.rank - 1, 1)), 1, x.rank - 1)


@operator("FusedConv", domain=MICROSOFT, inputs="X W B Z")
def lower_fused_conv(node: NodeCall) -> OnnxTensor:
    return fused_convolution(node, last=False)


@operator("NhwcFusedConv", domain=MICROSOFT, inputs="X W B Z")
def lower_fused_conv_of_channels_last(node: NodeCall) -> OnnxTensor:
    return fused_convolution(node, last=True)


def fused_convolution(node: NodeCall, last: bool) -> OnnxTensor:
    """A convolution, to which another image may be added, and an activation of that."""
    made = channels_first(node.take(0), last, lambda x: convolved(node, x))
    addend = node.optional(3)
    made = made if addend is None else made + addend
    return activated(node, made, node.attr("activation_params", None) or [])


@operator("NhwcConv", domain=MICROSOFT, inputs="X W B")
def lower_conv_of_channels_last(node: NodeCall) -> OnnxTensor:
    return channels_first(node.take(0), True, lambda x: convolved(node, x))


@operator("NhwcMaxPool", domain=MICROSOFT, inputs="x")
def lower_max_pool_of_channels_last(node: NodeCall) -> OnnxTensor:
    return channels_first(node.take(0), True, lambda x: fold(x, windows_of(node, x), "maximum"))


@operator(
    "QLinearConv",
    domain=MICROSOFT,
    inputs="x x_scale x_zero_point w w_scale w_zero_point y_scale y_zero_point B",
)
def lower_quantized_conv(node: NodeCall) -> OnnxTensor:
    last = bool(node.attr("channels_last", 0))
    return channels_first(node.take(0), last, lambda x: quantized_convolution(node, x))
