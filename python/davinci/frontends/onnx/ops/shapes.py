"""Views, cuts and joins; axes may be negative."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from davinci.frontends.onnx.tensor import BadNode, OnnxTensor, Operand, emit, typed


def axis_of(axis: int, rank: int) -> int:
    """`axis` counted from the front.

    Raises:
        Invalid: it is not one of `rank` dimensions.
    """
    if not -rank <= axis < rank:
        raise BadNode(
            f"axis {axis} is not one of a tensor of rank {rank}", f"{-rank} to {rank - 1}"
        )
    return axis % rank


def axes_of(axes: Sequence[int], rank: int) -> list[int]:
    """Axes counted from the front, in ascending order.

    Raises:
        Invalid: one is none of `rank` dimensions, or given twice.
    """
    found = sorted(axis_of(int(axis), rank) for axis in axes)
    if len(set(found)) != len(found):
        raise BadNode(f"axes {list(axes)} name a dimension twice")
    return found


def reshape(x: OnnxTensor, shape: Sequence[int]) -> OnnxTensor:
    """The same elements, row-major.

    Raises:
        Invalid: `shape` holds another number of elements.
    """
    if math.prod(shape) != x.count:
        raise BadNode(f"{x.count} elements cannot take the shape {list(shape)}")
    return x if x.shape == tuple(shape) else emit("reshape", [x], x.dtype, shape)


def expand_dims(x: OnnxTensor, axes: Sequence[int]) -> OnnxTensor:
    """`x` with dimensions of size 1 at `axes` of the result."""
    rank = x.rank + len(axes)
    new, sizes = axes_of(axes, rank), iter(x.shape)
    return reshape(x, [1 if i in new else next(sizes) for i in range(rank)])


def squeeze(x: OnnxTensor, axes: Sequence[int]) -> OnnxTensor:
    """`x` without the dimensions `axes`, which have size 1."""
    gone = axes_of(axes, x.rank)
    if any(x.shape[i] != 1 for i in gone):
        raise BadNode(f"dimensions {gone} of shape {list(x.shape)} are not all of size 1")
    return reshape(x, [size for i, size in enumerate(x.shape) if i not in gone])


def transpose(x: OnnxTensor, order: Sequence[int]) -> OnnxTensor:
    """Dimension i of the result is dimension order[i] of `x`."""
    if list(order) == list(range(x.rank)):
        return x
    if sorted(order) != list(range(x.rank)):
        raise BadNode(f"{list(order)} is no order of {x.rank} dimensions")
    return emit("transpose", [x], x.dtype, [x.shape[i] for i in order], permutation=list(order))


def move_axis(x: OnnxTensor, source: int, target: int) -> OnnxTensor:
    order = [i for i in range(x.rank) if i != axis_of(source, x.rank)]
    order.insert(axis_of(target, x.rank), axis_of(source, x.rank))
    return transpose(x, order)


def cut(
    x: OnnxTensor,
    starts: Sequence[int],
    limits: Sequence[int],
    strides: Sequence[int] | None = None,
) -> OnnxTensor:
    """A slice with non-negative bounds and positive strides, for every dimension."""
    steps = list(strides or [1] * x.rank)
    shape = [max(0, -((a - b) // s)) for a, b, s in zip(starts, limits, steps, strict=True)]
    if tuple(shape) == x.shape:
        return x
    limits = [max(a, b) for a, b in zip(starts, limits, strict=True)]
    return emit(
        "slice",
        [x],
        x.dtype,
        shape,
        start_indices=list(starts),
        limit_indices=list(limits),
        strides=steps,
    )


def cut_axis(x: OnnxTensor, axis: int, start: int, limit: int, stride: int = 1) -> OnnxTensor:
    """A slice of one dimension."""
    at = axis_of(axis, x.rank)
    starts, limits, strides = [0] * x.rank, list(x.shape), [1] * x.rank
    starts[at], limits[at], strides[at] = start, limit, stride
    return cut(x, starts, limits, strides)


def split(x: OnnxTensor, axis: int, sizes: Sequence[int]) -> list[OnnxTensor]:
    """Parts of these sizes along an axis."""
    if sum(sizes) != x.shape[axis]:
        raise BadNode(f"parts of {list(sizes)} do not make {x.shape[axis]}")
    ends = np.cumsum([0, *sizes]).tolist()
    return [cut_axis(x, axis, a, b) for a, b in pairwise(ends)]


def unstack(x: OnnxTensor, axis: int) -> list[OnnxTensor]:
    """The slices of an axis, without it."""
    return [squeeze(part, [axis]) for part in split(x, axis, [1] * x.shape[axis])]


def concat(parts: Sequence[OnnxTensor], axis: int) -> OnnxTensor:
    """Tensors of one type behind each other along an axis."""
    parts = typed(*parts)
    at = axis_of(axis, parts[0].rank)
    if len({t.shape[:at] + t.shape[at + 1 :] for t in parts}) > 1:
        text = ", ".join(str(list(t.shape)) for t in parts)
        raise BadNode(f"shapes {text} differ outside of axis {at}")
    if len(parts) == 1:
        return parts[0]
    shape = list(parts[0].shape)
    shape[at] = sum(t.shape[at] for t in parts)
    return emit("concatenate", parts, parts[0].dtype, shape, dimension=at)


def stack(parts: Sequence[OnnxTensor], axis: int = 0) -> OnnxTensor:
    """Tensors of one shape along a new axis."""
    at = axis_of(axis, parts[0].rank + 1)
    return concat([expand_dims(part, [at]) for part in parts], at)


def pad(
    x: OnnxTensor,
    low: Sequence[int],
    high: Sequence[int],
    value: Operand = 0,
    interior: Sequence[int] | None = None,
) -> OnnxTensor:
    """`x` with `value` around it (negative padding cuts) and between its elements."""
    inner = list(interior or [0] * x.rank)
    if not any(low) and not any(high) and not any(inner):
        return x
    shape = [
        n + a + b + max(0, n - 1) * i for n, a, b, i in zip(x.shape, low, high, inner, strict=True)
    ]
    x, filler = typed(x, value)
    return emit(
        "pad",
        [x, filler],
        x.dtype,
        shape,
        edge_padding_low=list(low),
        edge_padding_high=list(high),
        interior_padding=inner,
    )


def shift(x: OnnxTensor, axis: int, distance: int, value: Operand = 0) -> OnnxTensor:
    """`x` moved along an axis by `distance` places, `value` behind it; the shape stays."""
    at, size = axis_of(axis, x.rank), x.shape[axis]
    moved = max(-size, min(size, distance))
    low = [moved if i == at else 0 for i in range(x.rank)]
    return pad(x, low, [-steps for steps in low], value)


def reverse(x: OnnxTensor, axes: Sequence[int]) -> OnnxTensor:
    return emit("reverse", [x], x.dtype, x.shape, dimensions=axes_of(axes, x.rank))


def iota(dtype: Any, shape: Sequence[int], axis: int) -> OnnxTensor:
    """The index along an axis."""
    return emit("iota", [], dtype, shape, iota_dimension=axis)
