"""Conversion of `stablehlo.dot_general` to matmul or batch_matmul on row-major matrices.

    lhs [batch.., m.., k..] x rhs [batch.., k.., n..] -> [batch.., m.., n..]

Dimensions are brought into this order by transposes and merged by reshapes. A right side that is
the same for the whole batch (a weight) makes one large matmul of it. Integers are multiplied digit
by digit: C modulo 2^32 (or 2^64) of a = a0 + 2^8 a1 + .. and b is

    a0 b0 + 2^8 [a0 a1] [b1; b0] + 2^16 [a0 a1 a2] [b2; b1; b0] + ..
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.elements import Array
from davinci.mlir import Op, ir, stablehlo
from davinci.operators.products import FACTORS, product_name
from davinci.operators.tensors import Tensor, width_of
from davinci.passes.ascend.rearrangement import REARRANGED
from davinci.passes.ascend.tensor_ops import (
    TensorOps,
    constant_array,
    defining_op,
    definition,
)
from davinci.passes.stablehlo_to_ascend import conversion
from davinci.passes.stablehlo_to_ascend.reduced_values import reduced_by, shifted
from davinci.passes.stablehlo_to_ascend.small_products import small_products
from davinci.passes.stablehlo_to_ascend.wider_integers import low_bits, lowest
from davinci.units import BLOCK_BYTES

EXACT_SUM = 1 << 24
"""f32 holds whole numbers up to this one, and so every partial sum of products up to it."""

INTEGERS = ("i8", "ui8", "i16", "i32", "i64")

DIGIT_BITS = 8

MOST_TERMS = 1 << 15
"""Products of integers in a product of matrices up to which the vector unit takes less time for
them than the cube for those of digits, several whatever the size (910: 32x32x32 of i64 7,928 cycles
for 10,341, of i32 2,245 for 5,159; 64x64x64 of i64 25,883 for 13,785)."""


@conversion("dot_general")
def convert_dot_general(op: Op, ops: TensorOps) -> Sequence[ir.Value] | None:
    """A matmul or batch_matmul with what brings its operands to rows; None if the cube cannot."""
    lhs, rhs = op.operands
    a, b = tensor_of(lhs.type), tensor_of(rhs.type)
    result = tensor_of(op.results[0].type)
    integers = all(t.element in INTEGERS for t in (a, b, result))
    if not integers and (a.element not in FACTORS or a.element != b.element):
        return None
    if not integers and result.element not in (a.element, {"f16": "f32"}.get(a.element)):
        return None
    if 0 in (a.count, b.count):
        return [ops.full(result.shape, result.element, 0)]
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    batch_a, batch_b = (
        list(numbers.lhs_batching_dimensions),
        list(numbers.rhs_batching_dimensions),
    )
    inner_a, inner_b = (
        list(numbers.lhs_contracting_dimensions),
        list(numbers.rhs_contracting_dimensions),
    )
    rows = [i for i in range(a.rank) if i not in batch_a + inner_a]
    columns = [i for i in range(b.rank) if i not in batch_b + inner_b]
    batch, m, k, n = (
        math.prod(t.shape[i] for i in dims)
        for t, dims in ((a, batch_a), (a, rows), (a, inner_a), (b, columns))
    )
    weight = unbatched(rhs, batch_b) if batch > 1 else None
    left = ops.transpose(lhs, [*batch_a, *rows, *inner_a])
    if weight is not None:
        source, dims = weight
        right = ops.transpose(source, [dims.index(i) for i in [*inner_b, *columns]])
        m, batch = batch * m, 1
    else:
        right = ops.transpose(rhs, [*batch_b, *inner_b, *columns])
    outer = [] if batch == 1 else [batch]
    left, right = ops.reshape(left, [*outer, m, k]), ops.reshape(right, [*outer, k, n])
    shape = (*outer, m, n)
    if integers:
        product = integer_product(left, right, Tensor(shape, result.element), ops)
    else:
        made = Tensor(shape, result.element)
        small = small_products(left, right, made, ops) if outer else None
        product = small or ops.emit(product_name(len(shape)), [left, right], made)
    return [ops.reshape(product, result.shape)]


def integer_product(left: ir.Value, right: ir.Value, result: Tensor, ops: TensorOps) -> ir.Value:
    """The product of matrices of integers; as products of digits in f16 where they are no bytes,
    the right one is computed, or rows of the left one are no whole blocks. Of integers of several
    digits the vector unit takes few products as they are.

    The cube takes bytes whose rows k runs along. No load turns fractals of them, so the right
    matrix is turned at compile time; and only the scalar unit puts bytes elsewhere in a block.
    """
    known, inner = known_array(right), tensor_of(left.type).shape[-1]
    elements = {tensor_of(left.type).element, tensor_of(right.type).element}
    if elements == {"i8"} and known is not None and inner % BLOCK_BYTES == 0:
        turned = np.swapaxes(known, -1, -2)
        operands = [left, ops.constant(np.ascontiguousarray(turned), "i8")]
        word = replace(result, element="i32")
        made = ops.emit(product_name(result.rank), operands, word, transpose_b=True)
    elif {"i32", "i64"} & elements and result.count * inner <= MOST_TERMS:
        made = sum_of_terms(left, right, result, ops)
    else:
        made = product_of_digits(digits_of(left, ops), digits_of(right, ops), result, ops)
    return low_bits(made, result.element, ops)


def sum_of_terms(left: ir.Value, right: ir.Value, result: Tensor, ops: TensorOps) -> ir.Value:
    """The low bits of a product as i32 or i64: the sum over k of [.., m, k, n] products."""
    word = word_of(result)
    rank, k = result.rank, tensor_of(left.type).shape[-1]
    shape = (*result.shape[:-1], k, result.shape[-1])
    outer = range(rank - 2)
    wide = [ops.cast(x, word) for x in (left, right)]
    a = ops.broadcast(wide[0], shape, [*outer, rank - 2, rank - 1])
    b = ops.broadcast(wide[1], shape, [*outer, rank - 1, rank])
    total = reduced_by(ops.binary("mul", a, b), "add", [rank - 1], ops)
    assert total is not None, "so few terms that one sum takes them"
    return total


def word_of(result: Tensor) -> str:
    """The type in which a product of integers is summed."""
    return "i64" if result.element == "i64" else "i32"


@dataclass(frozen=True)
class FactorDigits:
    """The digits of integers, the lowest first: each as f16, of at most this magnitude."""

    values: list[ir.Value]
    most: int


def digits_of(x: ir.Value, ops: TensorOps) -> FactorDigits:
    """The digits of integers, of 8 bits from -128 to 127, but for the highest: what is above them
    has carried over."""
    element = tensor_of(x.type).element
    if element == "ui8":
        return FactorDigits([ops.cast(x, "f16")], 255)
    if element == "i64":
        # The low half has a sign as i32, which the high one makes up for.
        low, high = ops.cast(x, "i32"), ops.cast(shifted(x, "right", 32, ops), "i32")
        carried = ops.binary("add", high, shifted(low, "right_logical", 31, ops))
        halves = [digits_of(half, ops).values for half in (low, carried)]
        return FactorDigits([*halves[0], *halves[1]], 128)
    values: list[ir.Value] = []
    word = x
    for _ in range(width_of(element) // DIGIT_BITS - 1):
        word = ops.cast(word, "i32")
        digit = lowest(word, DIGIT_BITS, True, ops)
        values.append(ops.cast(digit, "f16"))
        word = shifted(ops.binary("sub", word, digit), "right", DIGIT_BITS, ops)
    return FactorDigits([*values, ops.cast(word, "f16")], 128)


def product_of_digits(a: FactorDigits, b: FactorDigits, result: Tensor, ops: TensorOps) -> ir.Value:
    """The low bits of a product as i32 or i64: for each place of the result one product, of all
    pairs of digits that make it behind each other along k."""
    word = replace(result, element=word_of(result))
    total: ir.Value | None = None
    for place in range(min(width_of(result.element) // DIGIT_BITS, len(a.values + b.values) - 1)):
        firsts = [i for i in range(len(a.values)) if 0 <= place - i < len(b.values)]
        left = ops.concat([a.values[i] for i in firsts], result.rank - 1)
        right = ops.concat([b.values[place - i] for i in firsts], result.rank - 2)
        product = exact_product(left, right, word, EXACT_SUM // (a.most * b.most), ops)
        if total is None:
            total = product
        else:
            total = ops.binary("add", total, shifted(product, "left", place * DIGIT_BITS, ops))
    assert total is not None, "a product has a lowest place"
    return total


def exact_product(
    left: ir.Value, right: ir.Value, result: Tensor, most: int, ops: TensorOps
) -> ir.Value:
    """The product of whole numbers in f16, of which f32 sums so many products exactly."""
    *outer, m, k = tensor_of(left.type).shape
    n, zeros = result.shape[-1], [0] * len(outer)
    total: ir.Value | None = None
    for start in range(0, k, most):
        end = min(k, start + most)
        operands = [
            ops.cut(left, [*zeros, 0, start], [*outer, m, end]),
            ops.cut(right, [*zeros, start, 0], [*outer, end, n]),
        ]
        product = ops.emit(product_name(result.rank), operands, replace(result, element="f32"))
        exact = ops.cast(ops.cast(product, "i32"), result.element)
        total = exact if total is None else ops.binary("add", total, exact)
    return ops.full(result.shape, result.element, 0) if total is None else total


def known_array(value: ir.Value) -> Array | None:
    """The elements of a constant, also of one that is turned or reshaped first, as a weight with an
    output channel a row is; None if they are not known."""
    if (owner := definition(value)) is not None:
        return constant_array(owner)
    moved = defining_op(value)
    if moved is None or moved.name not in REARRANGED:
        return None
    source = known_array(moved.operands[0])
    if source is None:
        return None
    if moved.name == "ascend.reshape":
        return source.reshape(tensor_of(value.type).shape)
    return source.transpose(attribute(moved, "permutation"))


def unbatched(value: ir.Value, batch: list[int]) -> tuple[ir.Value, list[int]] | None:
    """What `value` repeats along all `batch` dimensions, with the dimension each of its own is."""
    owner = defining_op(value)
    if owner is None or owner.name != "ascend.broadcast":
        return None
    source, dims = owner.operands[0], attribute(owner, "dims")
    shape, whole = tensor_of(source.type).shape, tensor_of(value.type).shape
    if any(shape[i] != 1 for i, d in enumerate(dims) if d in batch):
        return None
    if any(shape[i] != whole[d] for i, d in enumerate(dims) if d not in batch):
        return None
    kept = [d for d in dims if d not in batch]
    if len(kept) != len(whole) - len(batch):
        return None
    if len(kept) != len(dims):
        return None
    return source, kept
