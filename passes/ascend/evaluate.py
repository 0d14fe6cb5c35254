"""Values of ascend operations on known operands, computed with NumPy at compile time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import erf as scalar_erf
from typing import Any

import numpy as np

from davinci.dialects.ascend_shapes import Tensor, fractal_shape
from davinci.elements import Array, dtype_of

Evaluator = Callable[..., Any]

BINARY: dict[str, Evaluator] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "pow": np.power,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}

UNARY: dict[str, Evaluator] = {
    "neg": np.negative,
    "abs": np.abs,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "tanh": np.tanh,
    "erf": np.vectorize(scalar_erf, otypes=[np.float64]),
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "sign": lambda x: np.where(x == 0, x, np.sign(x)),
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "relu": lambda x: np.maximum(x, 0),
    "not": np.invert,
    "copy": lambda x: x,
}

COMPARISONS: dict[str, Evaluator] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}

REDUCTIONS: dict[str, Evaluator] = {
    "add": np.sum,
    "max": np.max,
    "min": np.min,
    "mul": np.prod,
}


def cube_scale(x: Array) -> Array:
    """The power of two h with x h h in [2^13, 2^15), for x >= 0 of f32; see CubeScaleOp."""
    exponent = np.frexp(x)[1] - 1
    scale = np.ldexp(np.float32(1), (14 - exponent) // 2)
    special = np.where(x == 0, np.float32(2.0**95), np.where(np.isinf(x), np.float32(2.0**-63), 1))
    return np.where((x > 0) & np.isfinite(x), scale, special).astype(np.float32)


def half_part(x: Array, part: int) -> Array:
    """The part of f32 numbers as f16; see HalfPartOp."""
    for _ in range(part):
        x = x - x.astype(np.float16).astype(np.float32)
    return x.astype(np.float16)


def evaluate(
    name: str, inputs: Sequence[Array], result: Tensor, attributes: dict[str, Any]
) -> Array | None:
    """The result of operation `ascend.<name>`, None for one that has no NumPy form here.

    Args:
        inputs: the operands.
        result: shape and element type of the result.
        attributes: attributes as Python values.
    """
    dtype = dtype_of(result.element)
    with np.errstate(all="ignore"):
        if name in BINARY:
            return np.asarray(BINARY[name](*inputs), dtype)
        if name in UNARY:
            return np.asarray(UNARY[name](*inputs), dtype)
        found = OTHERS.get(name)
        return None if found is None else np.asarray(found(inputs, result, attributes))


def _div(inputs: Sequence[Array], result: Tensor, attributes: dict[str, Any]) -> Array:
    a, b = inputs
    if a.dtype.kind == "f":
        return np.asarray(np.divide(a, b), a.dtype)
    quotient = np.abs(a) // np.maximum(np.abs(b), 1)
    return np.asarray(quotient * np.sign(a) * np.sign(b), a.dtype)


def _compare(inputs: Sequence[Array], result: Tensor, attributes: dict[str, Any]) -> Any:
    return COMPARISONS[attributes["predicate"]](*inputs)


def _cast(inputs: Sequence[Array], result: Tensor, attributes: dict[str, Any]) -> Any:
    operand, dtype = inputs[0], dtype_of(result.element)
    if dtype == np.bool_:
        return operand != 0
    if operand.dtype == np.int32 and dtype == np.int8:
        return operand.clip(-128, 127).astype(dtype)
    if operand.dtype.kind == "f" and dtype.kind in "iu":
        return _saturated(operand.astype(np.float64), dtype)
    return operand.astype(dtype)


def _saturated(x: Array, dtype: Any) -> Array:
    """Whole numbers towards zero, the nearest there is beyond the range of `dtype`, 0 of NaN."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    above, below = x >= high + 1.0, x <= low - 1.0
    inside = np.where(above | below | np.isnan(x), 0, x).astype(dtype)
    return np.where(above, dtype.type(high), np.where(below, dtype.type(low), inside))


def _broadcast(inputs: Sequence[Array], result: Tensor, attributes: dict[str, Any]) -> Any:
    operand, dims = inputs[0], attributes["dims"]
    order = np.argsort(dims, kind="stable")
    spread = [1] * result.rank
    for i, dim in enumerate(dims):
        spread[dim] = operand.shape[i]
    return np.broadcast_to(operand.transpose(order).reshape(spread), result.shape)


