"""Attention as onnxruntime's optimizer writes it, one operator with projections, masks and caches.

Queries, keys and values become [batch, heads, tokens, head size] (B, N, S or T, H). Two products
follow with a softmax between them, which the compiler makes one kernel of.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import MICROSOFT, operator
from davinci.frontends.onnx.operators.linear import product
from davinci.frontends.onnx.operators.quantized_products import collapsed, integer_matmul
from davinci.frontends.onnx.tensor import BadNode, OnnxTensor, broadcast, constant, convert

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall

MASKED = -10000.0
"""What onnxruntime adds to the scores of padded keys, unless `mask_filter_value` says otherwise."""


def split_heads(x: OnnxTensor, heads: int) -> OnnxTensor:
    """[B, S, N H] as [B, N, S, H]."""
    if x.rank != 3 or x.shape[2] % heads:
        raise BadNode(f"{heads} heads of shape {list(x.shape)}", "[batch, tokens, heads * size]")
    batch, tokens, hidden = x.shape
    return ops.transpose(ops.reshape(x, [batch, tokens, heads, hidden // heads]), [0, 2, 1, 3])


def join_heads(x: OnnxTensor) -> OnnxTensor:
    """[B, N, S, H] as [B, S, N H]."""
    batch, heads, tokens, size = x.shape
    return ops.reshape(ops.transpose(x, [0, 2, 1, 3]), [batch, tokens, heads * size])


def shared_heads(x: OnnxTensor, heads: int) -> OnnxTensor:
    """Keys or values [B, M, T, H], each for `heads` / M heads of the queries."""
    batch, kept, tokens, size = x.shape
    if heads % kept:
        raise BadNode(f"{heads} heads of queries and {kept} of keys", "a multiple")
    if heads == kept:
        return x
    repeated = broadcast(x, [batch, kept, heads // kept, tokens, size], [0, 1, 3, 4])
    return ops.reshape(repeated, [batch, heads, tokens, size])


def scores_of(q: OnnxTensor, k: OnnxTensor, scale: float | None) -> OnnxTensor:
    """q k^T scale [B, N, S, T]; without a scale, or with 0, that is 1 / sqrt(H)."""
    if q.shape[:2] != k.shape[:2] or q.shape[3] != k.shape[3]:
        raise BadNode(f"queries {list(q.shape)} and keys {list(k.shape)}", "the same heads")
    factor = scale or 1 / math.sqrt(q.shape[3])
    return ops.matmul(q, ops.transpose(k, [0, 1, 3, 2])) * factor


def attended(scores: OnnxTensor, v: OnnxTensor) -> OnnxTensor:
    """softmax(scores) v as [B, S, N H]."""
    return join_heads(ops.matmul(ops.softmax(scores, 3), v))


def with_biases(scores: OnnxTensor, *biases: OnnxTensor | None) -> OnnxTensor:
    """Scores and biases that broadcast to them; what is known of the biases is summed here."""
    known = [b.known for b in biases if b is not None and b.known is not None]
    for bias in biases:
        if bias is not None and bias.known is None:
            scores = scores + bias
    return scores + constant(sum(known[1:], known[0])) if known else scores


def causal_bias(queries: int, keys: int, dtype: np.dtype) -> OnnxTensor | None:
    """The lowest number for keys behind a query [S, T], of which the last ones are the queries'."""
    if queries == 1:
        return None
    hidden = np.triu(np.ones((queries, keys), np.bool_), keys - queries + 1)
    lowest = np.array(np.finfo(np.float16).min if dtype.itemsize == 2 else np.finfo(np.float32).min)
    return constant(np.where(hidden, lowest, 0).astype(dtype))


