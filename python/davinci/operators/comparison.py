"""Comparisons and selection."""

from __future__ import annotations

from typing import Any

import numpy as np

from davinci.errors import require
from davinci.operators.call import Call
from davinci.operators.core import FLOATS, NUMBERS, Array, elementwise
from davinci.operators.formulas import in_f16, kind_of, to_byte
from davinci.operators.tensors import Tensor
from davinci.operators.vector_program import DTYPE_OF, Operand, Value, VectorProgram

TYPES = NUMBERS | {"i1", "i8", "i64"}

PREDICATES = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}

NEGATED = {"ne": "eq", "lt": "ge", "gt": "le"}


def known_predicate(call: Call) -> None:
    """`predicate` is "EQ", "NE", "LT", "LE", "GT" or "GE"."""
    call.choice("predicate", tuple(PREDICATES))


def operands_of_one_type(call: Call) -> None:
    """Operands have one type."""
    a, b = call.inputs
    require(a == b, "type of operand 1", b, a)


def boolean_result(call: Call) -> None:
    """The result has their shape and is boolean."""
    call.expect_output(call.inputs[0].shape, "i1")


def compared(a: Array, b: Array, *, predicate: str) -> Any:
    return PREDICATES[predicate](a, b)


@elementwise(
    values=compared,
    types=TYPES,
    constraints=(known_predicate, operands_of_one_type, boolean_result),
)
def compare(p: VectorProgram, a: Operand, b: Operand, *, predicate: str) -> Value:
    """predicate(a, b)."""
    return to_byte(p, holds(p, predicate.lower(), a, b))


def holds(p: VectorProgram, predicate: str, a: Operand, b: Operand) -> Value:
    """1.0 where predicate(a, b) holds, else 0.0, in a type that has the width of the operands.

    Integers compare through differences that are zero exactly where the predicate holds: a == b
    where a - b is 0, a >= b where max(a, b) - a is 0, both also if the difference wraps around.
    """
    kind = kind_of(a, b)
    if kind == "s64":
        return long_holds(p, predicate, a, b)
    if kind in FLOATS:
        return p.choose(predicate, a, b, 1.0, 0.0)
    if kind == "s8":
        return p.choose(predicate, in_f16(p, a), in_f16(p, b), 1.0, 0.0)
    positive = NEGATED.get(predicate, predicate)
    if positive == "eq":
        difference = p.sub(a, b)
    else:
        difference = p.sub(p.binary("vmax" if positive == "ge" else "vmin", a, b), a)
    zero = "eq" if positive == predicate else "ne"
    return p.choose(zero, p.convert(difference, "f32"), 0.0, 1.0, 0.0)


def long_holds(p: VectorProgram, predicate: str, a: Operand, b: Operand) -> Value:
    """The same for i64: by the high halves, and where those are equal by the low ones.

    Low halves have no sign: taken as i32, they compare with half of their range added.
    """
    (low, high), (other_low, other_high) = halves(p, a), halves(p, b)
    if predicate in ("eq", "ne"):
        combine = p.min if predicate == "eq" else p.max
        found = (holds(p, predicate, x, y) for x, y in ((low, other_low), (high, other_high)))
        return combine(*found)
    shifted = (from_lowest(p, x) for x in (low, other_low))
    below = p.mul(holds(p, "eq", high, other_high), holds(p, predicate, *shifted))
    return p.max(below, holds(p, predicate[0] + "t", high, other_high))


def halves(p: VectorProgram, a: Operand) -> tuple[Operand, Operand]:
    """The low and high halves of i64, of a number too."""
    if isinstance(a, Value):
        return p.halves(a)
    number = int(a)
    return (number + (1 << 31)) % (1 << 32) - (1 << 31), number >> 32


def from_lowest(p: VectorProgram, a: Operand) -> Operand:
    """a - 2^31, or + 2^31 as it wraps around."""
    lowest = -(2**31)
    return p.add(a, lowest) if isinstance(a, Value) else a - lowest if a < 0 else a + lowest


def boolean_condition(call: Call) -> None:
    """The condition is boolean and has the shape of a."""
    condition, a, _ = call.inputs
    call.same_element("the condition", condition.element, "i1")
    require(condition.shape == a.shape, "shape of the condition", condition, list(a.shape))


def choices_of_one_type(call: Call) -> None:
    """a, b and the result have one type."""
    _, a, b = call.inputs
    require(a == b, "type of operand 2", b, a)
    call.expect_output(a.shape, a.element)


def chosen(condition: Array, a: Array, b: Array, *, result: Tensor) -> Any:
    return np.where(condition, a, b)


@elementwise(values=chosen, types=TYPES, constraints=(boolean_condition, choices_of_one_type))
def select(
    p: VectorProgram, condition: Operand, a: Operand, b: Operand, *, result: Tensor
) -> Value:
    """condition ? a : b. Integers are b + condition * (a - b), which may wrap."""
    kind = DTYPE_OF[result.element]
    if not isinstance(condition, Value):
        known = a if condition else b
        if not isinstance(known, Value) and kind == "s8":  # which no instruction fills
            return p.convert(p.constant("f16", known), kind)
        return known if isinstance(known, Value) else p.constant(kind, known)
    flag = p.convert(condition, "f16")
    if kind == "s64":
        pairs = zip(halves(p, a), halves(p, b), strict=True)
        low, high = (chosen_of(p, flag, x, y) for x, y in pairs)
        return p.join(low, high)
    if kind == "s8":
        return to_byte(p, p.choose("ne", flag, 0.0, in_f16(p, a), in_f16(p, b)))
    if kind == "s32":
        return chosen_of(p, flag, a, b)
    return p.select(p.convert(flag, kind), a, b)


def chosen_of(p: VectorProgram, flag: Value, a: Operand, b: Operand) -> Value:
    """flag ? a : b for i32, with a flag of 0.0 or 1.0 in f16."""
    either = a if isinstance(a, Value) else p.constant("s32", a)
    return p.add(p.mul(p.convert(flag, "s32", "rint"), p.sub(either, b)), b)
