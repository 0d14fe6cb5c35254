"""Arc sine and arc cosine, hyperbolic functions and their inverses, and the inverse of erf, in f32.

Each is a polynomial where a formula would lose digits, and a formula beyond; both are computed and
one is chosen by the size of the operand. Odd functions are computed of the size of the operand,
whose sign then joins the bits of the result.
"""

from __future__ import annotations

import math

import numpy as np

from davinci.operators.core import FLOATS, REAL, Array, elementwise
from davinci.operators.formulas import horner, in_f32
from davinci.operators.trigonometry import QUARTER_TURN
from davinci.operators.vector_program import Value, VectorProgram

SIGN = -(1 << 31)
"""The bit of the sign, in s32."""

ARC_SINE = (
    0.16666753927976033,
    0.074952417692342,
    0.045477098990231724,
    0.024147600303507023,
    0.04221856805386086,
)
"""(asin(s) / s - 1) / s^2 in powers of s * s for |s| <= 1/2. All polynomials here are fitted to
minimise the largest relative error of the function; of this one 5e-9 before rounding."""

SINH_SMALL = 1.0
SINH = (0.16666666488721432, 0.00833335059788952, 0.00019836066274868343, 2.8174395091981286e-06)
"""(sinh(x) / x - 1) / x^2 in powers of x * x for |x| <= SINH_SMALL: 6e-11."""

ASINH_SMALL = 1.0
ASINH = (
    -0.16666630874515959,
    0.07498744435903731,
    -0.044490542005967165,
    0.029467697032733154,
    -0.01920782446251622,
    0.010462528086748073,
    -0.0038585301988858485,
    0.0006791261780530655,
)
"""(asinh(x) / x - 1) / x^2 in powers of x * x for |x| <= ASINH_SMALL: 3e-9."""

ACOSH_SMALL = 1.0
ACOSH = (
    -0.08333309719829415,
    0.018745150331479467,
    -0.005546789318608183,
    0.0017892340147200336,
    -0.0005077318295405032,
    8.309706206162421e-05,
)
"""(acosh(1 + t) / sqrt(2 t) - 1) / t in powers of t <= ACOSH_SMALL: 4e-9."""

ATANH_SMALL = 0.5
ATANH = (
    0.333332988444148,
    0.2000258766202274,
    0.14221487103538535,
    0.11833960327220519,
    0.05098551044511117,
    0.17719647976731243,
)
"""(atanh(x) / x - 1) / x^2 in powers of x * x for |x| <= ATANH_SMALL: 1e-9."""

ERF_INV_CENTRE, ERF_INV_MIDDLE = 5.0, 2.5
ERF_INV_TAIL_MIDDLE = 3.0
ERF_INV = (
    1.5014093592822624,
    0.2466402861554325,
    -0.00417738677981933,
    -0.001252741882896779,
    0.00021834443836508735,
    -4.963345195023343e-06,
    -3.4627044775926532e-06,
    4.661700808455335e-07,
    2.323262124729779e-08,
    -8.791014126772538e-09,
)
"""erf_inv(x) / x in powers of w - ERF_INV_MIDDLE for w = -ln(1 - x^2) <= ERF_INV_CENTRE: 6e-9."""

ERF_INV_TAIL = (
    2.832976800592882,
    1.0016749767758795,
    0.009445329037192625,
    -0.007637452771580839,
    0.005686590474209003,
    -0.0035966240505545728,
    0.0014861296428593997,
    -5.82606991217249e-05,
    -0.00031042540571908303,
    0.00011671284425055567,
)
"""erf_inv(x) / x for larger w, in powers of sqrt(w) - ERF_INV_TAIL_MIDDLE: 9e-9."""

LARGEST_W = 16.7
"""-ln(1 - x^2) of any f32 below 1 is less."""

EXPONENT_LIMIT = 100.0
"""Half of the exponential of a number from this on is beyond f32."""

FAR = 2.0**60
"""The square of a number from this on may be beyond f32, and 1 is nothing beside it."""


def sign_bit(p: VectorProgram, x: Value) -> Value:
    """The sign of f32 `x` alone, as bits."""
    return p.step("vand", [x, p.constant("s32", SIGN)], "s32")


