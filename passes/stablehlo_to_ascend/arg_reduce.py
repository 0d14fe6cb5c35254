"""Reductions to the largest or smallest value and its place: `argmax` and `argmin`.

before:
    %v, %p = stablehlo.reduce(%x init: %inf), (%places init: %zero) across dimensions = [1]
      reducer(%a, %c) (%b, %d) { "of two values the greater one, or NaN; of equal ones the lesser
                                  place" }
after:
    %v = ascend.reduce(%x) {kind = "max", dims = [1]}
    %p = ascend.reduce(select(x == v or x != x, places, most)) {kind = "min", dims = [1]}

Which body means that is not read off its spelling: it is computed for pairs of all kinds of values.
Integers of 16 bits and fewer are compared as i32, others without a sign lower by half of their
range.
A long row is cut in parts: where the largest value lies is asked only of the part that has it.

    parts = reduce(%x as [rows, parts, length], "max"); %part = place(parts)
    %p = %part * length + place(gather_blocks(%x, %part))
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.elements import Array, to_array
from davinci.mlir import Op, ir
from davinci.operators.tensors import Tensor, width_of
from davinci.passes.ascend.tensor_ops import (
    CONSTANTS,
    TensorOps,
    constant_array,
    defining_op,
    full_value,
)
from davinci.passes.stablehlo_to_ascend.reduced_values import KINDS_OF_ORDER, neutral, reduced_by
from davinci.passes.stablehlo_to_ascend.wider_integers import low_bits

LONG = 16384
"""Elements of a row above which it is cut."""

LEAST_PART, MOST_PART, LANES = 64, 1024, 64
"""Elements of a part: whole repeats of the vector unit."""

FLOATS = (np.nan, -np.inf, -1.5, 0.0, 2.0, np.inf)
PLACES = (0, 3, 7)
"""Values and places of the pairs that a body is tried with."""

NARROW = ("i1", "i8", "ui8", "i16")
TYPES = ("f32", "f16", "i32", "i64", *NARROW)

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
    "stablehlo.add": np.add,
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
    if found.element not in TYPES or not is_iota(places, dims[0]):
        return None
    value, begins = full_value(start), full_value(first)
    if value is None or begins is None or int(begins) != 0:
        return None
    for kind, dtype in itertools.product(KINDS_OF_ORDER, orders_of(value.dtype)):
        if value.view(dtype) == neutral(kind, dtype) and chooses(op, kind, value.dtype, dtype):
            best, number = _found(keys_of(x, dtype, ops), places, dims[0], kind, ops)
            unsigned = dtype != value.dtype and found.element not in NARROW
            best = moved(best, ops) if unsigned else best
            return [low_bits(best, found.element, ops), number]
    return None


def keys_of(x: ir.Value, order: np.dtype[Any], ops: TensorOps) -> ir.Value:
    """What has the order of values compared as a NumPy type, on the vector unit."""
    element = tensor_of(x.type).element
    unsigned = order.kind == "u" and element[0] == "i"
    if element not in NARROW:
        return moved(x, ops) if unsigned else x
    word = ops.cast(x, "i32")
    if not unsigned:
        return word
    shape = tensor_of(x.type).shape
    return ops.binary("and", word, ops.full(shape, "i32", (1 << width_of(element)) - 1))


def orders_of(stored: np.dtype[Any]) -> list[np.dtype[Any]]:
    """The types whose order a body may compare values by: of integers with a sign and without."""
    both = stored.kind == "i" and stored.itemsize > 1
    return [stored, np.dtype(f"u{stored.itemsize}")] if both else [stored]


def moved(x: ir.Value, ops: TensorOps) -> ir.Value:
    """Integers lower by half of their range."""
    found = tensor_of(x.type)
    half = np.iinfo(f"i{width_of(found.element) // 8}").min
    return ops.binary("add", x, ops.full(found.shape, found.element, half))


def tried(dtype: np.dtype[Any]) -> Array:
    """The values that a body is tried with."""
    if dtype.kind == "f":
        return np.array(FLOATS, dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    ends = np.iinfo(dtype)
    return np.array([ends.min, ends.min + 1, 2, 3, ends.max - 2, ends.max], dtype)


def is_iota(value: ir.Value, dim: int) -> bool:
    """Whether a value counts along a dimension from 0."""
    owner = defining_op(value)
    if owner is None:
        return False
    if owner.name == "ascend.broadcast" and list(attribute(owner, "dims")) == [dim]:
        return is_iota(owner.operands[0], 0)
    if owner.name == "ascend.iota":
        return bool(attribute(owner, "dim") == dim)
    if owner.name not in CONSTANTS:
        return False
    found = constant_array(owner)
    spread = [-1 if d == dim else 1 for d in range(found.ndim)]
    return bool((found == np.arange(found.shape[dim]).reshape(spread)).all())


def chooses(op: Op, kind: str, stored: np.dtype[Any], order: np.dtype[Any]) -> bool:
    """Whether the body of a reduction in the order of places leaves the better of two values, NaN
    as the best one, with its place, and of equal values the lesser place.

    Args:
        stored: the type of the values.
        order: the type of the same bits by whose order one is better.
    """
    values = tried(order)
    for a, b in itertools.product(values, values):
        for i, j in itertools.combinations(PLACES, 2):
            given = (a.view(stored), i, b.view(stored), j)
            found = computed(op.regions[0].blocks[0], given)
            if found is None:
                return False
            better = b > a if kind == "max" else b < a
            later = a == a and (b != b or better)
            value, place = (b, j) if later else (a, i)
            same = np.array_equal(found[0], value.view(stored), equal_nan=True)
            if int(found[1]) != place or not same:
                return False
    return True


def computed(block: ir.Block, arguments: Sequence[object]) -> list[Array] | None:
    """What a body makes of its arguments; None if it computes anything unknown."""
    known: dict[ir.Value, Array] = dict(
        zip(block.arguments, map(np.asarray, arguments), strict=True)
    )
    for view in block.operations:
        inner = view.operation
        read = [known.get(v, full_value(v)) for v in inner.operands]  # numbers may lie outside
        values = [value for value in read if value is not None]
        if len(values) < len(read):
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
        value, place = extreme(x, ops.cast(places, "i32"), shape[dim], dim, kind, ops)
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
    best = reduced_by(ops.reshape(x, [rows * parts, length]), kind, [1], ops)
    assert best is not None, "there are extremes of every type"
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
    return extreme(x, ops.broadcast(numbers, found.shape, [1]), size, 1, kind, ops)


def extreme(
    x: ir.Value, places: ir.Value, behind: int, dim: int, kind: str, ops: TensorOps
) -> tuple[ir.Value, ir.Value]:
    """The extreme values along a dimension, NaN where there is one, and their least places.

    Args:
        places: of all values, of i32.
        behind: what all places are less than.
    """
    found, numbers = tensor_of(x.type), tensor_of(places.type)
    value = reduced_by(x, kind, [dim], ops)
    assert value is not None, "there are extremes of every type"
    hits = compared("EQ", x, spread_along(value, dim, found.shape, ops), ops)
    if found.element[0] == "f":
        hits = ops.binary("or", hits, compared("NE", x, x, ops))
    none = ops.full(found.shape, "i32", behind)
    return value, ops.reduce(ops.emit("select", [hits, places, none], numbers), "min", [dim])


def spread_along(x: ir.Value, dim: int, shape: Sequence[int], ops: TensorOps) -> ir.Value:
    """An array that lacks a dimension of a shape, repeated along it."""
    return ops.broadcast(x, shape, [d for d in range(len(shape)) if d != dim])


def compared(predicate: str, a: ir.Value, b: ir.Value, ops: TensorOps) -> ir.Value:
    """Where a predicate holds."""
    result = replace(tensor_of(a.type), element="i1")
    return ops.emit("compare", [a, b], result, predicate=predicate)
