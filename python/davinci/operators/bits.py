"""Bitwise and logical operators, and shifts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from davinci.element_types import dtype_of
from davinci.errors import require
from davinci.operators.call import Call
from davinci.operators.comparison import halves
from davinci.operators.core import WHOLE, Array, elementwise
from davinci.operators.formulas import in_f16, kind_of, to_byte
from davinci.operators.long_integers import LONG_WIDTH, long_shift, long_sub
from davinci.operators.tensors import Tensor
from davinci.operators.vector_program import DTYPE_OF, Operand, Value, VectorProgram
from davinci.operators.words import (
    WIDTH,
    bits_set,
    both,
    either,
    inverted,
    leading_zeros,
    shifted_by,
    shifted_left,
    shifted_right,
    shifted_right_logical,
)

BITS = frozenset({"i1", "i16", "i32", "i64"})

Bitwise = Callable[[VectorProgram, Operand, Operand], Operand]


def by_words(p: VectorProgram, a: Operand, b: Operand, combine: Bitwise) -> Value:
    """Combines the bits of integers of 16, 32 or 64 bits."""
    if kind_of(a, b) != "s64":
        found = combine(p, a, b)
        assert isinstance(found, Value), "one operand is a value, so is the result"
        return found
    low, high = (combine(p, x, y) for x, y in zip(halves(p, a), halves(p, b), strict=True))
    return p.join(low, high)


def difference(p: VectorProgram, a: Operand, b: Operand) -> Operand:
    """What is in either and not in both."""
    return both(p, either(p, a, b), inverted(p, both(p, a, b)))


@elementwise(values=np.bitwise_and, types=BITS, constraints=WHOLE)
def and_(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """a & b, bitwise; of booleans the product."""
    if kind_of(a, b) == "s8":
        return to_byte(p, p.mul(in_f16(p, a), in_f16(p, b)))
    return by_words(p, a, b, both)


@elementwise(values=np.bitwise_or, types=BITS, constraints=WHOLE)
def or_(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """a | b, bitwise; of booleans the maximum."""
    if kind_of(a, b) == "s8":
        return to_byte(p, p.max(in_f16(p, a), in_f16(p, b)))
    return by_words(p, a, b, either)


@elementwise(values=np.bitwise_xor, types=BITS, constraints=WHOLE)
def xor(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """a ^ b, bitwise: what is in either and not in both; of booleans the difference."""
    if kind_of(a, b) == "s8":
        return to_byte(p, p.unary("vabs", p.sub(in_f16(p, a), in_f16(p, b))))
    return by_words(p, a, b, difference)


@elementwise(values=lambda a, result: np.invert(a), types=BITS, constraints=WHOLE)
def not_(p: VectorProgram, a: Value, *, result: Tensor) -> Value:
    """Bitwise complement: -1 - a of integers, 1 - a of booleans."""
    if result.element == "i1":
        return to_byte(p, p.add(p.mul(p.convert(a, "f16"), -1.0), 1.0))
    if a.dtype == "s64":
        return long_sub(p, -1, a)
    return p.sub(-1, a) if a.dtype == "s32" else p.unary("vnot", a)


SHIFTED = frozenset({"i32", "i64"})


def left(a: Array, count: Array) -> Any:
    width = a.dtype.itemsize * 8
    inside = (count >= 0) & (count < width)
    return np.where(inside, np.left_shift(a, np.where(inside, count, 0)), 0)


def right(a: Array, count: Array) -> Any:
    last = a.dtype.itemsize * 8 - 1
    inside = (count >= 0) & (count < last)
    return np.right_shift(a, np.where(inside, count, last))


def logical(a: Array, count: Array) -> Any:
    width = a.dtype.itemsize * 8
    inside = (count >= 0) & (count < width)
    bits = a.view(f"u{a.dtype.itemsize}")
    moved = np.right_shift(bits, np.where(inside, count, 0).astype(bits.dtype))
    return np.where(inside, moved, 0).astype(bits.dtype).view(a.dtype)


SHIFTS = {"left": shifted_left, "right": shifted_right, "logical": shifted_right_logical}


def _shifted(p: VectorProgram, a: Operand, count: Operand, direction: str) -> Value:
    """a shifted by a number or by counts that are values, in one of three directions."""
    long = kind_of(a, count) == "s64"
    width = LONG_WIDTH if long else WIDTH
    if not isinstance(count, Value) and not 0 <= count < width:
        if direction != "right":
            return by_words(p, a, 0, both)
        count = width - 1
    if long:
        return long_shift(p, a, count, direction)
    if isinstance(count, Value):
        return shifted_by(p, a, count, direction)
    assert isinstance(a, Value), "one of the operands is a value"
    return SHIFTS[direction](p, a, int(count))


@elementwise(values=left, types=SHIFTED, constraints=WHOLE)
def shift_left(p: VectorProgram, a: Operand, count: Operand) -> Value:
    """a << count; 0 for counts that are negative or no less than the bits of a."""
    return _shifted(p, a, count, "left")


@elementwise(values=right, types=SHIFTED, constraints=WHOLE)
def shift_right(p: VectorProgram, a: Operand, count: Operand) -> Value:
    """a >> count, signs coming in; of such counts the sign everywhere."""
    return _shifted(p, a, count, "right")


@elementwise(values=logical, types=SHIFTED, constraints=WHOLE)
def shift_right_logical(p: VectorProgram, a: Operand, count: Operand) -> Value:
    """a >> count, zeros coming in; 0 of such counts."""
    return _shifted(p, a, count, "logical")


def set_bits(a: Array) -> Any:
    return np.bitwise_count(a.view(f"u{a.dtype.itemsize}")).astype(a.dtype)


@elementwise(values=set_bits, types=SHIFTED, constraints=WHOLE)
def popcnt(p: VectorProgram, a: Value) -> Value:
    """How many bits are set."""
    if a.dtype == "s64":
        low, high = (bits_set(p, half) for half in p.halves(a))
        return p.join(p.add(low, high), 0)
    return bits_set(p, a)


def zeros_in_front(a: Array) -> Any:
    width = a.dtype.itemsize * 8
    bits = a.view(f"u{a.dtype.itemsize}")
    for step in (1 << i for i in range(width.bit_length() - 1)):
        bits = bits | bits >> bits.dtype.type(step)
    return (width - np.bitwise_count(bits).astype(np.int64)).astype(a.dtype)


@elementwise(values=zeros_in_front, types=SHIFTED, constraints=WHOLE)
def count_leading_zeros(p: VectorProgram, a: Value) -> Value:
    """How many bits are not set in front of the first one that is; all of 0."""
    if a.dtype == "s64":
        low, high = (leading_zeros(p, half) for half in p.halves(a))
        none = p.max(p.sub(high, WIDTH - 1), 0)
        return p.join(p.add(high, p.mul(low, none)), 0)
    return leading_zeros(p, a)


def same_width(call: Call) -> None:
    """The result has the operand's shape, and elements of as many bits: 16, or 32."""
    found, result = call.inputs[0], call.outputs[0]
    call.expect_output(found.shape, result.element)
    require(found.bytes_each == result.bytes_each, "element type of the result", result, found)


def reinterpreted(a: Array, *, result: Tensor) -> Any:
    return a.view(dtype_of(result.element))


@elementwise(
    values=reinterpreted,
    types=frozenset({"i16", "f16", "i32", "f32"}),
    constraints=(same_width,),
)
def bitcast(p: VectorProgram, a: Value, *, result: Tensor) -> Value:
    """The same bits as another type."""
    return p.step("vor", [a, a], DTYPE_OF[result.element])
