"""Arithmetic, comparisons and activations, element by element."""

from __future__ import annotations

import math
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.tensor import Tensor, binary, convert, unary

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import Call

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
    "Erf": "chlo.erf",
    "Exp": "exponential",
    "Floor": "floor",
    "Log": "log",
    "Neg": "negate",
    "Not": "not",
    "Round": "round_nearest_even",
    "Sigmoid": "logistic",
    "Sign": "sign",
    "Sin": "sine",
    "Sinh": "chlo.sinh",
    "Sqrt": "sqrt",
    "Tan": "chlo.tan",
    "Tanh": "tanh",
}


@operator(*BINARY)
def lower_binary(node: Call) -> Tensor:
    node.ignore("consumed_inputs")
    a, b = node.take(0), _aligned(node, node.take(0), node.take(1))
    return binary(BINARY[node.op_type], a, b)


def _aligned(node: Call, a: Tensor, b: Tensor) -> Tensor:
    """Operand b, brought to the dimensions of a where operator sets before 7 say which."""
    if not node.given("broadcast") or not node.attr("broadcast"):
        node.ignore("axis")
        return b
    first = node.attr("axis") if node.given("axis") else a.rank - b.rank
    return ops.reshape(b, [*b.shape, *[1] * (a.rank - b.rank - first % max(1, a.rank))])


@operator(*VARIADIC)
def lower_variadic(node: Call) -> Tensor:
    node.ignore("consumed_inputs")
    return reduce(lambda a, b: binary(VARIADIC[node.op_type], a, b), node.tensors())


@operator(*COMPARISONS)
def lower_comparison(node: Call) -> Tensor:
    a, b = node.take(0), _aligned(node, node.take(0), node.take(1))
    return ops.compare(COMPARISONS[node.op_type], a, b)


@operator(*UNARY)
def lower_unary(node: Call) -> Tensor:
    node.ignore("consumed_inputs")
    return unary(UNARY[node.op_type], node.take(0))


@operator("Abs")
def lower_abs(node: Call) -> Tensor:
    return ops.absolute(node.take(0))


@operator("Reciprocal")
def lower_reciprocal(node: Call) -> Tensor:
    return 1 / node.take(0)


@operator("Where")
def lower_where(node: Call) -> Tensor:
    return ops.where(node.take(0), node.take(1), node.take(2))


@operator("Cast")
def lower_cast(node: Call) -> Tensor:
    x, dtype = node.take(0), node.dtype("to")
    node.ignore("saturate", "round_mode")
    return ops.as_bool(x) if dtype == np.bool_ else convert(x, dtype)


@operator("Clip")
def lower_clip(node: Call) -> Tensor:
    """Of operator sets before 11 the bounds are attributes."""
    x = node.take(0)
    low = node.attr("min") if node.given("min") else node.optional(1)
    high = node.attr("max") if node.given("max") else node.optional(2)
    x = x if low is None else ops.maximum(x, low)
    return x if high is None else ops.minimum(x, high)


@operator("Relu")
def lower_relu(node: Call) -> Tensor:
    return ops.maximum(node.take(0), 0)


@operator("LeakyRelu")
def lower_leaky_relu(node: Call) -> Tensor:
    x = node.take(0)
    return ops.where(ops.compare("GE", x, 0), x, x * node.attr("alpha"))


@operator("Gelu")
def lower_gelu(node: Call) -> Tensor:
    x = node.take(0)
    if node.attr("approximate") == "tanh":
        return x * 0.5 * (1 + ops.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))))
    return x * 0.5 * (1 + ops.erf(x * math.sqrt(0.5)))
