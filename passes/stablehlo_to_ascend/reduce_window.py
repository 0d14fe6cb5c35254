"""Conversion of reductions over windows: dimension by dimension, covered elements doubled.

    y[i] = x[i] + .. + x[i + 6]     two = x[i] + x[i + 1]     four = two[i] + two[i + 2]
                                    y = four[i] + two[i + 4] + x[i + 6]

So a window of k elements takes log2(k) operations on the whole tensor, and as many more as k has
ones; a running sum, whose windows reach back to the first element, is one of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.elements import to_array
from davinci.mlir import Op, ir
from davinci.operators.parts import pad_shape
from davinci.passes.ascend.tensor_ops import TensorOps, full_value
from davinci.passes.stablehlo_to_ascend import conversion
from davinci.passes.stablehlo_to_ascend.movement import cut, kind_of_body, neutral


@conversion("reduce_window")
def convert_reduce_window(op: Op, ops: TensorOps) -> Sequence[Any] | None:
    """Of one operand that is no booleans, from the neutral value, with one operation as body."""
    kind = kind_of_body(op)
    operand, start = op.operands[0], op.operands[-1]
    found, result = tensor_of(operand.type), tensor_of(op.results[0].type)
    value = full_value(start)
    if kind is None or value is None or found.element == "i1" or not result.count:
        return None
    if value != neutral(kind, value.dtype) or not found.count:
        return None
    ones = [1] * found.rank
    sizes = attribute(op, "window_dimensions")
    strides, inside, apart = (
        attribute(op, name) or ones
        for name in ("window_strides", "base_dilations", "window_dilations")
    )
    x = padded(op, operand, start, inside, ops)
    wide = found.element == "f16" and kind in ("add", "mul")
    x = ops.cast(x, "f32") if wide else x
    for dim, (size, stride, step) in enumerate(zip(sizes, strides, apart, strict=True)):
        x = combined(x, dim, size, step, stride, result.shape[dim], kind, ops)
    return [ops.cast(x, found.element)]


def padded(op: Op, operand: ir.Value, start: ir.Value, inside: list[int], ops: TensorOps) -> Any:
    """The operand with the start value around it and between its elements."""
    found = tensor_of(operand.type)
    edges = np.zeros((found.rank, 2), np.int64)
    if "padding" in op.attributes:
        edges = to_array(op.attributes["padding"]).reshape(found.rank, 2)
    low, high = (edges[:, side].tolist() for side in (0, 1))
    interior = [n - 1 for n in inside]
    shape = pad_shape(found.shape, low, high, interior)
    if shape == found.shape and not any(low):
        return operand
    result = replace(found, shape=shape)
    return ops.emit("pad", [operand, start], result, low=low, high=high, interior=interior)


def combined(
    x: Any, dim: int, size: int, step: int, stride: int, count: int, kind: str, ops: TensorOps
) -> Any:
    """Windows of `size` elements, `step` apart, along a dimension: `count` of them."""
    length = tensor_of(x.type).shape[dim]
    reach = (count - 1) * stride + 1
    if count == 1 and step == 1 and size > 1:
        whole = part(x, dim, 0, size, 1, ops)
        shape = list(tensor_of(whole.type).shape)
        shape[dim] = 1
        return ops.reshape(ops.reduce(whole, kind, [dim]), shape)
    result, at, covered = None, 0, 1
    while True:
        if size & covered:
            piece = part(x, dim, at * step, at * step + reach, stride, ops)
            result = piece if result is None else ops.binary(kind, result, piece)
            at += covered
        if at == size:
            return result
        length -= covered * step
        first, second = (
            part(x, dim, begin, begin + length, 1, ops) for begin in (0, covered * step)
        )
        x, covered = ops.binary(kind, first, second), 2 * covered


def part(x: Any, dim: int, start: int, limit: int, stride: int, ops: TensorOps) -> Any:
    """x[.., start : limit : stride, ..]."""
    shape = tensor_of(x.type).shape
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[dim], limits[dim], strides[dim] = start, limit, stride
    return cut(x, starts, limits, strides, ops)
