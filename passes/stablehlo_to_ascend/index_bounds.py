"""Between which numbers each element of a small tensor of indices lies, as far as the operations
that make it tell: an array of lowest and one of highest numbers, in the shape of the tensor.

    %0 = stablehlo.concatenate %rows, %zeros, dim = 1      columns [-2^31, 2^31 - 1] and [0, 0]
    %1 = stablehlo.clamp %none, %0, %most                  columns [0, 63] and [0, 0]

So they know a column apart from others, which `integer_ranges`, with one range a tensor, does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from davinci.dialects.base import attribute
from davinci.elements import to_array
from davinci.mlir import Op, ir
from davinci.passes.stablehlo_to_ascend.integer_ranges import is_integer, range_of_type

Numbers = npt.NDArray[np.int64]
Bounds = tuple[Numbers, Numbers]
"""The lowest and the highest numbers of a tensor's elements, both included."""

MOST_ELEMENTS = 1 << 16
"""Tensors with more elements are not looked into."""

LARGEST = (1 << 63) - 1
"""What stands for higher bounds, which only unsigned integers of 64 bits have."""


def bounds_of(value: ir.Value) -> Bounds:
    """The bounds of a tensor of integers of a static shape."""
    owner = value.owner
    if not isinstance(owner, ir.Block) and math.prod(value.type.shape) <= MOST_ELEMENTS:
        found = _of_result(owner)
        if found is not None and _fit(found, value.type):
            return found
    return _unknown(value.type)


def known_indices(value: ir.Value) -> Numbers | None:
    """The numbers of a tensor of integers, if all are known."""
    low, high = bounds_of(value)
    return low if (low == high).all() else None


def _unknown(kind: ir.ShapedType) -> Bounds:
    low, high = range_of_type(kind)
    shape = list(kind.shape)
    return np.full(shape, low, np.int64), np.full(shape, min(high, LARGEST), np.int64)


def _fit(found: Bounds, kind: ir.ShapedType) -> bool:
    """Whether bounds lie in the range of a type; what leaves it wraps around."""
    least, most = range_of_type(kind)
    return bool((found[0] >= least).all() and (found[1] <= min(most, LARGEST)).all())


def _of_result(op: Op) -> Bounds | None:
    """The bounds of the result of an operation, None of one that is not known here."""
    name = op.name.removeprefix("stablehlo.")
    if name == "constant" and is_integer(op.results[0].type):
        array = to_array(op.attributes["value"]).astype(np.int64)
        return array, array
    if name not in RULES or not all(is_integer(value.type) for value in op.operands):
        return None
    return RULES[name](op)


def _of_each(op: Op, compute: Callable[..., Numbers]) -> Bounds:
    """A function that grows with each of its operands, of the lower and of the higher bounds."""
    given = [bounds_of(value) for value in op.operands]
    low, high = (compute(*(each[end] for each in given)) for end in range(2))
    return low, high


def _sum(op: Op) -> Bounds | None:
    """Of integers of fewer than 64 bits, whose sums these bounds hold."""
    if op.results[0].type.element_type.width >= 64:
        return None
    return _of_each(op, np.add)


def _chosen(op: Op) -> Bounds:
    (low, high), others = map(bounds_of, op.operands[1:])
    return np.minimum(low, others[0]), np.maximum(high, others[1])


def _repeated(op: Op) -> Bounds:
    shape = list(op.results[0].type.shape)
    dims = list(attribute(op, "broadcast_dimensions"))

    def spread(array: Numbers) -> Numbers:
        sizes = [1] * len(shape)
        for size, dim in zip(array.shape, dims, strict=True):
            sizes[dim] = size
        turned = array.transpose(np.argsort(dims, kind="stable"))
        return np.broadcast_to(turned.reshape(sizes), shape)

    return _of_each(op, spread)


def _reshaped(op: Op) -> Bounds:
    return _of_each(op, lambda array: array.reshape(list(op.results[0].type.shape)))


def _joined(op: Op) -> Bounds:
    return _of_each(op, lambda *parts: np.concatenate(parts, int(attribute(op, "dimension"))))


RULES: dict[str, Callable[[Op], Bounds | None]] = {
    "add": _sum,
    "broadcast_in_dim": _repeated,
    "clamp": lambda op: _of_each(op, lambda low, x, high: np.minimum(np.maximum(low, x), high)),
    "concatenate": _joined,
    "convert": lambda op: _of_each(op, lambda array: array),
    "maximum": lambda op: _of_each(op, np.maximum),
    "minimum": lambda op: _of_each(op, np.minimum),
    "reshape": _reshaped,
    "select": _chosen,
}
"""The bounds of an operation's result from those of its operands, which are integers."""
