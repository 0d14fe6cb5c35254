"""Rounding to whole numbers."""

from __future__ import annotations

import numpy as np

from davinci.operators.core import FLOATS, REAL, Array, elementwise
from davinci.operators.formulas import in_f32, whole
from davinci.operators.vector_program import Value, VectorProgram


@elementwise(values=np.floor, types=FLOATS, constraints=REAL)
@in_f32
def floor(p: VectorProgram, a: Value) -> Value:
    """Rounds down."""
    return with_sign_of_zero(p, a, whole(p, a, "floor"))


@elementwise(values=np.ceil, types=FLOATS, constraints=REAL)
@in_f32
def ceil(p: VectorProgram, a: Value) -> Value:
    """Rounds up."""
    return with_sign_of_zero(p, a, whole(p, a, "ceil"))


@elementwise(values=np.rint, types=FLOATS, constraints=REAL)
@in_f32
def round_(p: VectorProgram, a: Value) -> Value:
    """Rounds to nearest, ties to even."""
    return with_sign_of_zero(p, a, whole(p, a, "rint"))


def away_from_zero(a: Array) -> Array:
    """The nearest whole numbers, halves away from zero."""
    down = np.trunc(a)
    return np.where(np.abs(a - down) >= 0.5, down + np.copysign(1, a), down)


@elementwise(values=away_from_zero, types=FLOATS, constraints=REAL)
@in_f32
def round_away(p: VectorProgram, a: Value) -> Value:
    """Rounds to nearest, halves away from zero."""
    down = whole(p, a, "trunc")
    rest = p.sub(a, down)
    up = p.choose("ge", rest, 0.5, p.add(down, 1.0), down)
    return with_sign_of_zero(p, a, p.choose("le", rest, -0.5, p.add(down, -1.0), up))


def with_sign_of_zero(p: VectorProgram, a: Value, rounded: Value) -> Value:
    """`a` rounded, but a zero has the sign of `a`."""
    return p.choose("eq", rounded, 0.0, p.mul(a, 0.0), rounded)
