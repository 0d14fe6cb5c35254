"""Quantized numbers: to and from floats, and products of them.

Products keep 8-bit integers as operands, for the cube: (a - za)(b - zb) summed over k is
ab - za sum(b) - sum(a) zb + k za zb, of which only the first term is a product of matrices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.operators.casts import cast
from davinci.frontends.onnx.tensor import (
    Invalid,
    Tensor,
    bounds,
    broadcast,
    constant,
    convert,
    is_integer,
)

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import Call


def spread_scale(value: Tensor, x: Tensor, axis: int, block: int) -> Tensor:
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
    blocks = -(-x.shape[at] // block) if block else 0
    if value.shape != (*x.shape[:at], blocks, *x.shape[at + 1 :]):
        raise Invalid(
            f"a scale or zero point of shape {list(value.shape)} for {list(x.shape)}",
            f"one number, one for each index of axis {at}, or one for each block",
        )
    shape = [*value.shape[: at + 1], block, *value.shape[at + 1 :]]
    repeated = broadcast(ops.expand_dims(value, [at + 1]), shape)
    whole = ops.reshape(repeated, [*x.shape[:at], blocks * block, *x.shape[at + 1 :]])
    return ops.cut_axis(whole, at, 0, x.shape[at])


def saturated(x: Tensor, zero: Tensor | None, dtype: Any, saturate: bool = True) -> Tensor:
    """A float, rounded to even and shifted by its zero point, as a quantized type."""
    if not is_integer(dtype):
        return cast(x, dtype, saturate)
    low, high = bounds(dtype)
    whole = ops.round_half_even(x)
    whole = whole if zero is None or is_zero(zero) else whole + convert(zero, x.dtype)
    return convert(ops.clip(whole, low, high), dtype)


def is_zero(x: Tensor | None) -> bool:
    """Whether a tensor is known to be 0 everywhere."""
    return x is None or (x.known is not None and not np.any(x.known))


@operator("QuantizeLinear")
def lower_quantize(node: Call) -> Tensor:
    x, scale, zero = node.take(0), node.take(1), node.optional(2)
    axis, block = node.attr("axis", 1), node.attr("block_size") or 0
    dtype = node.dtype("output_dtype") if node.attr("output_dtype") else np.dtype(np.uint8)
    if zero is not None and node.attr("output_dtype") and zero.dtype != dtype:
        raise Invalid(f"zero points of {zero.dtype} for results of {dtype}", "one type")
    dtype = dtype if zero is None else zero.dtype
    precision = node.attr("precision")
    working = helper.tensor_dtype_to_np_dtype(precision) if precision else scale.dtype
    working = np.dtype(working if np.dtype(working).itemsize > 1 else np.float32)
    divisor = convert(spread_scale(scale, x, axis, block), working)
    quotient = convert(convert(x, working) / divisor, np.promote_types(working, np.float32))
    zero = None if zero is None else spread_scale(zero, x, axis, block)
    return saturated(quotient, zero, dtype, node.attr("saturate") != 0)


@operator("DequantizeLinear")
def lower_dequantize(node: Call) -> Tensor:
    x, scale, zero = node.take(0), node.take(1), node.optional(2)
    axis, block = node.attr("axis", 1), node.attr("block_size") or 0
    dtype = node.dtype("output_dtype") if node.attr("output_dtype") else scale.dtype
    difference = convert(x, np.float32)
    if zero is not None and not is_zero(zero):
        zero = spread_scale(zero, x, axis, block)
        difference = difference - convert(zero, np.float32)
    factor = convert(spread_scale(scale, x, axis, block), np.float32)
    return cast(difference * factor, dtype)


@operator("DynamicQuantizeLinear")
def lower_dynamic_quantize(node: Call) -> tuple[Tensor, Tensor, Tensor]:
    """To uint8, with the scale and zero point that hold all of `x` and 0."""
    x = node.take(0)
    everywhere = list(range(x.rank))
    high = ops.maximum(ops.reduce("maximum", x, everywhere), 0)
    low = ops.minimum(ops.reduce("minimum", x, everywhere), 0)
    scale = (high - low) / 255
    scale = ops.where(ops.is_zero(scale), 1, scale)
    zero = ops.round_half_even(ops.clip(-low / scale, 0, 255))
    result = saturated(x / scale, zero, np.uint8)
    return result, scale, convert(zero, np.uint8)


# Products.


def signed(x: Tensor, zero: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """8-bit integers and their zero point as int8: of unsigned ones both are moved by 128.

    Returns:
        The integers, and the zero point as i32, None if it is 0.
    """
    if not x.is_unsigned:
        return x, None if zero is None or is_zero(zero) else convert(zero, np.int32)
    if x.known is not None:
        moved = constant((x.known ^ 128).view(np.int8), name=x.name)
    else:
        moved = ops.bitcast(x ^ 128, np.int8)
    if zero is None:
        return moved, ops.full((), np.int32, -128)
    if zero.known is not None:
        shifted = constant(zero.known.astype(np.int32) - 128)
        return moved, None if is_zero(shifted) else shifted
    return moved, convert(zero, np.int32) - 128


def sums(x: Tensor, axes: list[int]) -> Tensor:
    """Sums of int8 as i32, kept as dimensions; of a weight computed here."""
    if x.known is not None:
        return constant(x.known.sum(tuple(axes), np.int32, keepdims=True))
    return ops.reduce("add", convert(x, np.int32), axes, keepdims=True)


def integer_matmul(a: Tensor, b: Tensor, a_zero: Tensor | None, b_zero: Tensor | None) -> Tensor:
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
        raise Invalid(f"zero points of shape {list(b_zero.shape)}", "one for each column")
    depth = a.shape[-1]
    a, za = signed(a, _scalar(a_zero))
    b, zb = signed(b, _scalar(b_zero))
    found = ops.matmul(a, b, np.int32)
    found = found if za is None else found - za * sums(b, [b.rank - 2])
    found = found if zb is None else found - sums(a, [a.rank - 1]) * zb
    found = found if za is None or zb is None else found + depth * (za * zb)
    gone = [found.rank - 2] if rows else []
    return ops.squeeze(found, [*gone, *([found.rank - 1] if columns else [])])


def _scalar(zero: Tensor | None) -> Tensor | None:
    return ops.reshape(zero, []) if zero is not None and zero.count == 1 else zero


@operator("MatMulInteger")
def lower_matmul_integer(node: Call) -> Tensor:
    return integer_matmul(node.take(0), node.take(1), node.optional(2), node.optional(3))


@operator("QLinearMatMul")
def lower_quantized_matmul(node: Call) -> Tensor:
    a, a_scale, a_zero, b, b_scale, b_zero = (node.take(i) for i in range(6))
    y_scale, y_zero = node.take(6), node.take(7)
    product = convert(integer_matmul(a, b, a_zero, b_zero), np.float32)
    a_scale = ops.expand_dims(a_scale, [1]) if a_scale.count > 1 and a_scale.rank == 1 else a_scale
    factors = (_scalar(convert(s, np.float32)) for s in (a_scale, b_scale, y_scale))
    a_factor, b_factor, y_factor = factors
    assert a_factor is not None and b_factor is not None and y_factor is not None
    return saturated(product * (a_factor * b_factor / y_factor), _scalar(y_zero), y_zero.dtype)
