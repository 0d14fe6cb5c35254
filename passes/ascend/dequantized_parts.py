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
from davinci.dialects.base import attribute
from davinci.element_types import dtype_of
from davinci.elements import Array
from davinci.mlir import Op, ir, owner_of
from davinci.operators.products import TRANSPOSE_B
from davinci.operators.quantize import digits_of
from davinci.operators.tensors import ND, NZ, Tensor
from davinci.passes import builder
from davinci.passes.ascend.integer_images import IntegerImage
from davinci.passes.ascend.tensor_ops import (
    DEQUANTIZE,
    TensorOps,
    constant_array,
    definition,
)

MOST_BLOCKS = 4
"""Blocks of 32 digits that the cube may add to a sum."""

STEPS = 255
"""Between the least and the largest byte."""

LARGEST, NORMAL, LEAST = 65504.0, 2.0**-14, 2.0**-25
"""The largest number of f16, its least normal one, and half of its least subnormal one."""

MOST_SHIFT = 7
"""Results are scaled up by at most 2 to the power of this: 255 steps still are f16."""

ALLOWED = 1 / 8
"""Steps that the rounding of a small scale may move a result by."""

FINE = 2.0**-8
"""The least that the largest weight of a column may become: f16 then rounds as well as any."""

DEAD_SCALE = 2.0**-6
"""The scale given to columns whose weights are all 0, for which any would do."""


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


@dataclass
class Sum(QuantizedPart):
    """Parts that are added."""

    def settle(self, bounded: bool) -> None:
        super().settle(True)
        if len({part.layout for part in self.parts}) > 1:
            raise Unfit

    def emit(self, ops: TensorOps) -> ir.Value:
        first, second = (part.emit(ops) for part in self.parts)
        return ops.binary("add", first, second)


@dataclass
class WindowMaxima(QuantizedPart):
    """Maxima of windows of a part."""

    def emit(self, ops: TensorOps) -> ir.Value:
        op = owner_of(self.value)
        attributes = {name: op.attributes[name] for name in op.attributes}
        (given,) = (part.emit(ops) for part in self.parts)
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
        wide = ops.cast(given, "f32")
        total = builder.op(op.name, [wide], [tensor_type(self.tensor)], **attributes).result
        return ops.binary("mul", total, full(self.tensor, 2.0**-self.power, ops))


@dataclass
class Relu(QuantizedPart):
    """A part, and a number that it has not taken, not less than 0."""

    number: Number = 0.0

    def take(self, number: Number) -> bool:
        return False

    def emit(self, ops: TensorOps) -> ir.Value:
        (given,) = (part.emit(ops) for part in self.parts)
        return ops.unary("relu", plus(given, self.number, ops))


@dataclass
class Bytes(QuantizedPart):
    """Bytes times a number."""

    factor: float = 1.0

    def take(self, number: Number) -> bool:
        return False

    def settle(self, bounded: bool) -> None:
        if not NORMAL <= abs(self.factor) <= LARGEST / STEPS:
            raise Unfit

    def emit(self, ops: TensorOps) -> ir.Value:
        wide = ops.cast(self.value, "f16")
        return ops.binary("mul", wide, full(self.tensor, self.factor, ops))


@dataclass
class ScaledSums(QuantizedPart):
    """Sums of a product, plus a number for each column, times a scale for each.

    Attributes:
        product: the operation.
        numbers: integers, added to the sums.
        scales: of the columns.
        given: what was taken, in steps.
    """

    product: Op = field(kw_only=True)
    numbers: Array = field(default_factory=lambda: np.zeros(1))
    scales: Array = field(default_factory=lambda: np.ones(1))
    given: Number = 0.0
    shift: int = 0

    def take(self, number: Number) -> bool:
        self.given = self.given + number
        return True

    @property
    def tensor(self) -> Tensor:
        """As the product lies."""
        return replace(tensor_of(self.product.results[0].type), element="f16")

    @property
    def has_sums(self) -> bool:
        return True

    @property
    def weights(self) -> Array:
        """The constant right factor of the product as a matrix, [k, columns].

        Raises:
            Unfit: it is no constant, or a batch of several matrices.
        """
        owner = definition(self.product.operands[1])
        if owner is None:
            raise Unfit
        array = constant_array(owner)
        if attribute(self.product, TRANSPOSE_B, False):
            array = array.swapaxes(-1, -2)
        if array.ndim > 2 and array.shape[0] != 1:
            raise Unfit
        return array.reshape(array.shape[-2:])

    def settle(self, bounded: bool) -> None:
        sizes = np.abs(self.weights.astype(np.float64)).sum(0)
        self._give_columns(len(sizes))
        self.scales[sizes == 0] = DEAD_SCALE
        if not np.all(np.isfinite(self.scales)) or not np.all(self.scales):
            raise Unfit
        scales, most = np.abs(self.scales), STEPS * sizes
        self.shift = shift_of(scales, most, most * scales + np.abs(self.given), bounded)

    def _give_columns(self, count: int) -> None:
        """Has numbers, scales and what was taken for each column."""
        self.numbers, self.scales, self.given = (
            np.broadcast_to(np.asarray(x, np.float64), (count,)).copy()
            for x in (self.numbers, self.scales, self.given)
        )

    def emit(self, ops: TensorOps) -> ir.Value:
        made = self._scaled(ops)
        if not self.shift:
            return made
        return ops.binary("mul", made, full(self.tensor, 2.0**-self.shift, ops))

    @abstractmethod
    def _scaled(self, ops: TensorOps) -> ir.Value:
        """What it is times 2 to the power of `shift`."""


