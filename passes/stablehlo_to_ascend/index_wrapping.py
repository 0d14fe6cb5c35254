"""Negative indices that count from the end, as JAX and ONNX write them, become marks of the
operations that take the indices: the kernels that read them wrap them by the way.

before:
    %neg = stablehlo.compare LT, %i, %zero
    %end = stablehlo.add %i, %c100
    %at = stablehlo.select %neg, %end, %i
    %r = stablehlo.dynamic_update_slice %cache, %new, %at, %zero : (tensor<100x64xf32>, ..)
after:
    %r = stablehlo.dynamic_update_slice %cache, %new, %i, %zero {ascend.wrap = array<i64: 1, 0>}
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import as_attribute, attribute
from davinci.elements import Array, to_array
from davinci.mlir import Op, ir, stablehlo
from davinci.passes import builder

WRAP = "ascend.wrap"
"""Attribute of an operation with indices: 1 for each column of them, or each start, whose negative
values count from the end."""

SAME_ELEMENTS = ("stablehlo.reshape", "stablehlo.broadcast_in_dim")


def wrapped(op: Op) -> list[int]:
    """The mark of an operation, empty if no index of it wraps."""
    return list(attribute(op, WRAP, ()))


def unwrap_indices(block: ir.Block) -> None:
    """Marks the operations of a block, and erases what nobody needs any more."""
    for view in list(block.operations):
        op = view.operation
        if op.name in ("stablehlo.dynamic_slice", "stablehlo.dynamic_update_slice"):
            _unwrap_starts(op, 1 + (op.name == "stablehlo.dynamic_update_slice"))
        elif op.name == "stablehlo.gather":
            numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
            _unwrap_columns(op, list(numbers.start_index_map), numbers.index_vector_dim)
        elif op.name == "stablehlo.scatter" and len(op.results) == 1:
            given = op.attributes["scatter_dimension_numbers"]
            places = stablehlo.ScatterDimensionNumbers(given)
            axes = list(places.scattered_dims_to_operand_dims)
            _unwrap_columns(op, axes, places.index_vector_dim)


def _unwrap_starts(op: Op, first: int) -> None:
    shape = tensor_of(op.operands[0].type).shape
    marks = []
    for number, size in enumerate(shape, first):
        found = unwrapped(op.operands[number], [size], 0)
        marks.append(int(found is not None))
        if found is not None:
            _replace(op, number, found)
    if any(marks):
        op.attributes[WRAP] = as_attribute(marks)


def _unwrap_columns(op: Op, axes: Sequence[int], vector: int) -> None:
    shape = tensor_of(op.operands[0].type).shape
    found = unwrapped(op.operands[1], [shape[axis] for axis in axes], vector)
    if found is not None:
        _replace(op, 1, found)
        op.attributes[WRAP] = as_attribute([1] * len(axes))


def _replace(op: Op, number: int, value: ir.Value) -> None:
    before = op.operands[number]
    op.operands[number] = value
    _erase_unused(before)


def _erase_unused(value: ir.Value) -> None:
    """Erases what computes a value, as far as nothing else needs it."""
    owner = value.owner
    if isinstance(owner, ir.Block) or any(True for result in owner.results for _ in result.uses):
        return
    operands = list(owner.operands)
    owner.erase()
    for operand in dict.fromkeys(operands):
        _erase_unused(operand)


def unwrapped(value: ir.Value, sizes: Sequence[int], vector: int) -> ir.Value | None:
    """The indices behind select(index < 0, index + size, index), None if a value is not that.

    Args:
        sizes: of the dimensions that the columns index.
        vector: the dimension of the columns; the rank, or more, if there is none.
    """
    op = value.owner
    if isinstance(op, ir.Block):
        return None
    if op.name in SAME_ELEMENTS and len(sizes) == 1:
        source = op.operands[0]
        if tensor_of(source.type).count != tensor_of(value.type).count:
            return None
        inner = unwrapped(source, sizes, len(source.type.shape))
        if inner is None:
            return None
        with op.location, ir.InsertionPoint(op):
            return builder.op("stablehlo.reshape", [inner], [value.type]).result
    if op.name != "stablehlo.select":
        return None
    negative, moved, index = op.operands
    return (
        index if _is_negative(negative, index) and _is_moved(moved, index, sizes, vector) else None
    )


def _is_negative(value: ir.Value, index: ir.Value) -> bool:
    op = value.owner
    if isinstance(op, ir.Block) or op.name != "stablehlo.compare":
        return False
    less = str(op.attributes["comparison_direction"]).split()[-1].rstrip(">")
    zero = _known(op.operands[1])
    return less == "LT" and op.operands[0] == index and zero is not None and not zero.any()


def _is_moved(value: ir.Value, index: ir.Value, sizes: Sequence[int], vector: int) -> bool:
    """Whether a value is the index and, in each column, the size of its dimension."""
    op = value.owner
    if isinstance(op, ir.Block) or op.name != "stablehlo.add":
        return False
    others = [operand for operand in op.operands if operand != index]
    added = _known(others[0]) if len(others) == 1 else None
    if added is None:
        return False
    wanted = np.array(sizes[0] if vector >= added.ndim else sizes)
    if vector < added.ndim:
        wanted = wanted.reshape([-1 if d == vector else 1 for d in range(added.ndim)])
    return bool((added == wanted).all())


def _known(value: ir.Value) -> Array | None:
    """The array of a constant, also of one that is spread; None of other values."""
    op = value.owner
    if isinstance(op, ir.Block):
        return None
    if op.name == "stablehlo.constant":
        return to_array(op.attributes["value"])
    if op.name == "stablehlo.broadcast_in_dim":
        known, shape = _known(op.operands[0]), list(value.type.shape)
        if known is None:
            return None
        dims = list(attribute(op, "broadcast_dimensions"))
        spread = [1] * len(shape)
        for size, dim in zip(known.shape, dims, strict=True):
            spread[dim] = size
        return np.broadcast_to(known.reshape(spread), shape)
    if op.name == "stablehlo.reshape":
        known = _known(op.operands[0])
        return None if known is None else known.reshape(list(value.type.shape))
    return None
