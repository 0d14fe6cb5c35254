"""Conversions of element types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.tensor import (
    NARROW_INTEGERS,
    OnnxTensor,
    binary,
    bounds,
    convert,
    is_integer,
    type_name,
)

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall

WIDE = tuple(np.dtype(t) for t in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64))
"""Floats that hold all finite values of the types that saturate."""

SATURATING = frozenset({"float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"})
"""Types whose conversions give their largest value, unless the node says otherwise."""

FINITE = frozenset({"float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"})
"""Types without infinity and NaN: conversions always give the largest value."""

NO_VALUE = 255
"""The bits of an f32's exponent that say infinity or NaN, and of a float8e8m0 that say NaN."""


def cast(x: OnnxTensor, dtype: Any, saturate: bool = True, round_mode: str = "up") -> OnnxTensor:
    """ONNX's conversion: towards zero to integers, modulo 2^n between them, even between floats.

    Args:
        saturate: what does not fit a float8 type becomes its largest value.
        round_mode: of float8e8m0, which only holds powers of two: up, down or nearest.
    """
    target = np.dtype(dtype)
    if target == x.dtype:
        return x
    if target == np.bool_:
        return ops.as_bool(x)
    if target.name == "float8_e8m0fnu":
        return _power_of_two(convert(x, np.float32), dtype, saturate, round_mode)
    if target.name in FINITE or (target.name in SATURATING and saturate):
        wide = x if x.dtype in WIDE else convert(x, np.float32)
        largest = float(limits(target).max)
        return convert(ops.clip(wide, -largest, largest), target)
    if x.is_float and target.name in NARROW_INTEGERS:
        return convert(convert(x, np.int32), target)  # which keeps the low bits
    return convert(x, target)


def _power_of_two(x: OnnxTensor, dtype: Any, saturate: bool, round_mode: str) -> OnnxTensor:
    """An f32 as a float8e8m0, whose 8 bits are the exponent of an f32."""
    bits = ops.bitcast(x, np.uint32)
    exponent = binary("shift_right_logical", bits, 23) & NO_VALUE
    fraction, half = bits & 0x7FFFFF, 0x400000
    normal = ops.compare("NE", exponent, NO_VALUE)
    if round_mode == "up":
        rounded = ops.as_bool(fraction)
    elif round_mode == "nearest":
        tie = ops.compare("EQ", fraction, half) & ops.as_bool(exponent)
        rounded = ops.compare("GT", fraction, half) | tie
    else:
        rounded = ops.full(x.shape, np.bool_, False)
    if saturate:
        rounded = rounded & ops.compare("NE", exponent, NO_VALUE - 1)
    found = exponent + convert(rounded & normal, np.uint32)
    return ops.bitcast(convert(found, np.uint8), dtype)


def limits(dtype: Any) -> Any:
    """The `finfo` of a float."""
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def cast_by_attributes(node: NodeCall, x: OnnxTensor, dtype: Any) -> OnnxTensor:
    saturate, mode = node.attr("saturate"), node.attr("round_mode")
    if mode not in (None, "up", "down", "nearest"):
        node.refuse(f"round_mode {mode!r}", "up, down or nearest")
    return cast(x, dtype, saturate is None or bool(saturate), mode or "up")


@operator("Cast")
def lower_cast(node: NodeCall) -> OnnxTensor:
    """Operator sets before 6 spell types by name."""
    to = node.attr("to")
    number = to if isinstance(to, int) else TensorProto.DataType.Value(to)
    return cast_by_attributes(node, node.take(0), helper.tensor_dtype_to_np_dtype(number))


@operator("CastLike")
def lower_cast_like(node: NodeCall) -> OnnxTensor:
    return cast_by_attributes(node, node.take(0), node.take(1).dtype)


@operator("BitCast")
def lower_bit_cast(node: NodeCall) -> OnnxTensor:
    x, dtype = node.take(0), node.dtype("to")
    if _bits(x.dtype) != _bits(dtype):
        node.refuse(f"{type_name(x.dtype)} as {type_name(dtype)}", "types of the same width")
    x = convert(x, np.uint8) if x.dtype == np.bool_ else x
    if dtype == np.bool_:
        return ops.as_bool(x)
    return x if x.dtype == dtype else ops.bitcast(x, dtype)


def _bits(dtype: np.dtype[Any]) -> int:
    """Width of an element; a boolean takes a byte."""
    if is_integer(dtype):
        low, high = bounds(dtype)
        return (high - low).bit_length()
    return 8 * dtype.itemsize if dtype == np.bool_ else int(limits(dtype).bits)
