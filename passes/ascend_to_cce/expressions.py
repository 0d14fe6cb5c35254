"""Elementwise operators as programs of vector operations, with the ranges where they hold.

Each function records the steps of one operator on a `Program`. Operands are values, or numbers for
operands that are the same everywhere. Booleans are bytes 0 and 1. Conversions that the machine has
no instruction for are chains; what a chain cannot represent saturates.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from davinci.passes.ascend_to_cce.vector_program import Operand, Program, Value

FLOATS = ("f16", "f32")

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

WHOLE_LIMIT = float(1 << 23)
"""f32 numbers from this on have no fraction."""

LARGEST_POWER = 64
"""Constant integer exponents up to this become products."""


def horner(p: Program, x: Value, coefficients: tuple[float, ...]) -> Value:
    """The polynomial of `x` with these coefficients, lowest power first; at least two."""
    *rest, high = coefficients
    result = p.mul(x, high)
    for coefficient in reversed(rest[1:]):
        result = p.mul(p.add(result, coefficient), x)
    return p.add(result, rest[0])


def limited(p: Program, x: Value, limit: float) -> Value:
    return p.min(p.max(x, -limit), limit)


def in_f32(expression: Callable[[Program, Value], Value]) -> Callable[[Program, Value], Value]:
    """Computes an expression in f32 whatever the type of its operand."""

    def widened(p: Program, x: Value) -> Value:
        return p.convert(expression(p, p.convert(x, "f32")), x.dtype)

    return widened


def tanh(p: Program, x: Value) -> Value:
    """(e - 1) / (e + 1) with e = exp(2x), or x times a polynomial; relative error below 1e-6."""
    e = p.unary("vexp", p.mul(limited(p, x, TANH_LIMIT), 2.0))
    large = p.div(p.add(e, -1.0), p.add(e, 1.0))
    small = p.mul(horner(p, p.mul(x, x), TANH_POLYNOMIAL), x)
    return p.choose("lt", p.unary("vabs", x), TANH_SMALL, small, large)


def erf(p: Program, x: Value) -> Value:
    """x P(x * x) / Q(x * x); relative error below 1e-6."""
    limit = limited(p, x, ERF_LIMIT)
    square = p.mul(limit, limit)
    numerator = p.mul(horner(p, square, ERF_NUMERATOR), limit)
    return p.div(numerator, horner(p, square, ERF_DENOMINATOR))


def logistic(p: Program, x: Value) -> Value:
    """1 / (1 + exp(-x)); where the exponential overflows this is 0."""
    e = p.unary("vexp", p.mul(x, -1.0))
    return p.unary("vrec", p.add(e, 1.0))


def whole(rounding: str) -> Callable[[Program, Value], Value]:
    """Rounds through s32; numbers that have no fraction, infinities and NaN stay as they are."""

    def rounded(p: Program, x: Value) -> Value:
        integer = p.convert(p.convert(x, "s32", rounding), "f32")
        return p.choose("lt", p.unary("vabs", x), WHOLE_LIMIT, integer, x)

    return rounded


def with_sign_of_zero(rounding: str) -> Callable[[Program, Value], Value]:
    """The same, but a zero has the sign of the operand."""

    def rounded(p: Program, x: Value) -> Value:
        integer = whole(rounding)(p, x)
        return p.choose("eq", integer, 0.0, p.mul(x, 0.0), integer)

    return rounded


def sign(p: Program, x: Value) -> Value:
    """-1, 0 or 1; zeros and NaN stay as they are."""
    if x.dtype == "s32":
        return p.min(p.max(x, -1), 1)
    return p.choose("lt", x, 0.0, -1.0, p.choose("gt", x, 0.0, 1.0, x))


def absolute(p: Program, x: Value) -> Value:
    return p.max(x, p.sub(0, x)) if x.dtype == "s32" else p.unary("vabs", x)


def negative(p: Program, x: Value) -> Value:
    return p.sub(0, x) if x.dtype == "s32" else p.mul(x, -1.0)


def complement(p: Program, x: Value) -> Value:
    """~x = -1 - x, for integers."""
    return p.sub(-1, x) if x.dtype == "s32" else p.unary("vnot", x)


def logical_not(p: Program, x: Value) -> Value:
    return p.convert(p.add(p.mul(p.convert(x, "f16"), -1.0), 1.0), "s8")


def divide(p: Program, a: Operand, b: Operand) -> Value:
    """a / b; a product where that is exact."""
    if isinstance(b, (int, float)) and is_power_of_two(b):
        return p.mul(a, 1.0 / b)
    return p.div(a, b)


def is_power_of_two(number: float) -> bool:
    """Whether 1 / number is exact in f16 and f32."""
    return any(abs(number) == 2.0**i for i in range(-14, 15))


def power(p: Program, a: Operand, b: Operand) -> Value:
    """a ** b; a product or a root for constants where that is exact."""
    if isinstance(a, Value) and not isinstance(b, Value):
        if b == 0:
            return p.constant(a.dtype, 1.0)
        if b in (0.5, -0.5):
            # Unlike its roots, powers of -inf and -0 are those of inf and 0.
            unsigned = p.add(p.choose("eq", a, -math.inf, math.inf, a), 0.0)
            return p.unary("vsqrt" if b > 0 else "vrsqrt", unsigned)
        if math.isfinite(b) and b == int(b) and abs(b) <= LARGEST_POWER:
            if b > 0:
                return repeated(p, a, int(b))
            product = repeated(p, p.convert(a, "f32"), int(-b))
            return p.convert(p.unary("vrec", product), a.dtype)
    kind = next(v.dtype for v in (a, b) if isinstance(v, Value))
    x, y = (
        p.convert(v, "f32") if isinstance(v, Value) else p.constant("f32", float(v)) for v in (a, b)
    )
    return p.convert(general_power(p, x, y), kind)


def general_power(p: Program, x: Value, y: Value) -> Value:
    """x ** y in f32: exp(y log |x|), relative error up to 1e-5 near the ends of the range.

    Below zero the result is negative for odd y and NaN for y that are not whole. A zero or an
    infinity has its sign in x + 1 / x.
    """
    size = p.unary("vabs", x)
    power = p.unary("vexp", p.mul(p.unary("vln", size), y))
    power = p.choose("eq", size, 1.0, 1.0, power)
    floor = whole("floor")
    odd = p.sub(y, p.mul(floor(p, p.mul(y, 0.5)), 2.0))
    signed = p.choose("eq", odd, 1.0, p.mul(power, -1.0), power)
    outside = p.choose("lt", x, 0.0, math.nan, power)
    outside = p.choose("eq", size, math.inf, power, outside)
    negative = p.choose("eq", floor(p, y), y, signed, outside)
    sign = p.add(x, p.unary("vrec", x))
    result = p.choose("lt", sign, 0.0, negative, power)
    result = p.choose("eq", x, 1.0, 1.0, result)
    return p.choose("eq", y, 0.0, 1.0, result)


def repeated(p: Program, x: Value, times: int) -> Value:
    """x multiplied `times` times, by squaring."""
    if times == 1:
        return x
    half = repeated(p, x, times // 2)
    square = p.mul(half, half)
    return p.mul(square, x) if times % 2 else square


def in_f16(p: Program, a: Operand) -> Operand:
    return p.convert(a, "f16") if isinstance(a, Value) else float(a)


NEGATED = {"ne": "eq", "lt": "ge", "gt": "le"}


def holds(p: Program, predicate: str, a: Operand, b: Operand) -> Value:
    """1.0 where predicate(a, b) holds, else 0.0, in a type that has the width of the operands.

    Integers compare through differences that are zero exactly where the predicate holds: a == b
    where a - b is 0, a >= b where max(a, b) - a is 0, both also if the difference wraps around.
    """
    kind = next(v.dtype for v in (a, b) if isinstance(v, Value))
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


def compare(p: Program, predicate: str, a: Operand, b: Operand) -> Value:
    """predicate(a, b) as bytes."""
    return to_byte(p, holds(p, predicate, a, b))


def to_byte(p: Program, x: Value) -> Value:
    """A float that holds a small integer as s8."""
    return p.convert(p.convert(x, "f16"), "s8")


def select(p: Program, kind: str, condition: Operand, a: Operand, b: Operand) -> Value:
    """condition ? a : b of type `kind`. Integers are b + condition * (a - b), which may wrap."""
    if not isinstance(condition, Value):
        chosen = a if condition else b
        if not isinstance(chosen, Value) and kind == "s8":  # which no instruction fills
            return p.convert(p.constant("f16", chosen), kind)
        return chosen if isinstance(chosen, Value) else p.constant(kind, chosen)
    flag = p.convert(condition, "f16")
    if kind == "s8":
        return p.convert(p.choose("ne", flag, 0.0, in_f16(p, a), in_f16(p, b)), "s8")
    if kind == "s32":
        chosen = a if isinstance(a, Value) else p.constant(kind, a)
        return p.add(p.mul(p.convert(flag, "s32", "rint"), p.sub(chosen, b)), b)
    return p.choose("ne", p.convert(flag, kind), 0.0, a, b)


def cast(p: Program, x: Value, dtype: str, boolean: bool = False) -> Value:
    """x in another type; to integers it truncates and saturates, to a boolean it asks for != 0."""
    if boolean:
        return x if x.dtype == "s8" else to_byte(p, holds(p, "ne", x, 0))
    if x.dtype == dtype:
        return x
    if x.dtype == "s8":
        half = p.convert(x, "f16")
        return p.convert(half, dtype, "trunc" if dtype == "s32" else "none")
    if dtype == "s32":
        return p.convert(x, "s32", "trunc")
    if dtype == "s8":
        if x.dtype == "f16":
            return p.convert(x, "s8", "trunc")
        integer = p.convert(x, "s32", "trunc")
        return p.convert(p.convert(p.convert(integer, "f32"), "f16"), "s8")
    return p.convert(p.convert(x, "f32"), dtype)


SCALE_DOWN = (32, 16, 8, 4, 2, 1)
SCALE_UP = (32, *SCALE_DOWN)
"""Exponents that are tried in turn to bring a number to [2^13, 2^15), twice each."""


def cube_scale(p: Program, x: Value) -> Value:
    """h = 2^k with x h h in [2^13, 2^15), by halving intervals; every factor is exact."""
    scale: Operand = 1.0
    for bits, predicate, limit in (
        *((-b, "ge", 2.0 ** (13 + 2 * b)) for b in SCALE_DOWN),
        *((b, "lt", 2.0 ** (15 - 2 * b)) for b in SCALE_UP),
    ):
        factor = p.choose(predicate, x, limit, 2.0**bits, 1.0)
        x = p.mul(p.mul(x, factor), factor)
        scale = p.mul(factor, scale) if isinstance(scale, Value) else factor
    assert isinstance(scale, Value)
    return scale


def half_part(p: Program, x: Value, part: int) -> Value:
    """The part as f16, after those before it are taken away."""
    for _ in range(part):
        x = p.sub(x, p.convert(p.convert(x, "f16"), "f32"))
    return p.convert(x, "f16")


def bitwise(p: Program, name: str, a: Operand, b: Operand) -> Value:
    """and, or, xor of 16-bit integers, or of booleans as products, maxima and differences."""
    kind = next(v.dtype for v in (a, b) if isinstance(v, Value))
    if kind == "s16":
        both = p.binary("vand", a, b)
        if name == "and":
            return both
        either = p.binary("vor", a, b)
        return either if name == "or" else p.binary("vand", either, p.unary("vnot", both))
    a, b = in_f16(p, a), in_f16(p, b)
    if name == "xor":
        return p.convert(p.unary("vabs", p.sub(a, b)), "s8")
    return p.convert(p.mul(a, b) if name == "and" else p.max(a, b), "s8")


UNARY: dict[str, Callable[[Program, Value], Value]] = {
    "exp": lambda p, x: p.unary("vexp", x),
    "log": lambda p, x: p.unary("vln", x),
    "sqrt": lambda p, x: p.unary("vsqrt", x),
    "rsqrt": lambda p, x: p.unary("vrsqrt", x),
    "relu": lambda p, x: p.unary("vrelu", x),
    "neg": negative,
    "abs": absolute,
    "sign": sign,
    "tanh": in_f32(tanh),
    "erf": in_f32(erf),
    "logistic": in_f32(logistic),
    "floor": in_f32(with_sign_of_zero("floor")),
    "ceil": in_f32(with_sign_of_zero("ceil")),
    "round": in_f32(with_sign_of_zero("rint")),
    "not": complement,
}

ARITHMETIC = {"add": "vadd", "sub": "vsub", "mul": "vmul", "max": "vmax", "min": "vmin"}
