"""PyTorch's scaled dot-product attention as ONNX, by PyTorch's own rules.

The exporter's translation hides scores by the lowest finite number: a row of which a mask leaves
nothing is then the mean of all values, and of a mask of minus infinities no number. PyTorch gives
zeros, and so does this one. `ascend-drop-guards` drops the guard where a mask is known to leave
something.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def translations() -> dict[Any, Any]:
    """The operators of PyTorch that are exported otherwise than by its exporter."""
    import torch

    return {torch.ops.aten.scaled_dot_product_attention.default: attention}


def attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """softmax(Q K^T scale + mask) V, with rows of zeros where a mask leaves nothing.

    Args:
        query: [.., L, E]; `key` is [.., S, E], `value` [.., S, D].
        attn_mask: true where a key counts, or a number to add to the score.
        is_causal: whether row i sees the keys up to i.
        scale: 1 / sqrt(E) if None.
        enable_gqa: whether heads, the dimension in front of rows, share keys and values.
    """
    from onnxscript import ir
    from onnxscript import opset18 as op

    def constant(numbers: Any) -> Any:
        return op.Constant(value=ir.tensor(np.asarray(numbers, query.dtype.numpy())))

    rank, rows, keys = len(key.shape), int(query.shape[-2]), int(key.shape[-2])
    if enable_gqa:
        key, value = (_repeated(part, int(query.shape[-3])) for part in (key, value))
    turned = op.Transpose(key, perm=[*range(rank - 2), rank - 1, rank - 2])
    factor = 1 / math.sqrt(int(query.shape[-1])) if scale is None else float(scale)
    # Both factors are scaled, as PyTorch does: their product stays in the range of f16.
    scores = op.MatMul(
        op.Mul(query, constant(math.copysign(math.sqrt(abs(factor)), factor))),
        op.Mul(turned, constant(math.sqrt(abs(factor)))),
    )
    if is_causal:
        hidden = np.triu(np.full((rows, keys), -np.inf, np.float32), 1)
        return op.MatMul(op.Softmax(op.Add(scores, constant(hidden)), axis=-1), value)
    if attn_mask is None:
        return op.MatMul(op.Softmax(scores, axis=-1), value)
    if attn_mask.dtype == ir.DataType.BOOL:
        attn_mask = op.Where(attn_mask, constant(0.0), constant(-np.inf))
    weights = op.Softmax(op.Add(scores, attn_mask), axis=-1)
    return op.MatMul(op.Where(op.IsNaN(weights), constant(0.0), weights), value)


def _repeated(part: Any, heads: int) -> Any:
    """Keys or values of fewer heads, each of them for as many heads of queries as share it."""
    from onnxscript import opset18 as op

    *batch, own, length, depth = (int(size) for size in part.shape)
    apart = op.Reshape(part, op.Constant(value_ints=[*batch, own, 1, length, depth]))
    spread = op.Expand(apart, op.Constant(value_ints=[*batch, own, heads // own, length, depth]))
    return op.Reshape(spread, op.Constant(value_ints=[*batch, heads, length, depth]))
