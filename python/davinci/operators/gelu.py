"""The Gaussian error linear unit, x times the normal distribution at x."""

from __future__ import annotations

from math import erf, sqrt
from typing import Any

import numpy as np

from davinci.operators.core import FLOATS, REAL, Array, elementwise
from davinci.operators.formulas import in_f32
from davinci.operators.vector_program import Value, VectorProgram

TAIL_CONSTANT, TAIL_LINEAR, TAIL_SQUARE = -5.23629503, 0.14775236, -0.51230174
TAIL_POLE, TAIL_PLACE = 21.80397458, 4.7991987
"""The logarithm of Q(t), the part of a normal distribution beyond t >= 0, as a quadratic in t and
one pole at -TAIL_PLACE: fitted to minimise the largest error of t Q(t), which is 1.6e-6."""

TAIL_END = 13.0
"""t Q(t) is 0 in f32 beyond this."""


def values_of(x: Array) -> Any:
    """x (1 + erf(x / sqrt 2)) / 2 in f64, and its limit 0 at -inf."""
    wide = np.maximum(x.astype(np.float64), -1e300)
    return wide * (1 + np.vectorize(erf, otypes=[np.float64])(wide / sqrt(2))) / 2


@elementwise(values=values_of, types=FLOATS, constraints=REAL)
@in_f32
def gelu(p: VectorProgram, a: Value) -> Value:
    """a (1 + erf(a / sqrt 2)) / 2 = max(a, 0) - t Q(t) with t = |a|; error below 2e-6."""
    t = p.min(p.unary("vabs", a), TAIL_END)
    exponent = p.mul(p.add(p.mul(t, TAIL_SQUARE), TAIL_LINEAR), t)
    pole = p.mul(p.unary("vrec", p.add(t, TAIL_PLACE)), TAIL_POLE)
    tail = p.unary("vexp", p.add(p.add(exponent, pole), TAIL_CONSTANT))
    return p.sub(p.unary("vrelu", a), p.mul(tail, t))
