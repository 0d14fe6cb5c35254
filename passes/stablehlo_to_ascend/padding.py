"""Padding around arrays and between their elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.elements import Array, to_array
from davinci.mlir import Op, ir
from davinci.operators.parts import pad_shape
from davinci.operators.tensors import Tensor
from davinci.passes.ascend.tensor_ops import TensorOps
from davinci.units import BLOCK_BYTES


def edges_of(op: Op, rank: int) -> Array:
    """[rank, 2]: elements in front of and behind each dimension; negative ones are cut off."""
    if "padding" not in op.attributes:
        return np.zeros((rank, 2), np.int64)
    return to_array(op.attributes["padding"]).reshape(rank, 2)


def padded(
    operand: ir.Value,
    value: ir.Value,
    low: Sequence[int],
    high: Sequence[int],
    interior: Sequence[int],
    ops: TensorOps,
) -> ir.Value:
    """An operand with `low` values before, `high` after and `interior` between the elements of
    each dimension; itself where nothing is added or cut off."""
    found, places = tensor_of(operand.type), PadPlaces(list(low), list(high), list(interior))
    for dim in reversed(range(found.rank)):
        behind = math.prod(found.shape[dim + 1 :]) * found.bytes_each
        if found.count and interior[dim] and found.shape[dim] > 1 and behind % BLOCK_BYTES:
            operand = drawn_apart(operand, value, dim, places.taken(dim), ops)
    return edged(operand, value, places, ops)


@dataclass(frozen=True)
class PadPlaces:
    """Elements that a pad puts before, behind and between those of each dimension."""

    low: list[int]
    high: list[int]
    interior: list[int]

    def taken(self, dim: int) -> tuple[int, int, int]:
        """Removes what is padded along one dimension and returns it: low, high, interior."""
        found = self.low[dim], self.high[dim], self.interior[dim]
        self.low[dim] = self.high[dim] = self.interior[dim] = 0
        return found


def drawn_apart(
    operand: ir.Value, value: ir.Value, dim: int, places: tuple[int, int, int], ops: TensorOps
) -> ir.Value:
    """A pad along one dimension with values between its elements, where what lies behind an element
    is not whole blocks.

    Each element becomes a row of its own, with all that lies behind it, and is padded in front and
    behind; such rows are moved by words however many there are. Then come the ends of the
    dimension.
    """
    low, high, between = places
    found = tensor_of(operand.type)
    first, size, last = found.shape[:dim], found.shape[dim], found.shape[dim + 1 :]
    each = math.prod(last)
    ahead = max(0, min(low, between))
    behind = between - ahead
    rows = ops.reshape(operand, [*first, size, each])
    rows = edged(rows, value, last_only(dim + 2, ahead * each, behind * each), ops)
    lines = ops.reshape(rows, [*first, size * (1 + between) * each])
    ends = last_only(dim + 1, (low - ahead) * each, (high - behind) * each)
    lines = edged(lines, value, ends, ops)
    return ops.reshape(lines, [*first, tensor_of(lines.type).shape[-1] // each, *last])


def last_only(rank: int, low: int, high: int) -> PadPlaces:
    """PadPlaces of the last of `rank` dimensions."""
    none = [0] * rank
    return PadPlaces([*none[1:], low], [*none[1:], high], none)


def edged(operand: ir.Value, value: ir.Value, places: PadPlaces, ops: TensorOps) -> ir.Value:
    """A padded operand; itself where nothing is added or cut off."""
    low, high, interior = places.low, places.high, places.interior
    found = tensor_of(operand.type)
    shape = pad_shape(found.shape, low, high, interior)
    if shape == found.shape and not any((*low, *high)):
        return operand
    result = Tensor(shape, found.element)
    return ops.emit("pad", [operand, value], result, low=low, high=high, interior=interior)
