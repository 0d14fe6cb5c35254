"""Conversions between element types, and parts of numbers that they keep."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from davinci.element_types import dtype_of
from davinci.errors import require
from davinci.operators.call import Call, missing
from davinci.operators.comparison import holds
from davinci.operators.constraints import same_shape, same_types
from davinci.operators.core import FLOATS, NUMBERS, Array, elementwise
from davinci.operators.formulas import to_byte, whole
from davinci.operators.long_integers import HALF_RANGE, long_as_float
from davinci.operators.tensors import Tensor
from davinci.operators.vector_program import DTYPE_OF, Value, VectorProgram
from davinci.operators.words import HALF_WIDTH, shifted_right


def converted(x: Array, *, result: Tensor) -> Any:
    """x in another type, see `cast`."""
    dtype = dtype_of(result.element)
    if dtype == np.bool_:
        return x != 0
    if x.dtype in (np.int16, np.int32, np.int64) and dtype == np.int8:
        return x.clip(-128, 127).astype(dtype)
    if x.dtype.kind == "f" and dtype.kind in "iu":
        return saturated(x.astype(np.float64), dtype)
    return x.astype(dtype)


def saturated(x: Array, dtype: Any) -> Array:
    """Whole numbers towards zero, the nearest there is beyond the range of `dtype`, 0 of NaN."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    above, below = x >= high + 1.0, x <= low - 1.0
    inside = np.where(above | below | np.isnan(x), 0, x).astype(dtype)
    return np.where(above, dtype.type(high), np.where(below, dtype.type(low), inside))


BYTES = ("s8", "u8")
"""Integers that the vector unit converts from and to f16 only."""


@elementwise(
    values=converted, types=NUMBERS | {"i1", "i8", "ui8", "i16", "i64"}, constraints=(same_shape,)
)
def cast(p: VectorProgram, a: Value, *, result: Tensor) -> Value:
    """a in another type; to integers it truncates and saturates, to a boolean it asks for != 0.

    NaN gives 0. i64 to i32 keeps the low half, as i32 to i16 does. Integers to bytes saturate:
    what keeps the low byte takes it first. i64 to f32 is within a unit in the last place beyond
    2^31. Conversions that the machine has no instruction for are chains.
    """
    dtype = DTYPE_OF[result.element]
    if a.dtype == dtype == "s16":
        return a
    if a.dtype == "s16":
        word = shifted_right(p, p.join(0, a, "s32"), HALF_WIDTH)
        found: Value = cast(p, word, result=result)
        return found
    if dtype == "s16":
        return to_half(p, a, result)
    if a.dtype == "s64" != dtype:
        return from_long(p, a, result)
    if result.element == "i1":
        return to_byte(p, holds(p, "ne", p.convert(a, "f16") if a.dtype == "u8" else a, 0))
    if a.dtype == dtype:
        return a
    if dtype == "s64":
        return to_long(p, a)
    if a.dtype in BYTES:
        return p.convert(p.convert(a, "f16"), dtype, "trunc" if dtype == "s32" else "none")
    if dtype == "s32":
        return p.convert(a, "s32", "trunc")
    if dtype in BYTES:
        if a.dtype == "f16":
            return p.convert(a, dtype, "trunc")
        whole = p.convert(p.convert(a, "s32", "trunc"), "f32")
        return p.convert(p.convert(whole, "f16"), dtype)  # which saturates
    return p.convert(p.convert(a, "f32"), dtype)


def to_half(p: VectorProgram, a: Value, result: Tensor) -> Value:
    """Numbers as i16: the low half of integers, floats saturated."""
    if a.dtype in ("f16", "f32"):
        a = p.min(p.max(p.convert(a, "f32"), -32768.0), 32767.0)
    word = cast(p, a, result=replace(result, element="i32"))
    return p.halves(word)[0]


def from_long(p: VectorProgram, a: Value, result: Tensor) -> Value:
    """i64 in another type, see `cast`."""
    low, high = p.halves(a)
    if result.element == "i32":
        return low
    if result.element == "i1":
        nonzero = p.max(holds(p, "ne", low, 0), holds(p, "ne", high, 0))
        return to_byte(p, nonzero)
    number = long_as_float(p, a)
    if result.element == "i8":
        return to_byte(p, p.min(p.max(number, -128.0), 127.0))
    return p.convert(number, DTYPE_OF[result.element])


