"""Floats to bytes, as QuantizeLinear of ONNX has it once they are scaled, and back from sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from davinci.element_types import dtype_of
from davinci.errors import require
from davinci.isa.quantize import SCALE_MASK, quantised, word
from davinci.operators.call import Call
from davinci.operators.constraints import same_shape
from davinci.operators.conversion import saturated
from davinci.operators.core import FLOATS, Array, elementwise, operator
from davinci.operators.layouts import any_layout
from davinci.operators.tensors import Tensor
from davinci.operators.vector_program import DTYPE_OF, Value, VectorProgram
from davinci.operators.windows import WindowDim, Windows, axes_of_result, in_order, whole
from davinci.operators.work import computed

QUANTIZED = ("i8", "ui8")
"""Element types of the result."""

WHOLE = 1.5 * 2.0**23
"""f32 of this size have no places behind the point: to add it rounds, halves to even."""


def values_of(x: Array, *, zero: int, result: Tensor) -> Any:
    """As NumPy has it."""
    return saturated(np.rint(x.astype(np.float64)) + zero, dtype_of(result.element))


def from_float_to_bytes(call: Call) -> None:
    """The operand is f32 or f16, the result i8 or ui8, `zero` one of its numbers."""
    (given,), (made,) = call.inputs, call.outputs
    require(given.element in ("f32", "f16"), "element type", given.element, "f32 or f16")
    require(made.element in QUANTIZED, "element type of the result", made.element, "i8 or ui8")
    limits, zero = np.iinfo(dtype_of(made.element)), call.integer("zero")
    within = limits.min <= zero <= limits.max
    require(within, "zero", zero, f"{limits.min}..{limits.max}")


@elementwise(
    values=values_of,
    types=FLOATS | frozenset(QUANTIZED),
    constraints=(same_shape, from_float_to_bytes),
)
def quantize(p: VectorProgram, a: Value, *, zero: int, result: Tensor) -> Value:
    """a, rounded to the nearest whole number, halves to even, plus `zero`; saturates, NaN gives 0.

    Numbers of 2^22 and more are not rounded, but they saturate.
    """
    if a.dtype == "f16" and zero == 0:
        return p.convert(a, DTYPE_OF[result.element])
    wide = p.add(p.add(p.convert(a, "f32"), WHOLE), zero - WHOLE)
    # Whole numbers that f16 does not hold are beyond those of bytes, and stay so.
    return p.convert(p.convert(wide, "f16"), DTYPE_OF[result.element])


DIGIT = 127
"""What a digit counts, but for the first of each block, which counts 1."""

DIGITS = 32
"""Digits of a block, which is a fractal's row of bytes."""


def weights_of_digits(count: int) -> Array:
    """What each of `count` digits counts, i32."""
    weights = np.full(count, DIGIT, np.int32)
    weights[::DIGITS] = 1
    return weights