def signed(p: VectorProgram, size: Value, sign: Value) -> Value:
    """A number without a sign, with that of `sign`."""
    return p.step("vor", [size, sign], "f32")


def odd_of(p: VectorProgram, x: Value, coefficients: tuple[float, ...]) -> Value:
    """x + x^3 times the polynomial of x^2 with these coefficients."""
    square = p.mul(x, x)
    return p.add(x, p.mul(p.mul(horner(p, square, coefficients), square), x))


def half_arc(p: VectorProgram, a: Value) -> tuple[Value, Value]:
    """Of a size from 0 to 1, asin(s) for s = min(a, sqrt((1 - a) / 2)), and whether a > 1/2, as 1
    or 0.

    asin(a) is that, or a quarter turn less twice that. The first of both is the smaller one exactly
    where a <= 1/2. Beyond 1 the root is NaN.
    """
    root = p.unary("vsqrt", p.add(p.mul(a, -0.5), 0.5))
    arc = odd_of(p, p.min(a, root), ARC_SINE)
    return arc, p.choose("gt", a, 0.5, 1.0, 0.0)


def quarters(p: VectorProgram, count: Value, rest: Value) -> Value:
    """So many quarter turns and an angle."""
    high, low = QUARTER_TURN
    return p.add(p.add(p.mul(count, low), rest), p.mul(count, high))


@elementwise(values=lambda a: np.arcsin(a.astype(np.float64)), types=FLOATS, constraints=REAL)
@in_f32
def asin(p: VectorProgram, a: Value) -> Value:
    """Arc sine in radians, from -pi / 2 to pi / 2; error below 3 ulp."""
    arc, far = half_arc(p, p.unary("vabs", a))
    rest = p.mul(arc, p.add(p.mul(far, -3.0), 1.0))
    return signed(p, quarters(p, far, rest), sign_bit(p, a))


@elementwise(values=lambda a: np.arccos(a.astype(np.float64)), types=FLOATS, constraints=REAL)
@in_f32
def acos(p: VectorProgram, a: Value) -> Value:
    """Arc cosine in radians, from 0 to pi; error below 2 ulp."""
    arc, far = half_arc(p, p.unary("vabs", a))
    sign = sign_bit(p, a)
    rest = p.mul(signed(p, arc, sign), p.add(p.mul(far, 3.0), -1.0))
    count = p.add(p.mul(signed(p, far, sign), -1.0), 1.0)
    return quarters(p, count, rest)


def half_exponential(p: VectorProgram, a: Value) -> Value:
    """exp(a) / 2, which is a number of f32 a little beyond the last exponential that is one.

    As the exponential of a less ln 2, times 1 and what rounding that takes from it.
    """
    near = p.min(a, EXPONENT_LIMIT)
    less = p.add(near, -math.log(2))
    back = p.add(p.sub(near, less), 1 - math.log(2))
    return p.mul(p.unary("vexp", less), back)


def quarter_of_inverse(p: VectorProgram, x: Value) -> Value:
    """1 / (4 x)."""
    return p.mul(p.unary("vrec", x), 0.25)


@elementwise(values=lambda a: np.sinh(a.astype(np.float64)), types=FLOATS, constraints=REAL)
@in_f32
def sinh(p: VectorProgram, a: Value) -> Value:
    """Hyperbolic sine; error below 3 ulp."""
    size = p.unary("vabs", a)
    half = half_exponential(p, size)
    large = p.sub(half, quarter_of_inverse(p, half))
    small = odd_of(p, size, SINH)
    return signed(p, p.choose("gt", size, SINH_SMALL, large, small), sign_bit(p, a))


@elementwise(values=lambda a: np.cosh(a.astype(np.float64)), types=FLOATS, constraints=REAL)
@in_f32
def cosh(p: VectorProgram, a: Value) -> Value:
    """Hyperbolic cosine; error below 3 ulp."""
    half = half_exponential(p, p.unary("vabs", a))
    return p.add(half, quarter_of_inverse(p, half))


