"""Gather and scatter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from davinci.frontends.onnx.ops.arithmetic import compare, where
from davinci.frontends.onnx.ops.shapes import axis_of
from davinci.frontends.onnx.tensor import OnnxTensor, constant, convert, emit, emit_all


def take(x: OnnxTensor, indices: OnnxTensor, axis: int) -> OnnxTensor:
    """NumPy's `take`: [..before axis, ..shape of indices, ..behind axis].

    Indices outside of [-n, n) are the caller's fault: they are clamped, as StableHLO does.
    """
    at = axis_of(axis, x.rank)
    shape = [*x.shape[:at], *indices.shape, *x.shape[at + 1 :]]
    offsets = [*range(at), *range(at + indices.rank, len(shape))]
    sizes = [1 if i == at else size for i, size in enumerate(x.shape)]
    numbers = (
        f"offset_dims = {offsets}, collapsed_slice_dims = [{at}], "
        f"start_index_map = [{at}], index_vector_dim = {indices.rank}"
    )
    return gather(x, indices, numbers, sizes, shape)


def take_along(x: OnnxTensor, indices: OnnxTensor, axis: int) -> OnnxTensor:
    """Elements with the place of an index, but along `axis` the index; the other dimensions of
    both are alike. Indices are not negative; others outside are clamped."""
    others = [d for d in range(x.rank) if d != axis]
    numbers = (
        f"collapsed_slice_dims = [{axis}], operand_batching_dims = {others}, "
        f"start_indices_batching_dims = {others}, start_index_map = [{axis}], "
        f"index_vector_dim = {x.rank}"
    )
    return gather(x, indices, numbers, [1] * x.rank, indices.shape)


def gather(
    x: OnnxTensor, indices: OnnxTensor, numbers: str, sizes: Sequence[int], shape: Sequence[int]
) -> OnnxTensor:
    """StableHLO's gather; `numbers` is the text inside of `#stablehlo.gather<..>`."""
    return emit(
        "gather",
        [x, indices],
        x.dtype,
        shape,
        dimension_numbers=f"#stablehlo.gather<{numbers}>",
        slice_sizes=list(sizes),
    )


def wrap_indices(indices: OnnxTensor, size: int, dtype: Any = np.int32) -> OnnxTensor:
    """Negative indices count from the end; computed ones become i32, which vectors hold, or another
    type that is asked for."""
    if indices.known is not None:
        return constant(np.where(indices.known < 0, indices.known + size, indices.known))
    indices = convert(indices, dtype)
    return where(compare("LT", indices, 0), indices + size, indices)


def update_slice(x: OnnxTensor, update: OnnxTensor, starts: Sequence[int]) -> OnnxTensor:
    """`x` with `update` in place of its box of that shape which begins there."""
    places = [constant(np.array(start, np.int32)) for start in starts]
    return emit("dynamic_update_slice", [x, update, *places], x.dtype, x.shape)


def scatter(
    x: OnnxTensor,
    indices: OnnxTensor,
    updates: OnnxTensor,
    numbers: str,
    combine: Callable[[OnnxTensor, OnnxTensor], OnnxTensor],
) -> OnnxTensor:
    """StableHLO's scatter; `combine(old, update)` gives what is stored."""
    scalar = (x.dtype, ())
    body = ([scalar, scalar], lambda old, new: [combine(old, new)])
    return emit_all(
        "scatter",
        [x, indices, updates],
        [(x.dtype, x.shape)],
        [body],
        scatter_dimension_numbers=f"#stablehlo.scatter<{numbers}>",
    )[0]
