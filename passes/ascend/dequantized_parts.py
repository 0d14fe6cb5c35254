"""What is quantized, taken apart: sums of products of bytes, and what is done to them, in steps.

A **step** is what the bytes that are made count. A part stands for a value divided by it, less what
is the same for all of its rows: that is added to integers behind a product (`QuantizedPart.take`),
so that f16 need not hold both. `settle` decides how a part is computed, or that it is not in f16.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from davinci.dialects.ascend_types import tensor_of, tensor_type
from davinci.element_types import dtype_of
from davinci.elements import Array
from davinci.mlir import ir, owner_of
from davinci.operators.tensors import ND, NZ, Tensor
from davinci.passes import builder
from davinci.passes.ascend.tensor_ops import (
    RELAYOUT,
    TensorOps,
    defining_op,
)

STEPS = 255
"""Between the least and the largest byte."""

LARGEST, NORMAL, LEAST = 65504.0, 2.0**-14, 2.0**-25
"""The largest number of f16, its least normal one, and half of its least subnormal one."""


class Unfit(Exception):
    """A value that is not computed in f16."""


Number = Any  # a float, or an array with one for each column
"""A number, or an array of one for each column, f64."""


@dataclass
class QuantizedPart(ABC):
    """A value in steps, without what is the same for all rows.

    Attributes:
        value: what it stands for, whose shape and layout it has.
        parts: of what it is made.
    """

    value: ir.Value
    parts: list[QuantizedPart] = field(default_factory=list)

    def take(self, number: Number) -> bool:
        """Takes a number to be added, if that is possible."""
        return any(part.take(number) for part in self.parts[:1])

    @abstractmethod
    def emit(self, ops: TensorOps) -> ir.Value:
        """Builds it."""

    @property
    def tensor(self) -> Tensor:
        """What it is."""
        return replace(tensor_of(self.value.type), element="f16")

    @property
    def layout(self) -> str:
        """In which it is computed."""
        return self.parts[0].layout if self.parts else self.tensor.layout

    def settle(self, bounded: bool) -> None:
        """Decides how it is computed.

        Args:
            bounded: whether it may not leave the range of f16.

        Raises:
            Unfit: it cannot be.
        """
        for part in self.parts:
            part.settle(bounded)

    @property
    def has_sums(self) -> bool:
        return any(part.has_sums for part in self.parts)

    @property
    def by_fixpipe(self) -> bool:
        """Whether it is sums that fixpipe scales, between limits or not."""
        return False

    def leave(
        self, ops: TensorOps, element: str, *, relu: bool = False, offset: int = 0
    ) -> ir.Value | None:
        """Builds it as fixpipe makes it on the way out of L0C; None if that is not all it takes.

        Args:
            element: f16, or i8 of the bytes that steps count.
            relu: whether negative values become 0.
            offset: an integer that is added to bytes.
        """
        return None

    @property
    def leaves_in_rows(self) -> bool:
        """Whether fixpipe may as well leave it in rows, or it is bytes, which lie in both."""
        return bool(self.parts) and all(part.leaves_in_rows for part in self.parts)

    def go_to_rows(self) -> None:
        """Has it computed in rows, where bytes and what they are added to have one order."""
        for part in self.parts:
            part.go_to_rows()


@dataclass
class Sum(QuantizedPart):
    """Parts that are added."""

    def settle(self, bounded: bool) -> None:
        if self.leaves_in_rows and any(part.by_fixpipe for part in self.parts):
            self.go_to_rows()
        super().settle(True)
        if len({part.layout for part in self.parts}) > 1:
            raise Unfit

    def emit(self, ops: TensorOps) -> ir.Value:
        first, second = (part.emit(ops) for part in self.parts)
        return ops.binary("add", first, second)


@dataclass
class WindowMaxima(QuantizedPart):
    """Maxima of windows of a part, in fractals."""

    @property
    def layout(self) -> str:
        return self.tensor.layout

    @property
    def leaves_in_rows(self) -> bool:
        return False

    def emit(self, ops: TensorOps) -> ir.Value:
        op = owner_of(self.value)
        attributes = {name: op.attributes[name] for name in op.attributes}
        (given,) = (ops.relayout(part.emit(ops), self.layout) for part in self.parts)
        return builder.op(op.name, [given], [tensor_type(self.tensor)], **attributes).result


@dataclass
class Total(QuantizedPart):
    """Sums of rows of a part, in f32, over a power of two that the part was scaled up by."""

    power: int = 0

    def take(self, number: Number) -> bool:
        return False

    @property
    def tensor(self) -> Tensor:
        return tensor_of(self.value.type)

    @property
    def layout(self) -> str:
        return self.tensor.layout

    def settle(self, bounded: bool) -> None:
        super().settle(True)

    def emit(self, ops: TensorOps) -> ir.Value:
        op = owner_of(self.value)
        (given,) = (part.emit(ops) for part in self.parts)
        attributes = {name: op.attributes[name] for name in op.attributes}
        if self.layout == NZ:
            given = ops.relayout(given, NZ)
        wide = ops.cast(given, "f32")
        total = builder.op(op.name, [wide], [tensor_type(self.tensor)], **attributes).result
        return ops.binary("mul", total, full(self.tensor, 2.0**-self.power, ops))


@dataclass
class Limit(QuantizedPart):
    """A part, and a number that it has not taken, limited on one side."""

    number: Number = 0.0

    @property
    def by_fixpipe(self) -> bool:
        return self.parts[0].by_fixpipe

    def take(self, number: Number) -> bool:
        return False


@dataclass
class Relu(Limit):
    """Not less than 0."""

    def leave(
        self, ops: TensorOps, element: str, *, relu: bool = False, offset: int = 0
    ) -> ir.Value | None:
        if np.any(self.number):
            return None
        return self.parts[0].leave(ops, element, relu=True, offset=offset)

    def emit(self, ops: TensorOps) -> ir.Value:
        left = self.leave(ops, "f16")
        if left is not None:
            return left
        (given,) = (part.emit(ops) for part in self.parts)
        return ops.unary("relu", plus(given, self.number, ops))


@dataclass
class AtMost(Limit):
    """Not more than a number of steps."""

    most: float = 0.0

    def emit(self, ops: TensorOps) -> ir.Value:
        (given,) = (plus(part.emit(ops), self.number, ops) for part in self.parts)
        return ops.binary("min", given, full(tensor_of(given.type), self.most, ops))


@dataclass
class Bytes(QuantizedPart):
    """Bytes times a number.

    Attributes:
        to_rows: whether they are brought to rows, where they are not made there.
    """

    factor: float = 1.0
    to_rows: bool = False

    @property
    def layout(self) -> str:
        return ND if self.to_rows else tensor_of(self.value.type).layout

    @property
    def leaves_in_rows(self) -> bool:
        return True

    def go_to_rows(self) -> None:
        self.to_rows = True

    @property
    def tensor(self) -> Tensor:
        return replace(super().tensor, layout=self.layout)

    def take(self, number: Number) -> bool:
        return False

    def settle(self, bounded: bool) -> None:
        if not NORMAL <= abs(self.factor) <= LARGEST / STEPS:
            raise Unfit

    def emit(self, ops: TensorOps) -> ir.Value:
        given, owner = self.value, defining_op(self.value)
        if self.to_rows and owner is not None and owner.name == RELAYOUT:
            given = owner.operands[0]
        wide = ops.cast(ops.relayout(given, self.layout), "f16")
        return ops.binary("mul", wide, full(self.tensor, self.factor, ops))


def full(tensor: Tensor, number: float, ops: TensorOps) -> ir.Value:
    return ops.relayout(ops.full(tensor.shape, tensor.element, number), tensor.layout)


def plus(value: ir.Value, number: Number, ops: TensorOps) -> ir.Value:
    """A value and a number, or one for each column."""
    if not np.any(number):
        return value
    tensor = tensor_of(value.type)
    if np.ndim(number) == 0:
        return ops.binary("add", value, full(tensor, float(number), ops))
    row = constant(np.asarray(number), tensor.element, ND, ops)
    return ops.binary("add", value, spread(row, tensor))


def spread(row: ir.Value, tensor: Tensor) -> ir.Value:
    """A row for all rows of a tensor."""
    dims = builder.as_attribute([tensor.rank - 1])
    return builder.op("ascend.broadcast", [row], [tensor_type(tensor)], dims=dims).result


def constant(array: Array, element: str, layout: str, ops: TensorOps) -> ir.Value:
    """A constant that stays an array even if all of it is alike."""
    return ops.array(array.astype(dtype_of(element)), Tensor(array.shape, element, layout))
