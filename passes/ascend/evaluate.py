"""Values of ascend operations on known operands, computed with NumPy at compile time.

Arrays have the shapes of tensors, whatever their layouts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from davinci import operators
from davinci.dialects.ascend_shapes import Tensor
from davinci.elements import Array, dtype_of
from davinci.operators import OPERATORS, Elementwise

Evaluator = Callable[..., Any]

REDUCTIONS: dict[str, Evaluator] = {
    "add": np.sum,
    "max": np.max,
    "min": np.min,
    "mul": np.prod,
}


def evaluate(
    name: str, inputs: Sequence[Array], result: Tensor, attributes: dict[str, Any]
) -> Array | None:
    """The result of operation `ascend.<name>`, None for one that has no NumPy form here.

    Args:
        inputs: the operands.
        result: shape and element type of the result.
        attributes: attributes as Python values.
    """
    record = OPERATORS.get(name)
    if isinstance(record, Elementwise):
        plain = operators.Tensor(result.shape, str(result.element))
        return record.values(inputs, plain, attributes)
    with np.errstate(all="ignore"):
        found = OTHERS.get(name)
        return None if found is None else np.asarray(found(inputs, result, attributes))


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


def _view(inputs: Sequence[Array], result: Tensor, attributes: dict[str, Any]) -> Any:
    split = inputs[0].reshape(attributes["shape"])
    return split.transpose(attributes["permutation"]).reshape(result.shape)


OTHERS: dict[str, Evaluator] = {
    "copy": lambda inputs, *_: inputs[0],
    "broadcast": _broadcast,
    "reshape": lambda inputs, result, _: inputs[0].reshape(result.shape),
    "transpose": lambda inputs, _, attributes: inputs[0].transpose(attributes["permutation"]),
    "reduce": _reduce,
    "slice": _slice,
    "concat": lambda inputs, _, attributes: np.concatenate(inputs, attributes["dim"]),
    "pad": _pad,
    "iota": _iota,
    "gather": _gather,
    "relayout": lambda inputs, *_: inputs[0],
    "view": _view,
}
