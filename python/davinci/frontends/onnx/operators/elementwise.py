"""Arithmetic, comparisons, logic and operations on bits, element by element."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.tensor import (
    OnnxTensor,
    binary,
    constant,
    convert,
    spread,
    typed,
    unary,
)

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall

BINARY = {
    "Add": "add",
    "Sub": "subtract",
    "Mul": "multiply",
    "Div": "divide",
    "And": "and",
    "Or": "or",
    "Xor": "xor",
    "BitwiseAnd": "and",
    "BitwiseOr": "or",
    "BitwiseXor": "xor",
}

VARIADIC = {"Max": "maximum", "Min": "minimum", "Sum": "add"}

COMPARISONS = {
    "Equal": "EQ",
    "Greater": "GT",
    "GreaterOrEqual": "GE",
    "Less": "LT",
    "LessOrEqual": "LE",
}

UNARY = {
    "Acos": "chlo.acos",
    "Acosh": "chlo.acosh",
    "Asin": "chlo.asin",
    "Asinh": "chlo.asinh",
    "Atan": "chlo.atan",
    "Atanh": "chlo.atanh",
    "BitwiseNot": "not",
    "Ceil": "ceil",
    "Cos": "cosine",
    "Cosh": "chlo.cosh",
    "Exp": "exponential",
    "Floor": "floor",
    "Log": "log",
    "Neg": "negate",
    "Not": "not",
    "Round": "round_nearest_even",
    "Sigmoid": "logistic",
    "Sin": "sine",
    "Sinh": "chlo.sinh",
    "Sqrt": "sqrt",
    "Tan": "chlo.tan",
    "Tanh": "tanh",
}

NEAR = 1e-5
"""Relative distance at which a power computed in f32 may be the integer it is next to."""


@operator(*BINARY)
def lower_binary(node: NodeCall) -> OnnxTensor:
    node.ignore("consumed_inputs")
    a, b = node.take(0), _aligned(node, node.take(0), node.take(1))
    return binary(BINARY[node.op_type], a, b)


def _aligned(node: NodeCall, a: OnnxTensor, b: OnnxTensor) -> OnnxTensor:
    """Operand b, brought to the dimensions of a where operator sets before 7 say which."""
    if not node.given("broadcast") or not node.attr("broadcast"):
        node.ignore("axis")
        return b
    first = node.attr("axis") if node.given("axis") else a.rank - b.rank
    return ops.reshape(b, [*b.shape, *[1] * (a.rank - b.rank - first % max(1, a.rank))])


@operator(*VARIADIC)
def lower_variadic(node: NodeCall) -> OnnxTensor:
    node.ignore("consumed_inputs")
    return reduce(lambda a, b: binary(VARIADIC[node.op_type], a, b), node.tensors())


@operator("Mean")
def lower_mean(node: NodeCall) -> OnnxTensor:
    node.ignore("consumed_inputs")
    return reduce(lambda a, b: a + b, node.tensors()) / node.count


@operator(*COMPARISONS)
def lower_comparison(node: NodeCall) -> OnnxTensor:
    a, b = node.take(0), _aligned(node, node.take(0), node.take(1))
    return ops.compare(COMPARISONS[node.op_type], a, b)


@operator(*UNARY)
def lower_unary(node: NodeCall) -> OnnxTensor:
    node.ignore("consumed_inputs")
    return unary(UNARY[node.op_type], node.take(0))


@operator("Abs")
def lower_abs(node: NodeCall) -> OnnxTensor:
    node.ignore("consumed_inputs")
    return ops.absolute(node.take(0))


@operator("Erf")
def lower_erf(node: NodeCall) -> OnnxTensor:
    """Lowers Erf; results for integers are rounded towards zero."""
    x = node.take(0)
    return ops.erf(x) if x.is_float else convert(ops.erf(convert(x, np.float32)), x.dtype)


@operator("Sign")
def lower_sign(node: NodeCall) -> OnnxTensor:
    x = node.take(0)
    return convert(ops.as_bool(x), x.dtype) if x.is_unsigned else unary("sign", x)


@operator("Reciprocal")
def lower_reciprocal(node: NodeCall) -> OnnxTensor:
    node.ignore("consumed_inputs")
    return 1 / node.take(0)


@operator("Where")
def lower_where(node: NodeCall) -> OnnxTensor:
    return ops.where(node.take(0), node.take(1), node.take(2))


@operator("IsNaN")
def lower_is_nan(node: NodeCall) -> OnnxTensor:
    return ops.is_nan(node.take(0))


@operator("IsInf")
def lower_is_inf(node: NodeCall) -> OnnxTensor:
    x = node.take(0)
    signs = [("detect_negative", -np.inf), ("detect_positive", np.inf)]
    wanted = [value for name, value in signs if node.attr(name)]
    found = [ops.compare("EQ", x, value) for value in wanted]
    return reduce(lambda a, b: a | b, found) if found else ops.full(x.shape, np.bool_, False)


@operator("BitShift")
def lower_bit_shift(node: NodeCall) -> OnnxTensor:
    x, direction = node.take(0), node.attr("direction")
    if direction not in ("LEFT", "RIGHT"):
        node.refuse(f"direction {direction!r}", "LEFT or RIGHT")
    right = "shift_right_logical" if x.is_unsigned else "shift_right_arithmetic"
    return binary("shift_left" if direction == "LEFT" else right, x, node.take(1))


@operator("Mod")
def lower_mod(node: NodeCall) -> OnnxTensor:
    """With `fmod` the sign of the dividend, else that of the divisor, as Python's."""
    a, b = node.take(0), node.take(1)
    rest = ops.remainder(a, b)
    if node.attr("fmod") or a.is_unsigned:
        return rest
    differs = ops.compare("LT", rest, 0) ^ ops.compare("LT", b, 0)
    return ops.where(differs & ops.as_bool(rest), rest + b, rest)


@operator("Pow")
def lower_pow(node: NodeCall) -> OnnxTensor:
    """The result has the type of the base; where one of both is a float, it is computed as one."""
    x, exponent = node.take(0), _aligned(node, node.take(0), node.take(1))
    exponent = _whole(exponent)
    if x.is_float:
        return _float_power(x, convert(exponent, x.dtype))
    if exponent.is_integer:
        return ops.power(x, convert(exponent, x.dtype))
    precise = convert(x, np.float32)
    found = ops.power(precise, convert(exponent, np.float32))
    nearest = ops.round_half_even(found)
    close = ops.compare("LE", ops.absolute(found - nearest), NEAR * ops.absolute(nearest))
    return convert(ops.where(close, nearest, found), x.dtype)


def _whole(exponent: OnnxTensor) -> OnnxTensor:
    """A known exponent without fractions, of integers."""
    known = exponent.known
    if known is None or not exponent.is_float or not np.all(np.abs(known.astype(float)) < 64):
        return exponent
    whole = known.astype(np.int64)
    return constant(whole) if np.array_equal(whole, known) else exponent


def _float_power(x: OnnxTensor, exponent: OnnxTensor) -> OnnxTensor:
    known = exponent.known
    if known is not None and known.size and np.all(known == 0.5):
        base, _ = spread(*typed(x, exponent))
        return ops.sqrt(base)
    return ops.power(x, exponent)