def padding_bias(node: NodeCall, number: int, scores: OnnxTensor) -> OnnxTensor | None:
    """What is added to scores [B, N, S, T] for a mask of padded keys.

    The mask is 0 for what is padded, for each key [B, T] or each score [B, S, T]; or it holds the
    ends [B] of the keys, or their ends and behind them their starts [2 B].
    """
    mask, low = node.optional(number), node.attr("mask_filter_value", MASKED)
    if mask is None:
        return None
    batch, _, queries, keys = scores.shape
    if mask.shape in ((batch, keys), (batch, queries, keys)):
        shown = ops.compare("NE", mask, 0)
        shown = ops.expand_dims(shown, [1, 2] if mask.rank == 2 else [1])
    elif mask.shape in ((batch,), (2 * batch,)):
        place = ops.reshape(ops.iota(mask.dtype, [keys], 0), [1, 1, 1, keys])
        bounds = ops.reshape(mask, [mask.count // batch, batch, 1, 1, 1])
        ends, *starts = ops.unstack(bounds, 0)
        shown = ops.compare("LT", place, ends)
        for start in starts:
            shown = shown & ops.compare("GE", place, start)
    else:
        node.refuse(
            f"a mask of shape {list(mask.shape)}",
            f"{[batch, keys]}, {[batch, queries, keys]}, {[batch]} or {[2 * batch]}",
        )
    return ops.where(shown, constant(0, scores.dtype), constant(low, scores.dtype))


def biased_scores(
    node: NodeCall, q: OnnxTensor, k: OnnxTensor, mask: int, bias: int | None
) -> OnnxTensor:
    """Scores [B, N, S, T] with a bias, a mask of padded keys, and one of keys behind the query.

    Args:
        mask, bias: numbers of the inputs.
    """
    scores = scores_of(q, k, node.attr("scale", None))
    causal = causal_bias(q.shape[2], k.shape[2], q.dtype)
    return with_biases(
        scores,
        node.optional(bias) if bias is not None else None,
        padding_bias(node, mask, scores),
        causal if node.attr("unidirectional", 0) else None,
    )


def self_attention(
    node: NodeCall,
    q: OnnxTensor,
    k: OnnxTensor,
    v: OnnxTensor,
    mask: int,
    past: int,
    bias: int | None,
) -> tuple[OnnxTensor, ...]:
    """Attention of [B, N, S, H] with a cache [2, B, N, P, H] before the keys and values.

    Args:
        mask, past, bias: numbers of the inputs.

    Returns:
        The result, and the cache with the new keys and values.
    """
    node.ignore("past_present_share_buffer")
    if node.attr("do_rotary", 0):
        node.refuse("attribute 'do_rotary' is not supported", "RotaryEmbedding in front of it")
    if (cache := node.optional(past)) is not None:
        if node.attr("past_present_share_buffer", 0):
            node.refuse("attribute 'past_present_share_buffer' is not supported", "0")
        old_keys, old_values = ops.unstack(cache, 0)
        k, v = ops.concat([old_keys, k], 2), ops.concat([old_values, v], 2)
    scores = biased_scores(node, q, k, mask, bias)
    result = attended(scores, v)
    return (result, ops.stack([k, v])) if node.wants(1) else (result,)


def parts_of(x: OnnxTensor | None, sizes: Sequence[int]) -> list[OnnxTensor | None]:
    """Parts of these sizes along the last axis; None of nothing."""
    return [None for _ in sizes] if x is None else [*ops.split(x, x.rank - 1, sizes)]


def known_parts(x: OnnxTensor, sizes: Sequence[int]) -> list[OnnxTensor]:
    """Columns of a weight; of a known one as weights of their own."""
    if x.known is None:
        return ops.split(x, x.rank - 1, sizes)
    cuts = np.cumsum(sizes)[:-1].tolist()
    arrays = np.split(x.known, cuts, -1)
    return [constant(np.ascontiguousarray(a), name=x.name) for a in arrays]


@operator(
    "Attention",
    domain=MICROSOFT,
    inputs="input weights bias mask_index past attention_bias past_sequence_length",
)
def lower_attention(node: NodeCall) -> tuple[OnnxTensor, ...]:
    """Projections of one input [B, S, D] by weights [D, D + D + Dv], and their attention."""
    x, weights, bias = node.take(0), node.take(1), node.optional(2)
    heads, width = node.attr("num_heads"), weights.shape[1]
    sizes = node.attr("qkv_hidden_sizes", None) or [width // 3] * 3
    if sum(sizes) != width:
        raise BadNode(f"weights of {width} columns", f"{sum(sizes)}, for {sizes}")
    projected = [product(x, w) for w in known_parts(weights, sizes)]
    biases = [None] * 3 if bias is None else known_parts(bias, sizes)
    pairs = zip(projected, biases, strict=True)
    q, k, v = (split_heads(y if b is None else y + b, heads) for y, b in pairs)
    return self_attention(node, q, k, v, mask=3, past=4, bias=5)


@operator(
    "QAttention",
    domain=MICROSOFT,
    inputs="input weight bias input_scale weight_scale mask_index input_zero_point"
    " weight_zero_point past",
)
def lower_quantized_attention(node: NodeCall) -> tuple[OnnxTensor, ...]:
    """As Attention, of bytes: input less zero point, times scale; weights likewise, by column."""
    x, weights, bias = node.take(0), node.take(1), node.take(2)
    scale, weight_scale = node.take(3), node.take(4)
    zero, weight_zero = node.optional(6), node.optional(7)
    sizes = [weights.shape[1] // 3] * 3

    def columns(value: OnnxTensor) -> list[OnnxTensor]:
        return [value] * 3 if value.count == 1 else known_parts(value, sizes)

    zeros = [None] * 3 if weight_zero is None else columns(weight_zero)
    parts = zip(known_parts(weights, sizes), columns(weight_scale), zeros, strict=True)
    projected = [
        convert(integer_matmul(x, w, zero, z), np.float32) * (collapsed(scale) * collapsed(s))
        for w, s, z in parts
    ]
    heads = node.attr("num_heads")
    pairs = zip(projected, known_parts(bias, sizes), strict=True)
    q, k, v = (split_heads(y + b, heads) for y, b in pairs)
    return self_attention(node, q, k, v, mask=5, past=8, bias=None)


@operator(
    "MultiHeadAttention",
    domain=MICROSOFT,
    inputs="query key value bias key_padding_mask attention_bias past_key past_value"
    " past_sequence_length cache_indirection",
)
def lower_multi_head_attention(node: NodeCall) -> tuple[OnnxTensor, ...]:
    """Attention of projections that were made before; the bias of these is added here."""
    q, k, v = projections(node)
    old_keys, old_values = node.optional(6), node.optional(7)
    if old_keys is not None and old_values is not None:
        k, v = ops.concat([old_keys, k], 2), ops.concat([old_values, v], 2)
    scores = biased_scores(node, q, k, mask=4, bias=5)
    return (attended(scores, v), k, v, scores)[: max(1, len(node.outputs))]


def projections(node: NodeCall) -> tuple[OnnxTensor, OnnxTensor, OnnxTensor]:
    """Queries, keys and values [B, N, S or T, H] of MultiHeadAttention, in any of its forms."""
    query, key, value = node.take(0), node.optional(1), node.optional(2)
    heads, bias = node.attr("num_heads"), node.optional(3)
    if key is None:
        unpacked(node, query, 3)
        query, key, value = (flat(part) for part in ops.unstack(query, 3))
    elif value is None:
        unpacked(node, key, 2)
        key, value = (flat(part) for part in ops.unstack(key, 3))
    assert value is not None, "taken apart from the packed keys where it is left out"
    if key.rank == 4:  # of a cache of cross attention: without a bias
        query = query if bias is None else query + ops.cut_axis(bias, 0, 0, query.shape[2])
        return split_heads(query, heads), key, value
    given = (query, key, value)
    biases = parts_of(bias, [x.shape[-1] for x in given])
    q, k, v = (
        split_heads(x if b is None else x + b, heads) for x, b in zip(given, biases, strict=True)
    )
    return q, k, v


def unpacked(node: NodeCall, x: OnnxTensor, parts: int) -> None:
    """Refuses what is not [B, S, N, parts, H]."""
    if x.rank != 5 or x.shape[3] != parts:
        node.refuse(
            f"inputs of shape {list(x.shape)} without others",
            f"[batch, tokens, heads, {parts}, size]",
        )


def flat(x: OnnxTensor) -> OnnxTensor:
    """[B, S, N, H] as [B, S, N H]."""
    return ops.reshape(x, [*x.shape[:2], x.shape[2] * x.shape[3]])