def _reduce(inputs: Sequence[Array], result: Tensor, attributes: dict[str, Any]) -> Any:
    operand, kind, dims = inputs[0], attributes["kind"], tuple(attributes["dims"])
    wide = operand.astype(np.float32) if operand.dtype == np.float16 else operand
    return REDUCTIONS[kind](wide, axis=dims).astype(operand.dtype)


def _slice(inputs: Sequence[Array], result: Tensor, attributes: dict[str, Any]) -> Any:
    ranges = zip(attributes["starts"], attributes["limits"], attributes["strides"], strict=True)
    return inputs[0][tuple(slice(*bounds) for bounds in ranges)]


def _pad(inputs: Sequence[Array], result: Tensor, attributes: dict[str, Any]) -> Any:
    operand, value = inputs
    low, interior = attributes["low"], attributes["interior"]
    spread = [max(0, n + max(0, n - 1) * i) for n, i in zip(operand.shape, interior, strict=True)]
    opened = np.full(spread, value, operand.dtype)
    opened[tuple(slice(None, None, i + 1) for i in interior)] = operand
    padded = np.full(result.shape, value, operand.dtype)
    source = [
        slice(max(0, -lo), min(n, -lo + size))
        for lo, n, size in zip(low, spread, result.shape, strict=True)
    ]
    target = [slice(s.start + lo, s.stop + lo) for s, lo in zip(source, low, strict=True)]
    if all(s.stop > s.start for s in source):
        padded[tuple(target)] = opened[tuple(source)]
    return padded


def _iota(inputs: Sequence[Array], result: Tensor, attributes: dict[str, Any]) -> Any:
    dim = attributes["dim"]
    spread = [-1 if i == dim else 1 for i in range(result.rank)]
    count = np.arange(result.shape[dim]).astype(dtype_of(result.element))
    return np.broadcast_to(count.reshape(spread), result.shape)


def _gather(inputs: Sequence[Array], result: Tensor, attributes: dict[str, Any]) -> Any:
    table, indices = inputs
    return table[np.clip(indices, 0, len(table) - 1)]


def _fractalize(inputs: Sequence[Array], result: Tensor, attributes: dict[str, Any]) -> Any:
    operand = inputs[0]
    *batch, n1, m1, rows, columns = fractal_shape(operand.shape, result.element)
    m, n = operand.shape[-2:]
    width = [(0, 0)] * len(batch) + [(0, m1 * rows - m), (0, n1 * columns - n)]
    padded = np.pad(operand, width) if any(after for _, after in width) else operand
    blocks = padded.reshape(*batch, m1, rows, n1, columns)
    return np.moveaxis(blocks, -2, -4)


def _defractalize(inputs: Sequence[Array], result: Tensor, attributes: dict[str, Any]) -> Any:
    operand = inputs[0]
    *batch, n1, m1, rows, columns = operand.shape
    m, n = result.shape[-2:]
    matrix = np.moveaxis(operand, -4, -2).reshape(*batch, m1 * rows, n1 * columns)
    return matrix[..., :m, :n]


OTHERS: dict[str, Evaluator] = {
    "div": _div,
    "compare": _compare,
    "select": lambda inputs, *_: np.where(*inputs),
    "clamp": lambda inputs, *_: np.minimum(np.maximum(inputs[0], inputs[1]), inputs[2]),
    "cast": _cast,
    "broadcast": _broadcast,
    "cube_scale": lambda inputs, *_: cube_scale(inputs[0]),
    "half_part": lambda inputs, _, attributes: half_part(inputs[0], attributes["part"]),
    "reshape": lambda inputs, result, _: inputs[0].reshape(result.shape),
    "transpose": lambda inputs, _, attributes: inputs[0].transpose(attributes["permutation"]),
    "reduce": _reduce,
    "slice": _slice,
    "concat": lambda inputs, _, attributes: np.concatenate(inputs, attributes["dim"]),
    "pad": _pad,
    "iota": _iota,
    "gather": _gather,
    "fractalize": _fractalize,
    "defractalize": _defractalize,
}
