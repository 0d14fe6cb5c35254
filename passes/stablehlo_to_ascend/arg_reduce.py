"""Reductions to the largest or smallest value and its place: `argmax` and `argmin`.

before:
    %v, %p = stablehlo.reduce(%x init: %inf), (%places init: %zero) across dimensions = [1]
      reducer(%a, %c) (%b, %d) { "of two values the greater one, or NaN; of equal ones the lesser
                                  place" }
after:
    %v = ascend.reduce(%x) {kind = "max", dims = [1]}
    %p = ascend.reduce(select(x == v or x != x, places, most)) {kind = "min", dims = [1]}

Which body means that is not read off its spelling: it is computed for pairs of all kinds of values.
A long row is cut in parts: where the largest value lies is asked only of the part that has it.

    parts = reduce(%x as [rows, parts, length], "max"); %part = place(parts)
    %p = %part * length + place(gather_blocks(%x, %part))
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.elements import Array, to_array
from davinci.mlir import Op, ir
from davinci.operators.tensors import Tensor
from davinci.passes.ascend.tensor_ops import (
    CONSTANT,
    TensorOps,
    constant_array,
    defining_op,
    full_value,
)

LONG = 16384
"""Elements of a row above which it is cut."""

LEAST_PART, MOST_PART, LANES = 64, 1024, 64
"""Elements of a part: whole repeats of the vector unit."""

FLOATS = (np.nan, -np.inf, -1.5, 0.0, 2.0, np.inf)
INTEGERS = (-7, 0, 2, 3)
PLACES = (0, 3, 7)
"""Values and places of the pairs that a body is tried with."""

COMPARED: dict[str, Callable[..., Array]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}
COMPUTED: dict[str, Callable[..., Array]] = {
    "stablehlo.and": np.logical_and,
    "stablehlo.or": np.logical_or,
    "stablehlo.xor": np.logical_xor,
    "stablehlo.not": np.logical_not,
    "stablehlo.select": np.where,
    "stablehlo.maximum": np.maximum,
    "stablehlo.minimum": np.minimum,
}
"""What bodies may consist of, beside comparisons and constants; logic is of booleans."""


def extreme_and_place(op: Op, ops: TensorOps) -> Sequence[ir.Value] | None:
    """The largest or smallest values along a dimension, and their places; None if a reduction is
    anything else."""
    x, places, start, first = op.operands
    found, dims = tensor_of(x.type), list(attribute(op, "dimensions"))
    place = tensor_of(places.type)
    if len(dims) != 1 or not found.count or place.element not in ("i32", "i64"):
        return None
    if found.element not in ("f32", "f16", "i32") or not is_iota(places, dims[0]):
        return None
    value, begins = full_value(start), full_value(first)
    if value is None or begins is None or int(begins) != 0:
        return None
    for kind in ("max", "min"):
        if value == worst(kind, found.element) and chooses(op, kind, found.element):
            return _found(x, places, dims[0], kind, ops)
    return None


def worst(kind: str, element: str) -> float | int:
    """The value that no other one is worse than."""
    if element[0] == "f":
        return -np.inf if kind == "max" else np.inf
    limits = np.iinfo(np.int32)
    return int(limits.min if kind == "max" else limits.max)


def is_iota(value: ir.Value, dim: int) -> bool:
    """Whether a value counts along a dimension from 0."""
    owner = defining_op(value)
    if owner is None:
        return False
    if owner.name == "ascend.broadcast" and list(attribute(owner, "dims")) == [dim]:
        return is_iota(owner.operands[0], 0)
    if owner.name == "ascend.iota":
        return bool(attribute(owner, "dim") == dim)
    if owner.name != CONSTANT:
        return False
    found = constant_array(owner)
    spread = [-1 if d == dim else 1 for d in range(found.ndim)]
    return bool((found == np.arange(found.shape[dim]).reshape(spread)).all())


def chooses(op: Op, kind: str, element: str) -> bool:
    """Whether the body of a reduction in the order of places leaves the better of two values, NaN
    as the best one, with its place, and of equal values the lesser place."""
    values = FLOATS if element[0] == "f" else INTEGERS
    for a, b in itertools.product(values, values):
        for i, j in itertools.combinations(PLACES, 2):
            found = computed(op.regions[0].blocks[0], (a, i, b, j))
            if found is None:
                return False
            better = b > a if kind == "max" else b < a
            later = a == a and (b != b or better)
            value, place = (b, j) if later else (a, i)
            if int(found[1]) != place or not np.array_equal(found[0], value, equal_nan=True):
                return False
    return True


def computed(block: ir.Block, arguments: Sequence[object]) -> list[Array] | None:
    """What a body makes of its arguments; None if it computes anything unknown."""
    known: dict[ir.Value, Array] = dict(
        zip(block.arguments, map(np.asarray, arguments), strict=True)
    )
    for view in block.operations:
        inner = view.operation
        values = [known[operand] for operand in inner.operands if operand in known]
        if len(values) < len(inner.operands):
            return None
        if inner.name == "stablehlo.return":
            return values
        if inner.name == "stablehlo.constant":
            result = to_array(inner.attributes["value"])
        elif inner.name == "stablehlo.compare":
            direction = str(inner.attributes["comparison_direction"]).split()[-1].rstrip(">")
            result = COMPARED[direction](*values)
        elif inner.name in COMPUTED:
            result = COMPUTED[inner.name](*values)
        else:
            return None
        known[inner.results[0]] = np.asarray(result)
    return None


def _found(x: ir.Value, places: ir.Value, dim: int, kind: str, ops: TensorOps) -> list[ir.Value]:
    """The values and their places, of the type that `places` has, which counts along `dim`."""
    shape, element = tensor_of(x.type).shape, tensor_of(places.type).element
    length = part_of(shape[dim]) if dim == len(shape) - 1 else 0
    if length:
        value, place = _in_parts(x, length, kind, ops)
    else:
        value, place = _whole(x, ops.cast(places, "i32"), dim, kind, ops)
    return [value, ops.cast(place, element)]


def part_of(size: int) -> int:
    """Elements of the parts of a long row: a divisor of its size, 0 if there is none or the row is
    not long."""
    lengths = (n for n in range(LEAST_PART, MOST_PART + 1, LANES) if size % n == 0)
    return max(lengths, default=0) if size > LONG else 0


def _in_parts(x: ir.Value, length: int, kind: str, ops: TensorOps) -> tuple[ir.Value, ir.Value]:
    """The largest value of each part first, then the part that has the largest of these, which is
    gathered, and the place in it."""
    found = tensor_of(x.type)
    *outer, size = found.shape
    rows, parts = math.prod(outer), size // length
    cut = ops.reshape(x, [rows, parts, length])
    best = ops.reduce(ops.reshape(x, [rows * parts, length]), kind, [1])
    _, part = _counted(ops.reshape(best, [rows, parts]), kind, ops)
    block = ops.emit(
        "gather_blocks",
        [cut, ops.reshape(part, [rows, 1])],
        replace(found, shape=(rows, 1, 1, length)),
        axes=[1],
        starts=[0, 0, 0],
        batch=[1, 0, 0],
        wrap=[0],
    )
    value, place = _counted(ops.reshape(block, [rows, length]), kind, ops)
    before = ops.binary("mul", part, ops.full((rows,), "i32", length))
    return ops.reshape(value, outer), ops.reshape(ops.binary("add", before, place), outer)


def _counted(x: ir.Value, kind: str, ops: TensorOps) -> tuple[ir.Value, ir.Value]:
    """The values of the rows of a matrix, and their places."""
    found = tensor_of(x.type)
    size = found.shape[1]
    numbers = ops.array(np.arange(size, dtype=np.int32), Tensor((size,), "i32"))
    return _whole(x, ops.broadcast(numbers, found.shape, [1]), 1, kind, ops)


def _whole(
    x: ir.Value, places: ir.Value, dim: int, kind: str, ops: TensorOps
) -> tuple[ir.Value, ir.Value]:
    """The values along a dimension, and their places, of i32."""
    found, numbers = tensor_of(x.type), tensor_of(places.type)
    value = ops.reduce(x, kind, [dim])
    spread = ops.broadcast(value, found.shape, [d for d in range(found.rank) if d != dim])
    hits = compared("EQ", x, spread, ops)
    if found.element[0] == "f":
        hits = ops.binary("or", hits, compared("NE", x, x, ops))
    behind = ops.full(found.shape, "i32", found.shape[dim])
    return value, ops.reduce(ops.emit("select", [hits, places, behind], numbers), "min", [dim])


def compared(predicate: str, a: ir.Value, b: ir.Value, ops: TensorOps) -> ir.Value:
    """Where a predicate holds."""
    result = replace(tensor_of(a.type), element="i1")
    return ops.emit("compare", [a, b], result, predicate=predicate)
