"""Products of matrices of integers, modulo 2^32 or 2^64.

    bytes, the right ones known    a product of bytes as the cube has it
    few of them                    a product and a sum over k of the vector unit
    others                         products of digits of 8 bits, which f16 holds and f32 sums

Of a = a0 + 2^8 a1 + 2^16 a2 + .. and b the product is

    a0 b0 + 2^8 (a0 b1 + a1 b0) + 2^16 (a0 b2 + a1 b1 + a2 b0) + ..

whose places are sums of blocks of [a0; a1; ..] [b0 b1 ..], or products along k of their own:
[a0 a1] [b1; b0], and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.elements import Array
from davinci.mlir import ir
from davinci.operators.products import product_name
from davinci.operators.tensors import Tensor, width_of
from davinci.passes.ascend.rearrangement import REARRANGED
from davinci.passes.ascend.tensor_ops import TensorOps, constant_array, defining_op, definition
from davinci.passes.stablehlo_to_ascend.reduced_values import reduced_by, shifted
from davinci.passes.stablehlo_to_ascend.wider_integers import low_bits, lowest
from davinci.units import BLOCK_BYTES
from davinci.units import FRACTAL_SIDE as SIDE

EXACT_SUM = 1 << 24
"""f32 holds whole numbers up to this one, and so every partial sum of products up to it."""

DIGIT_BITS = 8

MOST_TERMS = 1 << 15
"""Products of integers in a product of matrices up to which the vector unit takes less time for
them than the cube for those of digits, several whatever the size (910: 32x32x32 of i64 7,928 cycles
for 12,021, of i32 2,245 for 5,577; 64x64x64 of i64 25,883 for 17,849)."""

Places = Sequence[Sequence[tuple[int, int]]]
"""For each place of a result, the numbers of the digits of both factors whose products make it."""


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
        made = product_of_digits(left, right, result, ops)
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


def product_of_digits(left: ir.Value, right: ir.Value, result: Tensor, ops: TensorOps) -> ir.Value:
    """The low bits of a product as i32 or i64: one product of all digits where columns are whole
    fractals, so that blocks begin with one, or one for each place of the result, whichever has
    fewer digits and sums to hand over (of i32 on the 910, 256x256x256 takes 19,370 cycles for
    20,687, 1024x64x1024 137,797 for 32,397)."""
    (*_, m, k), n = tensor_of(left.type).shape, result.shape[-1]
    count_a, count_b = (digit_count(tensor_of(x.type).element) for x in (left, right))
    places = [
        [(i, place - i) for i in range(count_a) if 0 <= place - i < count_b]
        for place in range(min(width_of(result.element) // DIGIT_BITS, count_a + count_b - 1))
    ]
    of_all = k * (m * count_a + n * count_b) + m * n * count_a * count_b
    of_places = k * (m + n) * sum(map(len, places)) + m * n * len(places)
    sums = sums_of_blocks if n % SIDE == 0 and of_all <= of_places else products_of_places
    total: ir.Value | None = None
    for place, found in enumerate(sums(left, right, places, result, ops)):
        part = ops.cast(found, word_of(result))
        part = shifted(part, "left", place * DIGIT_BITS, ops) if place else part
        total = part if total is None else ops.binary("add", total, part)
    assert total is not None, "a product has a lowest place"
    return total


def digit_count(element: str) -> int:
    """The number of digits into which `digits_of` cuts integers of a type."""
    return width_of(element) // DIGIT_BITS


def sums_of_blocks(
    left: ir.Value, right: ir.Value, places: Places, result: Tensor, ops: TensorOps
) -> Iterator[ir.Value]:
    """The sum of each place, of blocks of one product of all digits:

    [a0; a1; ..] [b0 b1 ..] = [a0 b0, a0 b1, ..; a1 b0, a1 b1, ..; ..]
    """
    *outer, m, n = result.shape
    zeros, rank = [0] * len(outer), result.rank
    a, b = digits_of(left, ops), digits_of(right, ops)
    factors = ops.concat(a.values, rank - 2), ops.concat(b.values, rank - 1)
    summed = sums_of(a, b, places, result)
    whole = replace(summed, shape=(*outer, m * len(a.values), n * len(b.values)))
    product = exact_product(*factors, whole, EXACT_SUM // (a.most * b.most), ops)
    for pairs in places:
        blocks = [
            ops.cut(product, [*zeros, i * m, j * n], [*outer, (i + 1) * m, (j + 1) * n])
            for i, j in pairs
        ]
        yield reduce(partial(ops.binary, "add"), blocks)


def products_of_places(
    left: ir.Value, right: ir.Value, places: Places, result: Tensor, ops: TensorOps
) -> Iterator[ir.Value]:
    """The sum of each place, as a product of the pairs of digits behind each other along k."""
    a, b = digits_of(left, ops), digits_of(right, ops)
    summed = sums_of(a, b, places, result)
    for pairs in places:
        factors = (
            ops.concat([a.values[i] for i, _ in pairs], result.rank - 1),
            ops.concat([b.values[j] for _, j in pairs], result.rank - 2),
        )
        yield exact_product(*factors, summed, EXACT_SUM // (a.most * b.most), ops)


def sums_of(a: FactorDigits, b: FactorDigits, places: Places, result: Tensor) -> Tensor:
    """A result as the sums of its places are: in i32 where that holds the largest of them."""
    k = tensor_of(a.values[0].type).shape[-1]
    largest = k * max(map(len, places)) * a.most * b.most
    return replace(result, element="i32" if largest < 1 << 31 else word_of(result))


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
