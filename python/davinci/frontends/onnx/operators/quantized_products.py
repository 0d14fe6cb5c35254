"""Products and convolutions of quantized numbers.

8-bit integers stay operands, for the cube: (a - za)(b - zb) summed over k is
ab - za sum(b) - sum(a) zb + k za zb, of which only the first term is a product of matrices.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.operators.convolution import add_bias, convolution
from davinci.frontends.onnx.operators.normalization import per_channel
from davinci.frontends.onnx.operators.quantization import UNSIGNED, is_zero, lowered, saturated
from davinci.frontends.onnx.tensor import BadNode, OnnxTensor, constant, convert
from davinci.frontends.onnx.windows import windows_of
from davinci.units import BLOCK_BYTES

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall


def collapsed(x: OnnxTensor) -> OnnxTensor:
    """One number, whatever its rank, as of rank 0."""
    return ops.reshape(x, []) if x.count == 1 else x


def known_as(x: OnnxTensor, dtype: Any) -> OnnxTensor:
    """Integers in a type that holds them; of known ones at once."""
    return convert(x, dtype) if x.known is None else constant(x.known.astype(dtype))


def signed(x: OnnxTensor, zero: OnnxTensor | None) -> tuple[OnnxTensor, OnnxTensor | None]:
    """8-bit integers and their zero point as int8: of unsigned ones both are moved by 128.

    The vector unit does that in fp16, which is exact.

    Returns:
        The integers, and the zero point as i32, None if it is 0.
    """
    zero = None if zero is None else collapsed(zero)
    if not x.is_unsigned:
        return x, None if zero is None or is_zero(zero) else known_as(zero, np.int32)
    if x.known is not None:
        moved = constant((x.known ^ UNSIGNED).view(np.int8), name=x.name)
    elif x.shifted is not None:
        moved = x.shifted
    else:
        moved = convert(convert(x, np.float16) - UNSIGNED, np.int8)
    if (less := lowered(zero)) is not None:
        return moved, None if is_zero(less) else known_as(less, np.int32)
    assert zero is not None, "one that is left out is known, so it is lowered"
    return moved, convert(zero, np.int32) - UNSIGNED


def sums(x: OnnxTensor, axes: list[int]) -> OnnxTensor:
    """Sums of int8 as i32, kept as dimensions; of a weight computed here."""
    if x.known is not None:
        return constant(x.known.sum(tuple(axes), np.int32, keepdims=True))
    return ops.reduce("add", convert(x, np.int32), axes, keepdims=True)


def integer_matmul(
    a: OnnxTensor, b: OnnxTensor, a_zero: OnnxTensor | None, b_zero: OnnxTensor | None
) -> OnnxTensor:
    """(a - a_zero) matmul (b - b_zero) in i32.

    Args:
        a_zero: of rank 0, or one for each row of `a`.
        b_zero: of rank 0, or one for each column of `b`.
    """
    rows, columns = a.rank == 1, b.rank == 1
    a = ops.expand_dims(a, [0]) if rows else a
    b = ops.expand_dims(b, [1]) if columns else b
    if a_zero is not None and a_zero.count > 1 and a_zero.rank == 1:
        a_zero = ops.expand_dims(a_zero, [1])
    if b_zero is not None and b_zero.count > 1 and b_zero.rank > 1 and b_zero.shape[-2] != 1:
        raise BadNode(f"zero points of shape {list(b_zero.shape)}", "one for each column")
    depth = a.shape[-1]
    a, za = signed(a, a_zero)
    b, zb = signed(b, b_zero)
    found = ops.matmul(a, b, np.int32)
    found = found if za is None else found - za * sums(b, [b.rank - 2])
    found = found if zb is None else found - sums(a, [a.rank - 1]) * zb
    found = found if za is None or zb is None else found + depth * (za * zb)
    gone = [found.rank - 2] if rows else []
    return ops.squeeze(found, [*gone, *([found.rank - 1] if columns else [])])


@operator("MatMulInteger")
def lower_matmul_integer(node: NodeCall) -> OnnxTensor:
    return integer_matmul(node.take(0), node.take(1), node.optional(2), node.optional(3))


@operator("QLinearMatMul")
def lower_quantized_matmul(node: NodeCall) -> OnnxTensor:
    a, a_scale, a_zero, b, b_scale, b_zero = (node.take(i) for i in range(6))
    y_scale, y_zero = node.take(6), node.take(7)
    product = convert(integer_matmul(a, b, a_zero, b_zero), np.float32)
    a_scale = ops.expand_dims(a_scale, [1]) if a_scale.count > 1 and a_scale.rank == 1 else a_scale
    scales = (collapsed(convert(s, np.float32)) for s in (a_scale, b_scale, y_scale))
    a_factor, b_factor, y_factor = scales
    return saturated(product * (a_factor * b_factor / y_factor), collapsed(y_zero), y_zero.dtype)


def integer_convolution(
    node: NodeCall,
    x: OnnxTensor,
    w: OnnxTensor,
    x_zero: OnnxTensor | None,
    w_zero: OnnxTensor | None,
) -> OnnxTensor:
    """The convolution of x - x_zero and w - w_zero in i32; around `x` is its zero point.

    Args:
        w_zero: of rank 0, or one for each output channel.
    """
    windows, groups = windows_of(node, x, w.shape[2:]), node.attr("group", 1)
    x, zx = signed(x, x_zero)
    w, zw = signed(w, w_zero)
    if zx is not None:
        low, high = [0, 0, *windows.low], [0, 0, *windows.high]
        x = ops.pad(x, low, high, known_as(zx, np.int8))
        none = [0 for _ in windows.low]
        windows = replace(windows, low=none, high=none)
    found = convolution(x, w, windows, groups, np.int32)
    rank, each = w.rank, list(range(1, w.rank))
    zw = per_channel(zw, rank) if zw is not None and zw.count > 1 else zw
    if zx is not None:
        found = found - zx * per_channel(sums(w, each), rank)
    if zw is not None:
        ones = ops.full((1 if groups == 1 else w.shape[0], *w.shape[1:]), np.int8, 1)
        found = found - convolution(x, ones, windows, groups, np.int32) * zw
    if zx is not None and zw is not None:
        found = found + math.prod(w.shape[1:]) * (zx * zw)
    return found


@operator("ConvInteger")
def lower_conv_integer(node: NodeCall) -> OnnxTensor:
    return integer_convolution(node, node.take(0), node.take(1), node.optional(2), node.optional(3))


def known_floats(w: OnnxTensor) -> OnnxTensor:
    """Weights that were bytes, one scale for each output channel, as constants."""
    of = w.dequantized
    if of is None or of.integers.known is None or of.scale.known is None or w.known is not None:
        return w
    if of.scale.count > 1 and of.axis != 0:
        return w
    zero = np.zeros(1) if of.zero is None else of.zero.known
    if zero is None:
        return w
    each = (-1, *[1] * (w.rank - 1))
    integers = of.integers.known.astype(np.float32) - zero.astype(np.float32).reshape(each)
    scales = of.scale.known.astype(np.float32).reshape(each)
    return constant(integers * scales, name=w.name)


def dequantized_convolution(node: NodeCall, x: OnnxTensor, w: OnnxTensor) -> OnnxTensor | None:
    """A convolution of floats that were bytes, as one of bytes: exact up to its scale. None if they
    were not, if their scales do not go outside of the sums, or if the cube does not take as few
    channels of bytes: floats then are as good."""
    a, b = x.dequantized, w.dequantized
    if a is None or b is None or a.scale.count > 1 or (b.scale.count > 1 and b.axis != 0):
        return None
    if w.shape[1] % BLOCK_BYTES:
        return None
    found = integer_convolution(node, a.integers, b.integers, a.zero, b.zero)
    each = per_channel(b.scale, x.rank) if b.scale.count > 1 else collapsed(b.scale)
    return convert(found, np.float32) * (collapsed(a.scale) * each)


def dequantized_matmul(a: OnnxTensor, b: OnnxTensor) -> OnnxTensor | None:
    """A product of floats that were bytes, as `dequantized_convolution`."""
    left, right = a.dequantized, b.dequantized
    if left is None or right is None or left.scale.count > 1:
        return None
    if right.scale.count > 1 and (b.rank != 2 or right.axis != 1):
        return None
    found = integer_matmul(left.integers, right.integers, left.zero, right.zero)
    each = right.scale if right.scale.count > 1 else collapsed(right.scale)
    return convert(found, np.float32) * (collapsed(left.scale) * each)


@operator("QLinearConv")
def lower_quantized_conv(node: NodeCall) -> OnnxTensor:
    return quantized_convolution(node, node.take(0))


def quantized_convolution(node: NodeCall, x: OnnxTensor) -> OnnxTensor:
    """The convolution of bytes [N, C, ..] as bytes; the bias is added to the integers."""
    x_scale, x_zero, w, w_scale, w_zero = (node.take(i) for i in range(1, 6))
    y_scale, y_zero = node.take(6), node.take(7)
    found = add_bias(integer_convolution(node, x, w, x_zero, w_zero), node.optional(8))
    w_scale = per_channel(w_scale, x.rank) if w_scale.count > 1 else collapsed(w_scale)
    factor = collapsed(x_scale) * w_scale / collapsed(y_scale)
    return saturated(convert(found, np.float32) * factor, collapsed(y_zero), y_zero.dtype)
