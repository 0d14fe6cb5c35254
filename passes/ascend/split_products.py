"""Products of f32 matrices on a cube that takes f16 only: several products of f16 parts.

    h[i]  = a power of two that brings the largest |A[i, :]| h[i] h[i] to [2^13, 2^15)
    A'    = A h h                                 exact; likewise B' with a power for each column
    A'    = A0 + A1 + A2 + error                  each part the f16 nearest to what is left
    C'    = A0 B0 + ((A1 B0 + A0 B1) + (A2 B0 + A1 B1 + A0 B2))
    C     = C' G G,  G[i, j] = 1 / (hA[i] hB[j])  exact, unless C leaves the range of f32

Three f16 have 33 bits for the 24 of an f32, so A' is exactly its parts, but for what lies below
2^-25: 2^-38 of the largest of its row. With sums in f32, u = 2^-24:

    |error of C[i, j]| <= (k + 8) u sum_p |A[i, p] B[p, j]| + k 2^-37 max|A[i, :]| max|B[:, j]|

The first term is that of a dot product in f32. The second one matters only where values small
beside others of their row meet large ones of a column of small ones: it is absolute.

Infinities and NaN stay in part 0: where A0 B0 is not finite it is the result, since the other
products would make NaN of inf - inf. An infinity times a value below 2^-38 of the largest of its
row or column, not zero, is NaN instead of an infinity.

Constants are split at compile time and lose the parts that are zero; what is f16 is its own part.
Halving the exponent in h keeps every factor in the range of f32, also for subnormals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.elements import Array
from davinci.mlir import Op, ir
from davinci.operators.conversion import part_of, scale_of
from davinci.operators.tensors import Tensor
from davinci.passes.ascend.tensor_ops import CONVOLUTION, HALF, TensorOps, defining_op

PARTS = 3
"""f16 values that an f32 is the sum of."""


@dataclass(frozen=True)
class F16Parts:
    """A matrix as a sum of f16 matrices.

    Attributes:
        halves: the parts, largest first.
        back: what undoes half of the scaling, one value a row of A or column of B; None if
            nothing is scaled.
    """

    halves: list[ir.Value]
    back: ir.Value | None


@dataclass(frozen=True)
class Kept:
    """What is not summed over of an operand of a product.

    Attributes:
        dims: its dimensions.
        result: those of the result that they are, joined where they are more.
    """

    dims: list[int]
    result: list[int]

    def spread(self, values: ir.Value, result: Tensor, ops: TensorOps) -> ir.Value:
        """One value for each index of the kept dimensions, as an array of the result's shape.
        Values behind the last column of a result are left out: of a ragged last group."""
        sizes, count = [result.shape[dim] for dim in self.result], tensor_of(values.type).count
        if count > math.prod(sizes):
            values = ops.cut(ops.reshape(values, [count]), [0], [math.prod(sizes)])
        return ops.broadcast(ops.reshape(values, sizes), result.shape, self.result)


def kept_dimensions(op: Op) -> tuple[Kept, Kept]:
    """The dimensions of both operands that have scales of their own; windows of a convolution share
    pixels, so an image has but one scale."""
    if op.name == CONVOLUTION:
        return Kept([0], [0]), Kept([0, 2], [2])
    rank = tensor_of(op.result.type).rank
    batch = list(range(rank - 2))
    rows, columns = [*batch, rank - 2], [*batch, rank - 1]
    return Kept(rows, rows), Kept(columns, columns)


def split_product(op: Op, constants: list[Array | None]) -> None:
    """Replaces a product of f32 by products of f16.

    Args:
        op: a matmul, batch_matmul or conv of row-major f32 arrays.
        constants: the elements of each operand that is known.
    """
    a, b = op.operands
    result = tensor_of(op.result.type)
    rows, columns = kept_dimensions(op)
    name = op.name.removeprefix("ascend.")
    with op.location, ir.InsertionPoint(op):
        ops = TensorOps()
        left = parts_of(a, constants[0], rows.dims, ops)
        right = parts_of(b, constants[1], columns.dims, ops)
        attributes = {key: op.attributes[key] for key in op.attributes}
        total = sum_of_products(name, left.halves, right.halves, result, ops, attributes)
        backs = [
            kept.spread(parts.back, result, ops)
            for parts, kept in ((left, rows), (right, columns))
            if parts.back is not None
        ]
        if backs:
            factor = backs[0] if len(backs) == 1 else ops.binary("mul", *backs)
            total = ops.binary("mul", ops.binary("mul", total, factor), factor)
    op.result.replace_all_uses_with(total)
    op.erase()


def parts_of(value: ir.Value, known: Array | None, kept: list[int], ops: TensorOps) -> F16Parts:
    """Splits an operand.

    Args:
        kept: dimensions along which values have scales of their own.
    """
    owner = defining_op(value)
    if owner is not None and owner.name == "ascend.cast":
        source = owner.operands[0]
        if tensor_of(source.type).element == HALF:
            return F16Parts([source], None)
    if known is not None:
        return constant_parts(known, kept, ops)
    scaled, back = scaled_at_run_time(value, kept, ops)
    part = Tensor(tensor_of(value.type).shape, HALF)
    halves = [ops.emit("half_part", [scaled], part, part=i) for i in range(PARTS)]
    return F16Parts(halves, back)


def scaled_at_run_time(
    value: ir.Value, kept: list[int], ops: TensorOps
) -> tuple[ir.Value, ir.Value]:
    """A computed operand times h h, for each row or column the h of the head of the module; and
    1 / h, one number each."""
    found = tensor_of(value.type)
    contracted = [i for i in range(found.rank) if i not in kept]
    largest = ops.reduce(ops.unary("abs", value), "max", contracted)
    scale = ops.unary("cube_scale", largest)
    spread = ops.broadcast(scale, found.shape, kept)
    scaled = ops.binary("mul", ops.binary("mul", value, spread), spread)
    one = ops.full(tensor_of(scale.type).shape, found.element, 1.0)
    return scaled, ops.binary("div", one, scale)


def constant_parts(array: Array, kept: list[int], ops: TensorOps) -> F16Parts:
    """Splits a constant at compile time."""
    with np.errstate(all="ignore"):
        if np.array_equal(array.astype(np.float16).astype(np.float32), array):
            return F16Parts([ops.constant(array.astype(np.float16), HALF)], None)
        contracted = tuple(i for i in range(array.ndim) if i not in kept)
        scale = scale_of(np.max(np.abs(array), axis=contracted, keepdims=True))
        scaled = array * scale * scale
        parts = [part_of(scaled, part=i) for i in range(PARTS)]
    back = np.squeeze(1 / scale, axis=contracted)
    halves = [ops.constant(x, HALF) for i, x in enumerate(parts) if i == 0 or x.any()]
    return F16Parts(halves, ops.constant(back, "f32"))


def sum_of_products(
    name: str,
    left: list[ir.Value],
    right: list[ir.Value],
    result: Tensor,
    ops: TensorOps,
    attributes: dict[str, Any],
) -> ir.Value:
    """The products of parts that f32 does not lose, the small ones added up first."""

    def multiplied(pair: tuple[int, int]) -> ir.Value:
        return ops.emit(name, [left[pair[0]], right[pair[1]]], result, **attributes)

    pairs = [(i, j) for i, j in product(range(len(left)), range(len(right))) if i + j < PARTS]
    largest, *others = sorted(pairs, key=sum)
    whole = multiplied(largest)
    if not others:
        return whole
    rest = multiplied(others[-1])
    for pair in reversed(others[:-1]):
        rest = ops.binary("add", multiplied(pair), rest)
    truth = Tensor(result.shape, "i1")
    limit = ops.full(result.shape, result.element, np.inf)
    finite = ops.emit("compare", [ops.unary("abs", whole), limit], truth, predicate="LT")
    return ops.emit("select", [finite, ops.binary("add", whole, rest), whole], result)
