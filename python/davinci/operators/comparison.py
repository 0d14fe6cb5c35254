"""Comparisons and selection."""

from __future__ import annotations

from typing import Any

import numpy as np

from davinci.operators.core import FLOATS, NUMBERS, Array, elementwise
from davinci.operators.formulas import in_f16, kind_of, to_byte
from davinci.operators.vector_program import DTYPE_OF, Operand, Value, VectorProgram

TYPES = NUMBERS | {"i1", "i8"}

PREDICATES = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}

NEGATED = {"ne": "eq", "lt": "ge", "gt": "le"}


def compared(a: Array, b: Array, *, predicate: str) -> Any:
    return PREDICATES[predicate](a, b)


@elementwise(values=compared, types=TYPES)
def compare(p: VectorProgram, a: Operand, b: Operand, *, predicate: str) -> Value:
    """predicate(a, b)."""
    return to_byte(p, holds(p, predicate.lower(), a, b))


def holds(p: VectorProgram, predicate: str, a: Operand, b: Operand) -> Value:
    """1.0 where predicate(a, b) holds, else 0.0, in a type that has the width of the operands.

    Integers compare through differences that are zero exactly where the predicate holds: a == b
    where a - b is 0, a >= b where max(a, b) - a is 0, both also if the difference wraps around.
    """
    kind = kind_of(a, b)
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


def chosen(condition: Array, a: Array, b: Array, *, result: str) -> Any:
    return np.where(condition, a, b)


@elementwise(values=chosen, types=TYPES)
def select(p: VectorProgram, condition: Operand, a: Operand, b: Operand, *, result: str) -> Value:
    """condition ? a : b. Integers are b + condition * (a - b), which may wrap."""
    kind = DTYPE_OF[result]
    if not isinstance(condition, Value):
        known = a if condition else b
        if not isinstance(known, Value) and kind == "s8":  # which no instruction fills
            return p.convert(p.constant("f16", known), kind)
        return known if isinstance(known, Value) else p.constant(kind, known)
    flag = p.convert(condition, "f16")
    if kind == "s8":
        return p.convert(p.choose("ne", flag, 0.0, in_f16(p, a), in_f16(p, b)), "s8")
    if kind == "s32":
        either = a if isinstance(a, Value) else p.constant(kind, a)
        return p.add(p.mul(p.convert(flag, "s32", "rint"), p.sub(either, b)), b)
    return p.choose("ne", p.convert(flag, kind), 0.0, a, b)
