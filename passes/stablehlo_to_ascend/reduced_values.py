"""Reductions along dimensions; of types that the vector unit does not reduce by way of others.

i1           as f16, back to what is not 0
i8, ui8      as i32; of sums and products the low byte
i64          sums of digits of 16 bits; extremes of the high halves, then of the low ones
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.mlir import ir
from davinci.operators.tensors import Tensor
from davinci.passes.ascend.tensor_ops import REINTERPRET, TensorOps
from davinci.passes.stablehlo_to_ascend.wider_integers import low_bits

BYTES = ("i8", "ui8")

LONG = frozenset({"f64", "i64"})
"""Types of 64 bits, whose bytes are read as either: no instruction makes one of the other."""

KINDS_OF_ORDER = ("max", "min")
"""Reductions whose result is one of the elements."""


def reduced_by(
    operand: ir.Value, kind: str, dims: Sequence[int], ops: TensorOps
) -> ir.Value | None:
    """A reduction; of types that the vector unit does not reduce by way of others, or None."""
    found = tensor_of(operand.type)
    if found.element == "i1":
        return ops.cast(ops.reduce(ops.cast(operand, "f16"), kind, dims), "i1")
    if found.element in BYTES:
        wide = ops.reduce(ops.cast(operand, "i32"), kind, dims)
        extreme = kind in KINDS_OF_ORDER
        return ops.cast(wide, found.element) if extreme else low_bits(wide, found.element, ops)
    if found.element != "i64":
        return ops.reduce(operand, kind, dims)
    return (
        long_extreme(operand, kind, dims, ops)
        if kind in KINDS_OF_ORDER
        else (long_sum(operand, dims, ops) if kind == "add" else None)
    )


DIGIT_BITS = 16
MOST_DIGITS = 1 << 15
"""Unsigned digits of 16 bits whose sum i32 holds."""


def long_sum(operand: ir.Value, dims: Sequence[int], ops: TensorOps) -> ir.Value | None:
    """The sum of i64: digits of 16 bits are summed as i32, and their sums put together.

    More values than i32 holds the digits' sum of are summed in two steps, along the first of
    several dimensions; None if there is but one.
    """
    shape = tensor_of(operand.type).shape
    if math.prod(shape[d] for d in dims) > MOST_DIGITS:
        if len(dims) == 1:
            return None
        inner = long_sum(operand, dims[:1], ops)
        rest = [d - (d > dims[0]) for d in dims[1:]]
        return None if inner is None else long_sum(inner, rest, ops)
    total: ir.Value | None = None
    for number in range(64 // DIGIT_BITS):
        half = operand if number < 2 else shifted(operand, "right", 2 * DIGIT_BITS, ops)
        word = ops.cast(half, "i32")
        digit = shifted(word, "right_logical", DIGIT_BITS, ops) if number % 2 else masked(word, ops)
        part = ops.cast(ops.reduce(digit, "add", dims), "i64")
        if number:
            part = shifted(part, "left", number * DIGIT_BITS, ops)
        total = part if total is None else ops.binary("add", total, part)
    return total


def masked(word: ir.Value, ops: TensorOps) -> ir.Value:
    """The lowest digit of i32."""
    lowest = ops.full(tensor_of(word.type).shape, "i32", (1 << DIGIT_BITS) - 1)
    return ops.binary("and", word, lowest)


def shifted(value: ir.Value, direction: str, count: int, ops: TensorOps) -> ir.Value:
    """Integers with their bits shifted, `direction` being "left", "right" or "right_logical"."""
    found = tensor_of(value.type)
    return ops.binary(f"shift_{direction}", value, ops.full(found.shape, found.element, count))


def seen_as(ops: TensorOps, x: ir.Value, element: str) -> ir.Value:
    """The bits of a tensor as elements of another type of that size."""
    found = tensor_of(x.type)
    if found.element == element:
        return x
    name = REINTERPRET if {found.element, element} <= LONG else "bitcast"
    return ops.emit(name, [x], replace(found, element=element))


def long_extreme(operand: ir.Value, kind: str, dims: Sequence[int], ops: TensorOps) -> ir.Value:
    """The largest or smallest i64: that of the high halves, then of the low ones that go with it.

    Low halves have no sign: as i32 they are in order with half of their range added."""
    found = tensor_of(operand.type)
    high = ops.cast(shifted(operand, "right", 32, ops), "i32")
    best = ops.reduce(high, kind, dims)
    kept = [d for d in range(found.rank) if d not in dims]
    same = ops.emit(
        "compare",
        [high, ops.broadcast(best, found.shape, kept)],
        Tensor(found.shape, "i1"),
        predicate="EQ",
    )
    lowest = -(1 << 31)
    half = ops.full(found.shape, "i32", lowest)
    low = ops.binary("add", ops.cast(operand, "i32"), half)
    last = ops.full(found.shape, "i32", lowest if kind == "max" else -1 - lowest)
    low = ops.emit("select", [same, low, last], Tensor(found.shape, "i32"))
    low = ops.reduce(low, kind, dims)
    left = tensor_of(low.type).shape
    low = ops.cast(ops.binary("add", low, ops.full(left, "i32", lowest)), "i64")
    low = ops.binary("and", low, ops.full(left, "i64", (1 << 32) - 1))
    return ops.binary("or", shifted(ops.cast(best, "i64"), "left", 32, ops), low)


def neutral(kind: str, dtype: np.dtype[Any]) -> float | int:
    """The value that a reduction starts from."""
    if kind in ("add", "mul"):
        return int(kind == "mul")
    if dtype.kind == "b":
        return kind == "min"
    if dtype.kind == "f":
        return np.inf if kind == "min" else -np.inf
    return np.iinfo(dtype).max if kind == "min" else np.iinfo(dtype).min
