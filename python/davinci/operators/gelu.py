"""The Gaussian error linear unit, x times the normal distribution at x."""

from __future__ import annotations

from math import erf, sqrt
from typing import Any

import numpy as np

from davinci.operators.core import FLOATS, REAL, Array, elementwise
from davinci.operators.formulas import horner, in_f32
from davinci.operators.vector_program import Value, VectorProgram

TAIL_CONSTANT, TAIL_LINEAR, TAIL_SQUARE = -5.23629503, 0.14775236, -0.51230174
TAIL_POLE, TAIL_PLACE = 21.80397458, 4.7991987
"""The logarithm of Q(t), the part of a normal distribution beyond t >= 0, as a quadratic in t and
one pole at -TAIL_PLACE: fitted to minimise the largest error of t Q(t), which is 1.6e-6."""

TAIL_END = 13.0
"""t Q(t) is 0 in f32 beyond this."""

LOGIT = (-1.59501588, -0.07401121, 0.00070304)
"""The logarithm of Q(t) / (1 - Q(t)) is about t times this polynomial of t^2: the largest error of
t Q(t) is 2.6e-5."""

LOGIT_END = 8.0
"""t Q(t) is 0 in f16 beyond this."""


def values_of(x: Array) -> Any:
    """x (1 + erf(x / sqrt 2)) / 2 in f64, and its limit 0 at -inf."""
    wide = np.maximum(x.astype(np.float64), -1e300)
    return wide * (1 + np.vectorize(erf, otypes=[np.float64])(wide / sqrt(2))) / 2


@elementwise(values=values_of, types=FLOATS, constraints=REAL)
@in_f32
def gelu(p: VectorProgram, a: Value) -> Value:
    """a (1 + erf(a / sqrt 2)) / 2 = max(a, 0) - t Q(t) with t = |a|; error below 2e-6, and below
    3.5e-4 of a result that is rounded to f16, which is computed in f16."""
    t = p.min(p.unary("vabs", a), TAIL_END)
    exponent = p.mul(p.add(p.mul(t, TAIL_SQUARE), TAIL_LINEAR), t)
    pole = p.mul(p.unary("vrec", p.add(t, TAIL_PLACE)), TAIL_POLE)
    tail = p.unary("vexp", p.add(p.add(exponent, pole), TAIL_CONSTANT))
    result = p.sub(p.unary("vrelu", a), p.mul(tail, t))
    p.rounded[result] = rounded(p, p.convert(a, "f16"))
    return result


def rounded(p: VectorProgram, a: Value) -> Value:
    """The same in f16; Q(t) = e / (1 + e), and neither e nor anything else leaves its range."""
    t = p.min(p.unary("vabs", a), LOGIT_END)
    odds = p.unary("vexp", p.mul(horner(p, p.mul(t, t), LOGIT), t))
    share = p.mul(odds, p.unary("vrec", p.add(odds, 1.0)))
    return p.sub(p.unary("vrelu", a), p.mul(share, t))