def digits_of(numbers: Array, most_blocks: int) -> Array | None:
    """Integers as the digits that `dequantize` takes, i8 [n, 32 blocks]; None if so many blocks
    do not hold them."""
    rest = np.rint(numbers / DIGIT).astype(np.int64)
    first = numbers.astype(np.int64) - DIGIT * rest
    most = DIGIT * (DIGITS - 1)
    blocks = max(1, -(-int(np.abs(rest).max(initial=0)) // most))
    if blocks > most_blocks:
        return None
    made = np.zeros((len(numbers), blocks * DIGITS), np.int8)
    made[:, 0] = first
    for place in range(blocks * DIGITS):
        if place % DIGITS:
            made[:, place] = rest.clip(-DIGIT, DIGIT)
            rest -= made[:, place]
    return made


def of_products_of_bytes(call: Call) -> None:
    """The sums are i32 [.., n], the scales f16 [n], the digits i8 [n, 32 t], the result is f16 of
    the sums' shape and layout."""
    sums, scales, digits = call.inputs
    require(sums.element == "i32" and sums.rank > 0, "element type of sums", sums.element, "i32")
    n = sums.shape[-1] if sums.rank else 0
    found = scales.element, list(scales.shape)
    require(found == ("f16", [n]), "scales", f"{found[1]} {found[0]}", f"[{n}] f16")
    legal = digits.element == "i8" and digits.rank == 2 and digits.shape[0] == n
    legal = legal and digits.shape[1] % DIGITS == 0 and digits.shape[1] > 0
    found = digits.element, list(digits.shape)
    require(legal, "digits", f"{found[1]} {found[0]}", f"[{n}, a multiple of {DIGITS}] i8")
    call.expect_output(sums.shape, "f16")
    layout = call.outputs[0].layout
    require(layout == sums.layout, "layout of the result", layout, sums.layout)


def rows_beside(call: Call) -> Windows:
    """Windows of sums with a scale and digits a column: of both those of the part's columns are
    read."""
    sums, _, digits = call.inputs
    dims, last = in_order(sums.rank), WindowDim(sums.rank - 1)
    return Windows(axes_of_result(call), dims, (dims, (last,), (last, whole(digits.shape[1]))))


@operator(
    windows=rows_beside,
    constraints=(of_products_of_bytes,),
    types=frozenset({"i32", "f16", "i8"}),
    work=computed,
    layouts=any_layout,
)
def dequantize(sums: Array, scales: Array, digits: Array) -> Any:
    """Sums of a product of bytes, plus a number for each column, times a scale for each column.

    f16(f32(sums + digits w) f32(scales)), rounded to f16 once; w is 1, 127, 127, .. for each 32
    digits. The cube adds the numbers, the copy out of L0C scales.
    """
    numbers = digits.astype(np.int32) @ weights_of_digits(digits.shape[1])
    return ((sums + numbers).astype(np.float32) * scales.astype(np.float32)).astype(np.float16)


SCALE_MANTISSA = 10
"""Bits behind the point of a scale in a word."""

WORD_HALVES = 2
"""Numbers of 32 bits that a word of fixpipe has, the low one first: an f32, and the rest."""


def with_words(call: Call) -> None:
    """The sums are i32 [.., n], the words i32 [n, 2], the result is f16 or i8 of the sums' shape
    and layout."""
    sums, words = call.inputs
    require(sums.element == "i32" and sums.rank > 0, "element type of sums", sums.element, "i32")
    n = sums.shape[-1] if sums.rank else 0
    found, expected = (words.element, list(words.shape)), ("i32", [n, WORD_HALVES])
    require(found == expected, "words", f"{found[1]} {found[0]}", f"{expected[1]} i32")
    made = call.outputs[0]
    require(made.element in ("f16", "i8"), "element type of the result", made.element, "f16 or i8")
    call.expect_output(sums.shape, made.element)
    require(made.layout == sums.layout, "layout of the result", made.layout, sums.layout)


def words_beside(call: Call) -> Windows:
    """Windows of sums with a word a column."""
    dims = in_order(call.inputs[0].rank)
    return Windows(axes_of_result(call), dims, (dims, (dims[-1], whole(WORD_HALVES))))


def words_of(scales: Array, offset: int = 0) -> Array:
    """The words [n, 2] of scales [n], rounded to the 19 bits that words have of them.

    Args:
        offset: of all, at most 9 bits with its sign.
    """
    lost = 2 ** (np.finfo(np.float32).nmant - SCALE_MANTISSA)
    bits = scales.astype(np.float32).view(np.uint32).astype(np.int64) + lost // 2
    rounded = (bits & SCALE_MASK).astype(np.uint32).view(np.float32)
    words = [word(float(scale), offset) for scale in rounded]
    return np.array(words, np.uint64).view(np.int32).reshape(-1, WORD_HALVES)


@operator(
    windows=words_beside,
    constraints=(with_words,),
    types=frozenset({"i32", "f16", "i8"}),
    work=computed,
    layouts=any_layout,
)
def scale_sums(sums: Array, words: Array, *, relu: bool = False, result: Tensor) -> Any:
    """Sums of a product of bytes by a word for each column, as `fixpipe` of the 910B does it.

    max(0, sums) with `relu`, times the scale of the word, to f16, limited to its range; or to i8:
    plus the offset of the word, rounded halves away from zero, limited. A word is the bits of an
    f32, of which the upper 19 are the scale, and 32 bits that have the offset, in bits 5 to 13, and
    in bit 14 that bytes have a sign.
    """
    wide = np.ascontiguousarray(words, np.int32).view(np.int64)[:, 0]
    given = np.maximum(sums, 0) if relu else sums
    found = quantised(given, wide, "f16" if result.element == "f16" else "b8")
    return found.view(dtype_of(result.element))
