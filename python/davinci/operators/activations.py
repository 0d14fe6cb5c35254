"""Functions that saturate, and others of neural networks."""

from __future__ import annotations

from math import erf as scalar_erf

import numpy as np

from davinci.operators.core import FLOATS, NUMBERS, REAL, elementwise
from davinci.operators.formulas import horner, in_f32, limited
from davinci.operators.vector_program import Value, VectorProgram

TANH_LIMIT = 9.02
"""tanh rounds to 1 in f32 beyond this."""

TANH_SMALL = 0.625
"""Below this |x| the quotient of exponentials loses digits and the polynomial is used."""

TANH_POLYNOMIAL = (
    1.0,
    -0.33333283923587953,
    0.1333149124845123,
    -0.05374349525672578,
    0.020650578990011177,
    -0.005717036547288641,
)
"""tanh(x) / x in powers of x * x for |x| <= TANH_SMALL, fitted to minimise the largest relative
error, 4e-9 before rounding."""

ERF_LIMIT = 3.95
"""erf rounds to 1 in f32 beyond this."""

ERF_NUMERATOR = (
    1.1283791438244044,
    0.1915488637022862,
    0.05287512737431571,
    0.0038080572070404092,
    0.0002846783214119265,
    2.0258317817127402e-06,
)
ERF_DENOMINATOR = (
    1.0,
    0.503088437980074,
    0.11455890723637181,
    0.015054896189726103,
    0.0011706866749499423,
    3.7830507251788725e-05,
)
"""erf(x) / x as a quotient of polynomials in x * x for |x| <= ERF_LIMIT, fitted to minimise the
largest relative error: 2e-8 before rounding, 4e-7 in f32."""


@elementwise(values=lambda a: np.maximum(a, 0), types=NUMBERS)
def relu(p: VectorProgram, a: Value) -> Value:
    """max(a, 0)."""
    return p.unary("vrelu", a)


@elementwise(values=np.tanh, types=FLOATS, constraints=REAL)
@in_f32
def tanh(p: VectorProgram, a: Value) -> Value:
    """Hyperbolic tangent; error below 3 ulp.

    (e - 1) / (e + 1) with e = exp(2a), or a times a polynomial.
    """
    e = p.unary("vexp", p.mul(limited(p, a, -TANH_LIMIT, TANH_LIMIT), 2.0))
    large = p.div(p.add(e, -1.0), p.add(e, 1.0))
    small = p.mul(horner(p, p.mul(a, a), TANH_POLYNOMIAL), a)
    return p.choose("lt", p.unary("vabs", a), TANH_SMALL, small, large)


@elementwise(values=np.vectorize(scalar_erf, otypes=[np.float64]), types=FLOATS, constraints=REAL)
@in_f32
def erf(p: VectorProgram, a: Value) -> Value:
    """Error function: a P(a * a) / Q(a * a); error below 6 ulp."""
    limit = limited(p, a, -ERF_LIMIT, ERF_LIMIT)
    square = p.mul(limit, limit)
    numerator = p.mul(horner(p, square, ERF_NUMERATOR), limit)
    return p.div(numerator, horner(p, square, ERF_DENOMINATOR))


@elementwise(values=lambda a: 1 / (1 + np.exp(-a)), types=FLOATS, constraints=REAL)
@in_f32
def logistic(p: VectorProgram, a: Value) -> Value:
    """1 / (1 + exp(-a)); error below 4 ulp + 2^-126: where the exponential overflows this is 0."""
    e = p.unary("vexp", p.mul(a, -1.0))
    return p.unary("vrec", p.add(e, 1.0))
