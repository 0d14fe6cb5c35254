"""Values of @main: their sizes in GM, and those that lie in the buffers of others."""

from __future__ import annotations

import math

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.errors import CompileError, Invalid
from davinci.mlir import Op, ir, location_text
from davinci.operators.layouts import slice_offset
from davinci.passes.ascend.kernel_outline import memref_of
from davinci.passes.ascend.tensor_ops import defining_op

VIEWS = frozenset({"ascend.reshape", "ascend.view", "ascend.reinterpret"})
"""Operators whose result is the buffer of their operand."""


def viewed(value: ir.Value) -> ir.Value:
    """The value whose buffer `value` is, under another shape or element type."""
    owner = defining_op(value)
    while owner is not None and owner.name in VIEWS:
        value = owner.operands[0]
        owner = defining_op(value)
    return value


def offset_of(op: Op) -> int | None:
    """Where in its operand a slice lies, in elements; None unless it is a view."""
    starts, strides = attribute(op, "starts"), attribute(op, "strides")
    operand, result = tensor_of(op.operands[0].type), tensor_of(op.result.type)
    return slice_offset(operand, result, starts, strides)


def static_tensor(value_type: ir.Type, location: ir.Location) -> ir.RankedTensorType:
    """The type of a value, which must be a tensor of a static shape."""
    if not isinstance(value_type, ir.RankedTensorType):
        raise CompileError(
            "a value of @main is not a ranked tensor",
            where=location_text(location),
            found=str(value_type),
        )
    if not value_type.has_static_shape:
        raise CompileError(
            "a value of @main has a dynamic shape",
            where=location_text(location),
            found=str(value_type),
            expected="static shapes",
        )
    try:
        tensor_of(value_type)
    except Invalid as error:
        raise CompileError(
            f"a value of @main has a type that is wrong: {error}",
            where=location_text(location),
            found=str(value_type),
        ) from None
    return value_type


def size_bytes(tensor: ir.Type, location: ir.Location) -> int:
    """Bytes of the array of a tensor in GM."""
    stored = memref_of(tensor)
    element = stored.element_type
    if not isinstance(element, (ir.IntegerType, ir.FloatType)) or element.width % 8:
        raise CompileError(
            "a value of @main has an element type that GM buffers cannot hold",
            where=location_text(location),
            found=str(tensor),
            expected="booleans, or integers and floats of whole bytes",
        )
    size_bits: int = math.prod(stored.shape) * element.width
    return size_bits // 8