@dataclass
class OfBytes(ScaledSums):
    """Sums of products of bytes, in i32."""

    digits: Array | None = None

    def settle(self, bounded: bool) -> None:
        super().settle(bounded)
        total = np.rint(self.numbers + self.given / self.scales)
        if np.abs(total).max(initial=0) < 2.0**31:
            self.digits = digits_of(total, MOST_BLOCKS)
        if self.digits is None:
            raise Unfit

    def _scaled(self, ops: TensorOps) -> ir.Value:
        assert self.digits is not None, "not settled"
        scales = (self.scales * 2.0**self.shift).astype(np.float16)
        beside = constant(scales, "f16", ND, ops), constant(self.digits, "i8", NZ, ops)
        operands = [self.product.results[0], *beside]
        return builder.op(DEQUANTIZE, operands, [tensor_type(self.tensor)]).result


@dataclass
class OfHalves(ScaledSums):
    """Sums of products of bytes that were widened to f16, in f32.

    Attributes:
        step: what weights take besides the scales.
    """

    step: float = 1.0

    def _scaled(self, ops: TensorOps) -> ir.Value:
        op, power = self.product, 2.0**self.shift
        kind = tensor_of(op.operands[1].type)
        array = constant_array(owner_of(op.operands[1])).astype(np.float64)
        scaled = (array * (self.scales * self.step) * power).astype(np.float16)
        weights = constant(scaled, "f16", kind.layout, ops)
        attributes = {name: op.attributes[name] for name in op.attributes}
        made = tensor_of(op.results[0].type)
        operands = [op.operands[0], weights]
        sums = builder.op(op.name, operands, [tensor_type(made)], **attributes).result
        row = ((self.numbers * self.scales + self.given) * power).astype(np.float32)
        return ops.cast(plus(sums, row, ops), "f16")

    def settle(self, bounded: bool) -> None:
        super().settle(bounded)
        if attribute(self.product, TRANSPOSE_B, False):
            raise Unfit
        if np.abs(self.scales).max() * 2.0 ** (7 + self.shift) > LARGEST:
            raise Unfit


@dataclass
class OfFloats(OfHalves):
    """Sums of a convolution of floats that are rounded to f16 and whose range is not known.

    Attributes:
        image: its image, if that is integers; the weights then take what these count, if they
            have room for it.
    """

    image: IntegerImage | None = None

    def settle(self, bounded: bool) -> None:
        if bounded:
            raise Unfit
        sizes = np.abs(self.weights.astype(np.float64)).max(0)
        self._give_columns(len(sizes))
        for image in (self.image, None):
            self.image, self.step = image, 1.0 if image is None else image.step
            shift = shift_of_weights(sizes * np.abs(self.scales * self.step))
            if shift is not None:
                self.shift = shift
                return
        raise Unfit

    def _scaled(self, ops: TensorOps) -> ir.Value:
        if self.image is not None:
            self.image.settle()
        return super()._scaled(ops)


def shift_of(scales: Array, most: Array, results: Array, bounded: bool) -> int:
    """The least power of two by which scales become f16 without harm.

    Args:
        scales, most, results: of each column its scale, the largest sum, and the largest result.
        bounded: whether no result may leave the range of f16; else it saturates as bytes do.

    Raises:
        Unfit: there is none.
    """
    for shift in range(MOST_SHIFT + 1):
        power = 2.0**shift
        small = scales * power < NORMAL
        harm = most[small].max(initial=0.0) * LEAST / power
        within = not bounded or results.max(initial=0.0) * power <= LARGEST
        if harm <= ALLOWED and within and scales.max(initial=0.0) * power <= LARGEST:
            return shift
    raise Unfit


def shift_of_weights(largest: Array) -> int | None:
    """The least power of two, at most `MOST_SHIFT`, by which all weights of a matrix are scaled up
    before they are rounded to f16, so that no column loses more than f16's rounding.

    Args:
        largest: the largest absolute weight of each column.

    Returns:
        Its exponent s: 2^s times each of `largest` is at most `LARGEST`, and at least `FINE` where
        it is not 0. None if there is no such s.
    """
    for shift in range(MOST_SHIFT + 1):
        scaled = largest * 2.0**shift
        if scaled[scaled > 0].min(initial=1.0) >= FINE and scaled.max(initial=0.0) <= LARGEST:
            return shift
    return None


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
