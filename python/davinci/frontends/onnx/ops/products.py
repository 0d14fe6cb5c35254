"""Products of matrices, and convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from davinci.frontends.onnx.ops.shapes import expand_dims, reshape, squeeze
from davinci.frontends.onnx.tensor import BadNode, OnnxTensor, broadcast, emit
from davinci.mlir import ir


def dot_general(
    a: OnnxTensor,
    b: OnnxTensor,
    contract: tuple[Sequence[int], Sequence[int]],
    batch: tuple[Sequence[int], Sequence[int]] = ((), ()),
    dtype: Any = None,
) -> OnnxTensor:
    """StableHLO's product: [batch.., free of a.., free of b..].

    Args:
        contract, batch: dimensions of `a` and of `b`.
        dtype: of the result, that of `a` if not given.
    """

    def free(x: OnnxTensor, side: int) -> list[int]:
        taken = {*contract[side], *batch[side]}
        return [size for i, size in enumerate(x.shape) if i not in taken]

    shape = [*(a.shape[i] for i in batch[0]), *free(a, 0), *free(b, 1)]
    names = ("lhs_batching", "rhs_batching", "lhs_contracting", "rhs_contracting")
    numbers = ", ".join(
        f"{name}_dimensions = {list(dims)}"
        for name, dims in zip(names, (*batch, *contract), strict=True)
        if dims
    )
    return emit(
        "dot_general",
        [a, b],
        dtype or a.dtype,
        shape,
        dot_dimension_numbers=f"#stablehlo.dot<{numbers}>",
    )


def matmul(a: OnnxTensor, b: OnnxTensor, dtype: Any = None) -> OnnxTensor:
    """NumPy's matmul: stacks of matrices broadcast, vectors are rows and columns.

    Raises:
        Invalid: the shapes do not fit.
    """
    if not a.rank or not b.rank:
        raise BadNode("a factor has no dimensions", "vectors or matrices")
    rows = a if a.rank > 1 else expand_dims(a, [0])
    columns = b if b.rank > 1 else expand_dims(b, [1])
    if rows.shape[-1] != columns.shape[-2]:
        raise BadNode(f"{rows.shape[-1]} columns and {columns.shape[-2]} rows do not fit")
    product = _stacks(rows, columns, dtype)
    gone = ([] if a.rank > 1 else [product.rank - 2]) + ([] if b.rank > 1 else [product.rank - 1])
    return squeeze(product, gone)


def _stacks(a: OnnxTensor, b: OnnxTensor, dtype: Any) -> OnnxTensor:
    """A product of matrices; one matrix on the right (a weight) is not repeated for the stack."""
    if math.prod(b.shape[:-2]) == 1:
        shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *a.shape[-2:])
        left, right = reshape(a, shape), reshape(b, b.shape[-2:])
        return dot_general(left, right, ([left.rank - 1], [0]), dtype=dtype)
    try:
        stack_shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise BadNode(f"shapes {list(a.shape)} and {list(b.shape)} do not broadcast") from None
    a = broadcast(a, (*stack_shape, *a.shape[-2:]))
    b = broadcast(b, (*stack_shape, *b.shape[-2:]))
    rank = a.rank
    dims = list(range(rank - 2))
    return dot_general(a, b, ([rank - 1], [rank - 2]), (dims, dims), dtype)


def convolution(
    x: OnnxTensor,
    w: OnnxTensor,
    strides: Sequence[int],
    low: Sequence[int],
    high: Sequence[int],
    dilations: Sequence[int],
    groups: int = 1,
    dtype: Any = None,
    spread: Sequence[int] = (),
) -> OnnxTensor:
    """[N, C, ..] and weights [M, C / groups, ..] make [N, M, ..].

    Args:
        strides, low, high, dilations: of the windows along each spatial axis, and the zeros around.
        dtype: of the result, that of `x` if not given.
        spread: distance of the elements along each spatial axis, with zeros between them; 1 if not
            given.
    """
    axes = range(x.rank - 2)
    spread = spread or [1 for _ in axes]
    sizes = [max(0, n - 1) * s + min(n, 1) for n, s in zip(x.shape[2:], spread, strict=True)]
    extents = [d * (k - 1) + 1 for k, d in zip(w.shape[2:], dilations, strict=True)]
    padded = [n + a + b for n, a, b in zip(sizes, low, high, strict=True)]
    counts = [(n - e) // s + 1 for n, e, s in zip(padded, extents, strides, strict=True)]
    places = ", ".join(map(str, axes))
    padding = np.array([low, high], np.int64).T
    return emit(
        "convolution",
        [x, w],
        dtype or x.dtype,
        [x.shape[0], w.shape[0], *counts],
        dimension_numbers=f"#stablehlo.conv<[b, f, {places}]x[o, i, {places}]->[b, f, {places}]>",
        window_strides=list(strides),
        padding=ir.DenseIntElementsAttr.get(np.ascontiguousarray(padding)),
        lhs_dilation=list(spread),
        rhs_dilation=list(dilations),
        feature_group_count=groups,
        batch_group_count=1,
    )