def to_long(p: VectorProgram, a: Value) -> Value:
    """Numbers as i64, see `cast`."""
    if a.dtype in BYTES:
        a = p.convert(p.convert(a, "f16"), "s32", "trunc")
    if a.dtype == "s32":
        return p.join(a, p.convert(p.mul(holds(p, "lt", a, 0), -1.0), "s32", "trunc"))
    x = whole(p, p.convert(a, "f32"), "trunc")
    towards_zero = whole(p, p.mul(x, 1 / HALF_RANGE), "trunc")
    rest = p.sub(x, p.mul(towards_zero, HALF_RANGE))
    # Each difference is exact: what is large has no low bits.
    high = p.sub(towards_zero, p.choose("lt", rest, 0.0, 1.0, 0.0))
    low = p.sub(rest, p.choose("ge", rest, HALF_RANGE / 2, HALF_RANGE, 0.0))
    low = p.add(low, p.choose("lt", rest, -HALF_RANGE / 2, HALF_RANGE, 0.0))
    # Beyond the range the high half saturates, and the low one is that of the last number.
    low = p.choose("lt", towards_zero, -HALF_RANGE / 2, 0.0, low)
    low = p.choose("ge", towards_zero, HALF_RANGE / 2, -1.0, low)
    return p.join(p.convert(low, "s32", "trunc"), p.convert(high, "s32", "trunc"))


LEAST_SCALED = 2.0**-125
"""What `cube_scale` takes smaller numbers for; four times its inverse is in the range of f32."""


def single_operand(call: Call) -> None:
    """The operand is f32."""
    call.same_element("the operand", call.inputs[0].element, "f32")


def scale_of(x: Array) -> Array:
    """The power of two of `cube_scale`."""
    exponent = np.frexp(np.maximum(x, np.float32(LEAST_SCALED)))[1] - 1
    scale = np.ldexp(np.float32(1), (14 - exponent) // 2)
    return np.where(np.isfinite(x), scale, 2.0**-57).astype(np.float32)


@elementwise(values=scale_of, types=frozenset({"f32"}), constraints=(same_types, single_operand))
def cube_scale(p: VectorProgram, a: Value) -> Value:
    """A power of two h for which a h h lies in [2^13, 2^15), for a >= 2^-125.

    2^69 for what is less, 2^-57 for an infinity and NaN. The bits of infinity are those of the
    exponent: they leave a power of two 2^e of a. 64 times the root of 4.25 / 2^e lies well inside
    the numbers that have the exponent of h, also where quotients and roots are off by digits.
    """
    exponent_bits = p.constant("f32", math.inf)
    power = p.max(p.step("vand", [a, exponent_bits]), LEAST_SCALED)
    square = p.max(p.div(4.25, power), 2.0**-126)
    return p.step("vand", [p.mul(p.unary("vsqrt", square), 64.0), exponent_bits])


def known_part(call: Call) -> None:
    """`part` is 0, 1 or 2."""
    part = call.attributes.get("part")
    require(part in (0, 1, 2), "attribute 'part'", missing(part), "0, 1 or 2")


def half_result(call: Call) -> None:
    """The result has the operand's shape and is f16."""
    call.expect_output(call.inputs[0].shape, "f16")


def part_of(x: Array, *, part: int) -> Array:
    """The part of f32 numbers as f16, see `half_part`."""
    for _ in range(part):
        x = x - x.astype(np.float16).astype(np.float32)
    return x.astype(np.float16)


@elementwise(values=part_of, types=FLOATS, constraints=(known_part, single_operand, half_result))
def half_part(p: VectorProgram, a: Value, *, part: int) -> Value:
    """Part 0 is a as f16, part 1 what that leaves of a as f16, part 2 what both leave.

    Parts 1 and 2 of what is not finite in f16 are NaN.
    """
    for _ in range(part):
        a = p.sub(a, p.convert(p.convert(a, "f16"), "f32"))
    return p.convert(a, "f16")
