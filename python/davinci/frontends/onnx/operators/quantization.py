"""Quantized numbers, to and from floats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import MICROSOFT, operator
from davinci.frontends.onnx.operators.casts import cast
from davinci.frontends.onnx.tensor import (
    BadNode,
    Dequantized,
    OnnxTensor,
    bounds,
    broadcast,
    constant,
    convert,
    is_integer,
)
from davinci.units import ceil_div

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall


BYTES = (np.int8, np.uint8)
"""What products of bytes take."""

UNSIGNED = 128
"""What unsigned bytes are more than the signed ones that products take for them."""


def spread_scale(value: OnnxTensor, x: OnnxTensor, axis: int, block: int) -> OnnxTensor:
    """A scale or zero point that broadcasts to `x`.

    Args:
        value: of one element; of one for each index of `axis`; or, where there are blocks, of the
            rank of `x`, with one for `block` indices of the axis.

    Raises:
        Invalid: of another shape.
    """
    if value.count == 1:
        return ops.reshape(value, [])
    at = ops.axis_of(axis, x.rank)
    if not block and value.shape == (x.shape[at],):
        return ops.reshape(value, [size if i == at else 1 for i, size in enumerate(x.shape)])
    blocks = ceil_div(x.shape[at], block) if block else 0
    if value.shape != (*x.shape[:at], blocks, *x.shape[at + 1 :]):
        raise BadNode(
            f"a scale or zero point of shape {list(value.shape)} for {list(x.shape)}",
            f"one number, one for each index of axis {at}, or one for each block",
        )
    shape = [*value.shape[: at + 1], block, *value.shape[at + 1 :]]
    repeated = broadcast(ops.expand_dims(value, [at + 1]), shape)
    whole = ops.reshape(repeated, [*x.shape[:at], blocks * block, *x.shape[at + 1 :]])
    return ops.cut_axis(whole, at, 0, x.shape[at])


def saturated(
    x: OnnxTensor, zero: OnnxTensor | None, dtype: Any, saturate: bool = True
) -> OnnxTensor:
    """A float, rounded to even and shifted by its zero point, as a quantized type."""
    if not is_integer(dtype):
        return cast(x, dtype, saturate)
    low, high = bounds(dtype)
    whole = ops.round_half_even(x)
    made = convert(ops.clip(with_zero(whole, zero), low, high), dtype)
    signed = lowered(zero)
    if np.dtype(dtype) == np.uint8 and signed is not None:
        less = ops.clip(with_zero(whole, signed), low - UNSIGNED, high - UNSIGNED)
        made.shifted = convert(less, np.int8)
    return made


def lowered(zero: OnnxTensor | None) -> OnnxTensor | None:
    """The zero point of signed bytes that stand for unsigned ones; None if it is computed."""
    if zero is None:
        return constant(np.int16(-UNSIGNED))
    return None if zero.known is None else constant(zero.known.astype(np.int16) - UNSIGNED)


def with_zero(x: OnnxTensor, zero: OnnxTensor | None) -> OnnxTensor:
    """x + zero in the type of `x`."""
    return x if zero is None or is_zero(zero) else x + convert(zero, x.dtype)


def is_zero(x: OnnxTensor | None) -> bool:
    """Whether a tensor is known to be 0 everywhere."""
    return x is None or (x.known is not None and not np.any(x.known))


@operator("QuantizeLinear")
@operator("QuantizeLinear", domain=MICROSOFT, inputs="x y_scale y_zero_point")
def lower_quantize(node: NodeCall) -> OnnxTensor:
    x, scale, zero = node.take(0), node.take(1), node.optional(2)
    axis, block = node.attr("axis", 1), node.attr("block_size") or 0
    dtype = node.dtype("output_dtype") if node.attr("output_dtype") else np.dtype(np.uint8)
    if zero is not None and node.attr("output_dtype") and zero.dtype != dtype:
        raise BadNode(f"zero points of {zero.dtype} for results of {dtype}", "one type")
    dtype = dtype if zero is None else zero.dtype
    precision = node.attr("precision")
    working = helper.tensor_dtype_to_np_dtype(precision) if precision else scale.dtype
    working = np.dtype(working if np.dtype(working).itemsize > 1 else np.float32)
    divisor = convert(spread_scale(scale, x, axis, block), working)
    quotient = convert(convert(x, working) / divisor, np.promote_types(working, np.float32))
    zero = None if zero is None else spread_scale(zero, x, axis, block)
    return saturated(quotient, zero, dtype, node.attr("saturate") != 0)


def quantized(x: OnnxTensor, scale: OnnxTensor, zero: OnnxTensor | None, dtype: Any) -> OnnxTensor:
    """Floats as bytes of one scale and zero point, each of rank 0."""
    return saturated(x / scale, zero, dtype)


@operator("DequantizeLinear")
@operator("DequantizeLinear", domain=MICROSOFT, inputs="x x_scale x_zero_point")
def lower_dequantize(node: NodeCall) -> OnnxTensor:
    x, scale, zero = node.take(0), node.take(1), node.optional(2)
    axis, block = node.attr("axis", 1), node.attr("block_size") or 0
    dtype = node.dtype("output_dtype") if node.attr("output_dtype") else scale.dtype
    return dequantized(x, scale, zero, dtype, axis, block)


def dequantized(
    x: OnnxTensor,
    scale: OnnxTensor,
    zero: OnnxTensor | None,
    dtype: Any = np.float32,
    axis: int = 1,
    block: int = 0,
) -> OnnxTensor:
    """(x - zero) scale as floats of `dtype`, which remember the bytes that they were.

    Args:
        scale, zero: as `spread_scale` takes them.
    """
    given, zero_of_given = x, zero
    if x.shifted is not None and (signed := lowered(zero)) is not None:
        x, zero = x.shifted, signed
    difference = convert(x, np.float32)
    if zero is not None and not is_zero(zero):
        spread = spread_scale(zero, x, axis, block)
        difference = difference - convert(spread, np.float32)
    factor = convert(spread_scale(scale, x, axis, block), np.float32)
    made = cast(difference * factor, dtype)
    if given.dtype in BYTES and dtype == np.float32 and not block:
        # One scale has no axis, and the default is none of a vector's.
        at = 0 if scale.count == 1 else ops.axis_of(axis, x.rank)
        made.dequantized = Dequantized(given, scale, zero_of_given, at)
    return made


@operator("DynamicQuantizeLinear")
def lower_dynamic_quantize(node: NodeCall) -> tuple[OnnxTensor, OnnxTensor, OnnxTensor]:
    """To uint8, with the scale and zero point that hold all of `x` and 0."""
    return dynamically_quantized(node.take(0))


def dynamically_quantized(x: OnnxTensor) -> tuple[OnnxTensor, OnnxTensor, OnnxTensor]:
    """`x` as uint8, its scale and its zero point."""
    everywhere = list(range(x.rank))
    high = ops.maximum(ops.reduce("maximum", x, everywhere), 0)
    low = ops.minimum(ops.reduce("minimum", x, everywhere), 0)
    scale = (high - low) / 255
    scale = ops.where(ops.is_zero(scale), 1, scale)
    zero = ops.round_half_even(ops.clip(-low / scale, 0, 255))
    result = saturated(x / scale, zero, np.uint8)
    return result, scale, convert(zero, np.uint8)
