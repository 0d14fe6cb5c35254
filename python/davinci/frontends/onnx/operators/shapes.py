"""Operators that say shapes, or give data another one."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.tensor import BadNode, Flowing, OnnxTensor, broadcast, constant
from davinci.units import ceil_div

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall


@operator("Shape")
def lower_shape(node: NodeCall) -> OnnxTensor:
    x = node.take(0)
    start, end = node.attr("start", 0), node.attr("end", x.rank)
    return constant(np.array(x.shape[slice(start, end)], np.int64))


@operator("Size")
def lower_size(node: NodeCall) -> OnnxTensor:
    return constant(np.array(node.take(0).count, np.int64))


@operator("Constant")
def lower_constant(node: NodeCall) -> OnnxTensor:
    kinds: dict[str, Any] = {"value_float": np.float32, "value_floats": np.float32}
    kinds |= {"value_int": np.int64, "value_ints": np.int64}
    for name, kind in kinds.items():
        if node.given(name):
            return constant(np.asarray(node.attr(name), kind))
    if not node.given("value"):
        node.refuse("a constant of another kind than tensors and numbers")
    return constant(node.attr("value"))


@operator("Identity")
def lower_identity(node: NodeCall) -> Flowing:
    return node.flowing(0)


@operator("Reshape")
def lower_reshape(node: NodeCall) -> OnnxTensor:
    """0 keeps a dimension unless `allowzero`; -1 takes what is left."""
    node.ignore("consumed_inputs")
    x, wanted = node.take(0), node.integers("shape", 1) or []
    if not node.attr("allowzero"):
        wanted = [_kept(x, i) if size == 0 else size for i, size in enumerate(wanted)]
    if -1 in wanted:
        rest = math.prod(size for size in wanted if size != -1)
        wanted[wanted.index(-1)] = x.count // rest if rest else 0
    return ops.reshape(x, wanted)


def _kept(x: OnnxTensor, dimension: int) -> int:
    if dimension >= x.rank:
        raise BadNode(f"the shape keeps dimension {dimension} of a tensor of rank {x.rank}")
    return x.shape[dimension]


@operator("Flatten")
def lower_flatten(node: NodeCall) -> OnnxTensor:
    x, axis = node.take(0), node.attr("axis")
    axis = axis if axis == x.rank else ops.axis_of(axis, x.rank)
    return ops.reshape(x, [math.prod(x.shape[:axis]), math.prod(x.shape[axis:])])


@operator("Squeeze")
def lower_squeeze(node: NodeCall) -> OnnxTensor:
    """Without axes, all dimensions of size 1."""
    x, axes = node.take(0), node.integers("axes", 1)
    return ops.squeeze(x, [i for i, n in enumerate(x.shape) if n == 1] if axes is None else axes)


@operator("Unsqueeze")
def lower_unsqueeze(node: NodeCall) -> OnnxTensor:
    return ops.expand_dims(node.take(0), node.integers("axes", 1) or [])


@operator("Transpose")
def lower_transpose(node: NodeCall) -> OnnxTensor:
    x, order = node.take(0), node.attr("perm")
    return ops.transpose(x, list(range(x.rank))[::-1] if order is None else order)


@operator("Concat")
def lower_concat(node: NodeCall) -> OnnxTensor:
    return ops.concat(node.tensors(), node.attr("axis"))


@operator("Split")
def lower_split(node: NodeCall) -> tuple[OnnxTensor, ...]:
    """Into parts of given sizes, or of equal ones, of which the last may be smaller."""
    x = node.take(0)
    axis = ops.axis_of(node.attr("axis", 0), x.rank)
    sizes = node.integers("split", 1)
    if sizes is None:
        parts, size = node.attr("num_outputs", None) or len(node.outputs), x.shape[axis]
        step = ceil_div(size, parts)
        ends = [min(size, step * i) for i in range(parts + 1)]
        sizes = [b - a for a, b in pairwise(ends)]
    return tuple(ops.split(x, axis, sizes))


@operator("Expand")
def lower_expand(node: NodeCall) -> OnnxTensor:
    """Both ways: a dimension of size 1 in the wanted shape keeps that of the input."""
    x, wanted = node.take(0), tuple(node.integers("shape", 1) or [])
    try:
        shape = np.broadcast_shapes(x.shape, wanted)
    except ValueError:
        raise BadNode(f"shape {list(x.shape)} does not broadcast to {list(wanted)}") from None
    return broadcast(x, shape)


@operator("Tile")
def lower_tile(node: NodeCall) -> OnnxTensor:
    """Operator set 1 repeats along one axis."""
    x, repeats = node.take(0), node.integers("repeats", 1) or []
    if node.version < 6:
        axis = (node.integers("axis", 2) or [0])[0]
        repeats = [repeats[0] if i == axis else 1 for i in range(x.rank)]
    if len(repeats) != x.rank:
        raise BadNode(f"{len(repeats)} repeats for a tensor of rank {x.rank}")
    apart = ops.expand_dims(x, range(0, 2 * x.rank, 2))
    sizes = [size for pair in zip(repeats, x.shape, strict=True) for size in pair]
    tiled = [r * n for r, n in zip(repeats, x.shape, strict=True)]
    return ops.reshape(broadcast(apart, sizes), tiled)
