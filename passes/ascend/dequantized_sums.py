"""Sums of products of bytes, times a scale for each column: how they are computed in steps.

Bytes are multiplied as they are where they lie so that the cube takes them, and sums are scaled on
their way out of L0C; else they have become f16, and weights are scaled.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace

import numpy as np

from davinci.dialects.ascend_types import tensor_of, tensor_type
from davinci.dialects.base import attribute
from davinci.elements import Array
from davinci.mlir import Op, ir, owner_of
from davinci.operators.products import TRANSPOSE_B
from davinci.operators.quantize import digits_of, words_of
from davinci.operators.tensors import ND, NZ, Tensor
from davinci.passes import builder
from davinci.passes.ascend.dequantized_parts import (
    LARGEST,
    LEAST,
    NORMAL,
    STEPS,
    Number,
    QuantizedPart,
    Unfit,
    constant,
    full,
    plus,
    spread,
)
from davinci.passes.ascend.integer_images import IntegerImage
from davinci.passes.ascend.tensor_ops import (
    DEQUANTIZE,
    SCALE_SUMS,
    TensorOps,
    constant_array,
    definition,
)

MOST_BLOCKS = 4
"""Blocks of 32 digits that the cube may add to a sum."""

MOST_NUMBER = 2.0**30
"""Numbers beside sums are smaller, so that i32 has room for both."""

MOST_SHIFT = 7
"""Results are scaled up by at most 2 to the power of this: 255 steps still are f16."""

ALLOWED = 1 / 8
"""Steps that the rounding of a small scale may move a result by."""

FINE = 2.0**-8
"""The least that the largest weight of a column may become: f16 then rounds as well as any."""

DEAD_SCALE = 2.0**-6
"""The scale given to columns whose weights are all 0, for which any would do."""


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
        """The value as f16, in the shape and layout of the product's result."""
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
        self.shift = self._shift_of(sizes, bounded)

    def _shift_of(self, sizes: Array, bounded: bool) -> int:
        """The least power of two by which scales are scaled up to become f16.

        Args:
            sizes: of each column the sum of its weights' absolute values.
            bounded: as in `settle`.
        """
        scales, most = np.abs(self.scales), STEPS * sizes
        return shift_of(scales, most, most * scales + np.abs(self.given), bounded)

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
class OfFixpipe(OfBytes):
    """Sums of products of bytes that fixpipe scales, by f32, of which none is too small.

    Attributes:
        beside: the integers, with what was taken among them, that mads begin with.
        to_rows: whether it leaves L0C in rows, however the product was to lie.
    """

    beside: Array = field(default_factory=lambda: np.zeros(1))
    to_rows: bool = False

    @property
    def tensor(self) -> Tensor:
        return replace(super().tensor, layout=ND) if self.to_rows else super().tensor

    @property
    def by_fixpipe(self) -> bool:
        return True

    @property
    def leaves_in_rows(self) -> bool:
        return True

    def go_to_rows(self) -> None:
        self.to_rows = True

    def settle(self, bounded: bool) -> None:
        ScaledSums.settle(self, bounded)
        self.beside = np.rint(self.numbers + self.given / self.scales)
        if np.abs(self.beside).max(initial=0) >= MOST_NUMBER:
            raise Unfit

    def _shift_of(self, sizes: Array, bounded: bool) -> int:
        results = STEPS * sizes * np.abs(self.scales) + np.abs(self.given)
        if bounded and results.max(initial=0.0) > LARGEST:
            raise Unfit
        return 0

    def _scaled(self, ops: TensorOps) -> ir.Value:
        return self._leave(ops, "f16")

    def leave(
        self, ops: TensorOps, element: str, *, relu: bool = False, offset: int = 0
    ) -> ir.Value | None:
        """As of `QuantizedPart`: fixpipe does the relu before it scales, so no scale may change the
        sign."""
        if relu and np.any(self.scales < 0):
            return None
        return self._leave(ops, element, relu, offset)

    def _leave(self, ops: TensorOps, element: str, relu: bool = False, offset: int = 0) -> ir.Value:
        """Builds it as f16, or as the bytes that steps count, plus an offset; before, the sums may
        pass a relu."""
        op, given = self.product, tensor_of(self.product.results[0].type)
        attributes = {name: op.attributes[name] for name in op.attributes}
        kind = tensor_type(replace(given, layout=self.tensor.layout))
        sums: ir.Value = builder.op(op.name, op.operands, [kind], **attributes).result
        if np.any(self.beside):
            row = constant(self.beside, "i32", ND, ops)
            sums = ops.binary("add", sums, spread(row, tensor_of(sums.type)))
        words = constant(words_of(self.scales, offset), "i32", ND, ops)
        made = tensor_type(replace(self.tensor, element=element))
        flag = {"relu": builder.as_attribute(True)} if relu else {}
        new: ir.Value = builder.op(SCALE_SUMS, [sums, words], [made], **flag).result
        return ops.reshape(new, tensor_of(self.value.type).shape)


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
