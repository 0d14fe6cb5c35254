"""Images of floats that are bytes less their zero point, times a step: as integers in f16.

    cast((cast(b) - z) s)   ->   cast(b) - z, all in f16, which is exact; s goes to the weights

What only puts the elements in other places may stand between such an image and its reader.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.element_types import dtype_of
from davinci.mlir import Op, ir
from davinci.operators.quantize import QUANTIZED
from davinci.operators.tensors import Tensor
from davinci.passes.ascend.rearrangement import REARRANGED
from davinci.passes.ascend.tensor_ops import TensorOps, defining_op, full_value, read_once

ELSEWHERE = (*REARRANGED, "ascend.relayout", "ascend.slice")
"""Operators that put elements elsewhere and change none: a factor of all stays one."""

WHOLE = 2048
"""Integers up to this are f16."""


@dataclass(frozen=True)
class IntegerImage:
    """An image of f16 that is integers times a step.

    Attributes:
        rounded: the operator that rounds it to f16.
        integers: bytes, before the zero point is taken off.
        zero: the zero point.
        step: what the integers count.
    """

    rounded: Op
    integers: ir.Value
    zero: float
    step: float

    @staticmethod
    def of(image: ir.Value) -> IntegerImage | None:
        """`image` as integers, if it is that and nothing else reads what it is made of."""
        op = defining_op(image)
        while op is not None and op.name in ELSEWHERE and read_once(image):
            image = op.operands[0]
            op = defining_op(image)
        if op is None or op.name != "ascend.cast" or not read_once(image):
            return None
        if tensor_of(image.type).element != "f16":
            return None
        value, step = with_number(op.operands[0], "ascend.mul", 1.0)
        value, zero = with_number(value, "ascend.sub", 0.0)
        wide = defining_op(value)
        if wide is None or wide.name != "ascend.cast":
            return None
        integers = wide.operands[0]
        element = tensor_of(integers.type).element
        if element not in QUANTIZED or not zero.is_integer() or step == 0:
            return None
        limits = np.iinfo(dtype_of(element))
        if max(limits.max - zero, zero - limits.min) > WHOLE:
            return None
        return IntegerImage(op, integers, zero, step)

    def settle(self) -> None:
        """Has the image be the integers."""
        with self.rounded.location, ir.InsertionPoint(self.rounded):
            ops = TensorOps()
            found = ops.cast(self.integers, "f16")
            if self.zero:
                kind: Tensor = tensor_of(found.type)
                number = ops.full(kind.shape, "f16", self.zero)
                found = ops.binary("sub", found, ops.relayout(number, kind.layout))
        self.rounded.results[0].replace_all_uses_with(found)


def with_number(value: ir.Value, name: str, neutral: float) -> tuple[ir.Value, float]:
    """What `name` combines with a number to make a value, and that number; the value and a neutral
    number if it does not."""
    op = defining_op(value)
    if op is None or op.name != name:
        return value, neutral
    first, second = op.operands
    if (number := full_value(second)) is not None:
        return first, float(number)
    if name == "ascend.mul" and (number := full_value(first)) is not None:
        return second, float(number)
    return value, neutral