def logarithm_of_sum(p: VectorProgram, x: Value, y: Value) -> Value:
    """ln(x + y) of two numbers of which one may be the largest of f32."""
    half = p.add(p.mul(x, 0.5), p.mul(y, 0.5))
    return p.add(p.unary("vln", half), math.log(2))


@elementwise(values=lambda a: np.arcsinh(a.astype(np.float64)), types=FLOATS, constraints=REAL)
@in_f32
def asinh(p: VectorProgram, a: Value) -> Value:
    """Inverse hyperbolic sine; error below 3 ulp."""
    size = p.unary("vabs", a)
    near = p.min(size, FAR)
    root = p.unary("vsqrt", p.add(p.mul(near, near), 1.0))
    large = logarithm_of_sum(p, size, p.max(root, size))
    small = odd_of(p, size, ASINH)
    return signed(p, p.choose("gt", size, ASINH_SMALL, large, small), sign_bit(p, a))


@elementwise(values=lambda a: np.arccosh(a.astype(np.float64)), types=FLOATS, constraints=REAL)
@in_f32
def acosh(p: VectorProgram, a: Value) -> Value:
    """Inverse hyperbolic cosine of numbers from 1 on; error below 3 ulp."""
    above = p.add(a, -1.0)
    root = p.unary("vsqrt", p.mul(above, 2.0))
    near = p.min(above, FAR)
    side = p.unary("vsqrt", p.mul(near, p.add(near, 2.0)))
    large = logarithm_of_sum(p, a, p.max(side, p.add(a, -2.0)))
    small = p.add(root, p.mul(p.mul(horner(p, above, ACOSH), above), root))
    return p.choose("gt", above, ACOSH_SMALL, large, small)


@elementwise(values=lambda a: np.arctanh(a.astype(np.float64)), types=FLOATS, constraints=REAL)
@in_f32
def atanh(p: VectorProgram, a: Value) -> Value:
    """Inverse hyperbolic tangent of numbers from -1 to 1; error below 2 ulp."""
    size = p.unary("vabs", a)
    ratio = p.div(p.add(size, 1.0), p.add(p.mul(size, -1.0), 1.0))
    large = p.mul(p.unary("vln", ratio), 0.5)
    small = odd_of(p, size, ATANH)
    return signed(p, p.choose("gt", size, ATANH_SMALL, large, small), sign_bit(p, a))


ERF = np.vectorize(math.erf, otypes=[np.float64])


def erf_inverse(a: Array) -> Array:
    """The inverse error function in f64: by the tile rule's polynomials and a step of Newton's."""
    found = np.asarray(a, np.float64)
    with np.errstate(all="ignore"):
        w = -np.log((1 - found) * (1 + found))
        centre = np.polynomial.polynomial.polyval(w - ERF_INV_MIDDLE, ERF_INV)
        tail = np.polynomial.polynomial.polyval(np.sqrt(w) - ERF_INV_TAIL_MIDDLE, ERF_INV_TAIL)
        root = found * np.where(w > ERF_INV_CENTRE, tail, centre)
        root -= (ERF(root) - found) * np.exp(root * root) * math.sqrt(math.pi) / 2
        return np.where(np.abs(found) == 1, found * np.inf, root)


@elementwise(values=erf_inverse, types=FLOATS, constraints=REAL)
@in_f32
def erf_inv(p: VectorProgram, a: Value) -> Value:
    """Inverse of the error function, of numbers from -1 to 1; error below 4 ulp.

    With w = -ln(1 - a^2), a times a polynomial of w, or of its root in the tails. At the ends w is
    infinite, and what is over the largest w of numbers between them makes the result so.
    """
    size = p.unary("vabs", a)
    left = p.mul(p.add(p.mul(size, -1.0), 1.0), p.add(size, 1.0))
    w = p.mul(p.unary("vln", left), -1.0)
    near = p.min(w, LARGEST_W)
    centre = horner(p, p.add(near, -ERF_INV_MIDDLE), ERF_INV)
    tail = horner(p, p.add(p.unary("vsqrt", near), -ERF_INV_TAIL_MIDDLE), ERF_INV_TAIL)
    factor = p.choose("gt", w, ERF_INV_CENTRE, tail, centre)
    return p.mul(a, p.add(factor, p.sub(w, near)))
