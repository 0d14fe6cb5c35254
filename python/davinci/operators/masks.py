"""Choices by masks of bits: what a comparison selects, in instructions of many repeats.

The mask register that a comparison leaves for a selection holds one repeat, so that both are issued
for every repeat of a tile, each with the fixed cycles of an instruction. On long tiles arithmetic
on whole tiles takes less:

    predicate          flag, 1 or 0                          mask, all bits or none
    a > b              ceil(min(relu(a - b), 1))             f32: -1 * flag, as s32
    a == b             known - ceil(min(abs(a - b), 1))      f16: flag * 65504 | 0 - flag * 2^-14
    a >= b             known - (b > a)
    predicate ? x : y  (x & mask) | (y & ~mask)

    known = 1 + min(abs(a), 0) + min(abs(b), 0)              1, or NaN if one of them is

Differences are 0 of equal numbers only, as f16 and f32 have numbers down to the difference of
neighbours everywhere. Conversions to integers make 0 of NaN, which is also what equal infinities
leave: so flags are exact for all operands, and x and y pass bit by bit, NaN and signs of zeros too.
"""

from __future__ import annotations

import math

from davinci.operators.vector_program import Operand, Value, VectorProgram

WHOLE = {"f16": "s8", "f32": "s32"}
"""The integers that flags are rounded to, whose conversions have all roundings."""

LARGEST_HALF, LEAST_NORMAL_HALF = 65504.0, 2.0**-14
"""0x7BFF and 0x0400: together with a sign all bits of an f16."""


def chosen(
    p: VectorProgram, predicate: str, a: Operand, b: Operand, x: Operand, y: Operand, kind: str
) -> Value:
    """predicate(a, b) ? x : y, of f16 or f32."""
    found = flag(p, predicate, a, b)
    return found if (x, y) == (1.0, 0.0) else selected(p, found, x, y, kind)


def flag(p: VectorProgram, predicate: str, a: Operand, b: Operand) -> Value:
    """1 where predicate(a, b) holds, else 0, in the type of the operands."""
    if predicate == "gt":
        return _positive(p, p.sub(a, b))
    if predicate == "lt":
        return _positive(p, p.sub(b, a))
    if predicate == "ne":
        return p.add(p.mul(flag(p, "eq", a, b), -1.0), 1.0)
    if predicate == "eq":
        other = _positive(p, p.unary("vabs", p.sub(a, b)))
    else:
        other = flag(p, "lt" if predicate == "ge" else "gt", a, b)
    return _rounded(p, p.sub(_known(p, a, b), other), "none")


def selected(p: VectorProgram, found: Value, x: Operand, y: Operand, kind: str) -> Value:
    """x where a flag of `kind` is 1, y where it is 0."""
    mask = _mask(p, found, kind)
    if is_plain_zero(y):
        return p.step("vand", [array_of(p, x, kind), mask])
    others = p.step("vand", [array_of(p, y, kind), p.unary("vnot", mask)])
    if is_plain_zero(x):
        return others
    return p.step("vor", [p.step("vand", [array_of(p, x, kind), mask]), others])


def is_number(operand: Operand) -> bool:
    """Whether an operand is a value or a number that is no NaN."""
    return isinstance(operand, Value) or not math.isnan(operand)


def is_plain_zero(operand: Operand) -> bool:
    """Whether an operand is the number 0 without a sign."""
    return not isinstance(operand, Value) and operand == 0 and math.copysign(1, operand) > 0


def array_of(p: VectorProgram, operand: Operand, kind: str) -> Value:
    return operand if isinstance(operand, Value) else p.constant(kind, operand)


def _positive(p: VectorProgram, x: Value) -> Value:
    """1 where `x` is more than 0, else 0, of NaN too."""
    return _rounded(p, p.min(p.unary("vrelu", x), 1.0), "ceil")


def _rounded(p: VectorProgram, x: Value, rounding: str) -> Value:
    """`x` through integers, in its own type: NaN becomes 0."""
    return p.convert(p.convert(x, WHOLE[x.dtype], rounding), x.dtype, exact=True)


def _known(p: VectorProgram, a: Operand, b: Operand) -> Value:
    """1 where both operands are numbers, NaN where one is none."""
    first, *others = [p.min(p.unary("vabs", v), 0.0) for v in (a, b) if isinstance(v, Value)]
    for other in others if a is not b else []:
        first = p.add(first, other)
    return p.add(first, 1.0)


def _mask(p: VectorProgram, found: Value, kind: str) -> Value:
    """All bits where a flag of `kind` is 1, none where it is 0; of f32 in s32."""
    if kind == "f32":
        whole = p.convert(found, "s32", "none")
        return p.step("vmul", [whole, p.constant("s32", -1)])
    low = p.mul(found, LARGEST_HALF)
    high = p.step("vsub", [p.constant(kind, 0.0), p.mul(found, LEAST_NORMAL_HALF)])
    return p.step("vor", [low, high])
