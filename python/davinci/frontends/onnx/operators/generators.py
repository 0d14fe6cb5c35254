"""Tensors made of shapes, indices and numbers: ranges, masks, windows of signals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.evaluate import run
from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.tensor import OnnxTensor, constant, convert

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall

COMPUTED = ("BlackmanWindow", "HammingWindow", "HannWindow", "MelWeightMatrix", "Range")
"""Operators on numbers that say the size of the result, too large to be computed as a shape."""


@operator(*COMPUTED)
def lower_computed(node: NodeCall) -> OnnxTensor:
    names = [f"x{i}" for i in range(node.count)]
    values = {name: node.constant(i) for i, name in enumerate(names)}
    found = run(node.proto, names, values, {node.domain: node.version}, most=None)
    if found is None:
        node.refuse("numbers that ONNX's reference implementation does not take")
    for attribute in node.proto.attribute:
        node.attr(attribute.name)
    return constant(found[0])


@operator("ConstantOfShape")
def lower_constant_of_shape(node: NodeCall) -> OnnxTensor:
    shape, value = node.known(0), node.attr("value")
    value = np.zeros(1, np.float32) if value is None else value
    return ops.full([] if shape is None else shape.tolist(), value.dtype, value.item())


@operator("EyeLike")
def lower_eye_like(node: NodeCall) -> OnnxTensor:
    x = node.take(0)
    if x.rank != 2:
        node.refuse(f"an eye of rank {x.rank}", "a matrix")
    dtype = node.dtype("dtype") if node.given("dtype") else x.dtype
    return convert(ops.compare("EQ", above_diagonal(x.shape), node.attr("k")), dtype)


def above_diagonal(shape: tuple[int, ...]) -> OnnxTensor:
    """How far each element of the last two dimensions lies right of the main diagonal, in i32."""
    rank = len(shape)
    return ops.iota(np.int32, shape, rank - 1) - ops.iota(np.int32, shape, rank - 2)


@operator("Trilu")
def lower_trilu(node: NodeCall) -> OnnxTensor:
    """Zeros below (`upper`) or above the diagonal k."""
    x, k = node.take(0), node.optional(1)
    diagonal = 0 if k is None else convert(ops.reshape(k, []), np.int32)
    direction = "GE" if node.attr("upper") else "LE"
    return ops.where(ops.compare(direction, above_diagonal(x.shape), diagonal), x, 0)


@operator("OneHot")
def lower_one_hot(node: NodeCall) -> OnnxTensor:
    """Indices outside of [-depth, depth) are off everywhere."""
    indices, values, count = node.take(0), node.take(2), int(node.constant(1).item())
    axis = ops.axis_of(node.attr("axis"), indices.rank + 1)
    indices = convert(indices, np.int64) if indices.is_float else indices
    wide = ops.expand_dims(indices, [axis])
    shape = [count if i == axis else size for i, size in enumerate(wide.shape)]
    places = ops.iota(wide.dtype, shape, axis)
    hits = ops.compare("EQ", places, wide)
    if not wide.is_unsigned:
        hits = hits | ops.compare("EQ", places - count, wide)
    off, on = ops.unstack(values, 0)
    return ops.where(hits, on, off)
