"""Operators that move, cut and join data, or say shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.tensor import Tensor, constant

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import Call


@operator("Shape")
def lower_shape(node: Call) -> Tensor:
    x = node.take(0)
    start, end = node.attr("start", 0), node.attr("end", x.rank)
    return constant(np.array(x.shape[slice(start, end)], np.int64))


@operator("Constant")
def lower_constant(node: Call) -> Tensor:
    kinds: dict[str, Any] = {"value_float": np.float32, "value_floats": np.float32}
    kinds |= {"value_int": np.int64, "value_ints": np.int64}
    for name, kind in kinds.items():
        if node.given(name):
            return constant(np.asarray(node.attr(name), kind))
    if not node.given("value"):
        node.refuse("a constant of another kind than tensors and numbers")
    return constant(node.attr("value"))


@operator("Reshape")
def lower_reshape(node: Call) -> Tensor:
    """0 keeps a dimension unless `allowzero`; -1 takes what is left."""
    x, wanted = node.take(0), node.integers("shape", 1) or []
    if not node.attr("allowzero"):
        wanted = [x.shape[i] if size == 0 else size for i, size in enumerate(wanted)]
    if -1 in wanted:
        rest = int(np.prod([size for size in wanted if size != -1], dtype=np.int64))
        wanted[wanted.index(-1)] = x.count // rest if rest else 0
    return ops.reshape(x, wanted)


@operator("Transpose")
def lower_transpose(node: Call) -> Tensor:
    x = node.take(0)
    return ops.transpose(x, node.attr("perm") or list(range(x.rank))[::-1])


@operator("Unsqueeze")
def lower_unsqueeze(node: Call) -> Tensor:
    return ops.expand_dims(node.take(0), node.integers("axes", 1) or [])


@operator("Gather")
def lower_gather(node: Call) -> Tensor:
    x, indices = node.take(0), node.take(1)
    axis = ops.axis_of(node.attr("axis"), x.rank)
    return ops.take(x, ops.wrap_indices(indices, x.shape[axis]), axis)
