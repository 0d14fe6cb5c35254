"""GroupQueryAttention of onnxruntime: heads of queries share one of keys, causal, with a cache.

Queries are the last tokens of a sequence, whose keys and values so far are in the cache. In a first
step, of a prompt, the cache holds none. Later ones know from `seqlens_k` how many tokens there are
of each sequence of the batch, their own included, less one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import MICROSOFT, operator
from davinci.frontends.onnx.operators.fused_attention import (
    join_heads,
    scores_of,
    shared_heads,
    split_heads,
)
from davinci.frontends.onnx.operators.rotary import angles, consecutive, rotated
from davinci.frontends.onnx.tensor import BadNode, OnnxTensor, constant, emit

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall

UNQUANTIZED = ("NONE", "")
"""Values of `k_quant_type` and `v_quant_type` for caches of floats."""


@operator(
    "GroupQueryAttention",
    domain=MICROSOFT,
    inputs="query key value past_key past_value seqlens_k total_sequence_length cos_cache sin_cache"
    " position_ids attention_bias head_sink k_scale v_scale q_norm_weight k_norm_weight",
)
def lower_group_query_attention(node: NodeCall) -> tuple[OnnxTensor, ...]:
    """The result [B, S, N H], and the caches with the new keys and values."""
    check_caches(node)
    q, k, v = projections(node)
    batch, _, tokens, _ = q.shape
    total = tokens_at_most(node)
    first = tokens_before(node, batch, tokens, total)
    q, k = positioned(node, q, k, first)
    old_keys, old_values = node.optional(3), node.optional(4)
    length = max(total, old_keys.shape[2] if old_keys is not None else 0)
    keys, values = updated(old_keys, k, first, length), updated(old_values, v, first, length)
    scores = scores_of(q, shared_heads(keys, q.shape[1]), node.attr("scale", None))
    if cap := node.attr("softcap", 0.0):
        scores = ops.tanh(scores / cap) * cap
    if (bias := node.optional(10)) is not None:
        scores = scores + padded_bias(bias, length)
    if (shown := shown_keys(node, first, tokens, length)) is not None:
        lowest = np.finfo(np.float16 if scores.dtype.itemsize == 2 else np.float32).min
        scores = ops.where(shown, scores, float(lowest))
    weights = normalized(node, scores)
    result = join_heads(ops.matmul(weights, shared_heads(values, q.shape[1])))
    return (result, keys, values)


def check_caches(node: NodeCall) -> None:
    """Refuses caches of bytes, those that move on by themselves, and scores as an output."""
    for name in ("k_quant_type", "v_quant_type"):
        if (kind := node.attr(name, "NONE")) not in UNQUANTIZED:
            node.refuse(f"{name}={kind!r} is not supported", "a cache of floats")
    node.ignore("kv_cache_bit_width", "qk_norm_epsilon")
    if node.attr("qk_output", 0):
        node.refuse("attribute 'qk_output' is not supported", "0, scores stay on the chip")
    if node.attr("sliding_window_cache", 0):
        node.refuse("attribute 'sliding_window_cache' is not supported", "a cache of full length")


def projections(node: NodeCall) -> tuple[OnnxTensor, OnnxTensor, OnnxTensor]:
    """Queries [B, N, S, H], keys and values [B, M, S, H], given apart or in one."""
    heads, kept = node.attr("num_heads"), node.attr("kv_num_heads")
    query, key, value = node.take(0), node.optional(1), node.optional(2)
    if key is None or value is None:
        size, rest = divmod(query.shape[-1], heads + 2 * kept)
        if rest or value is not None or key is not None:
            raise BadNode(
                f"a packed query of {query.shape[-1]} numbers", f"{heads + 2 * kept} heads"
            )
        query, key, value = ops.split(query, 2, [heads * size, kept * size, kept * size])
    return split_heads(query, heads), split_heads(key, kept), split_heads(value, kept)


def tokens_at_most(node: NodeCall) -> int:
    """Tokens of the longest sequence, which the length of the cache follows from."""
    return int(node.constant(6).reshape(-1)[0])


def tokens_before(node: NodeCall, batch: int, tokens: int, total: int) -> OnnxTensor | int:
    """Tokens of each sequence [B] before the first query; of all of them where it is one number."""
    lengths = node.take(5)
    if tokens == total:
        return 0
    before = ops.reshape(lengths, [batch]) + (1 - tokens)
    if lengths.known is None:
        return before
    found = lengths.known.reshape(-1) + (1 - tokens)
    return int(found[0]) if (found == found[0]).all() else constant(found)


def positioned(
    node: NodeCall, q: OnnxTensor, k: OnnxTensor, first: OnnxTensor | int
) -> tuple[OnnxTensor, OnnxTensor]:
    """Queries and keys turned by their positions, which may be given."""
    given = node.optional(9)
    if not node.attr("do_rotary", 0):
        node.ignore(7, 8)
        return q, k
    cos, sin, interleaved = node.take(7), node.take(8), bool(node.attr("rotary_interleaved", 0))
    positions = consecutive(first, q.shape[2]) if given is None else given
    cos, sin = angles(cos, positions), angles(sin, positions)
    return rotated(q, cos, sin, interleaved), rotated(k, cos, sin, interleaved)


def updated(
    cache: OnnxTensor | None, new: OnnxTensor, first: OnnxTensor | int, length: int
) -> OnnxTensor:
    """New keys or values [B, M, S, H] at their places in a cache [B, M, length, H]."""
    batch, tokens = new.shape[0], new.shape[2]
    if isinstance(first, int):
        cache = ops.cut_axis(new, 2, 0, 0) if cache is None else cache
        before = ops.cut_axis(cache, 2, 0, first)
        behind = ops.cut_axis(cache, 2, min(first + tokens, cache.shape[2]), cache.shape[2])
        found = ops.concat([part for part in (before, new, behind) if part.count], 2)
        return ops.pad(found, [0] * 4, [0, 0, length - found.shape[2], 0])
    if cache is None:
        raise BadNode("seqlens_k tells of tokens before, without a cache", "past_key, past_value")
    cache = ops.pad(cache, [0] * 4, [0, 0, length - cache.shape[2], 0])
    if batch == 1:
        zero = constant(np.zeros((), first.dtype))
        places = [zero, zero, ops.reshape(first, []), zero]
        return emit("dynamic_update_slice", [cache, new, *places], cache.dtype, cache.shape)
    if tokens != 1:
        raise BadNode(f"{tokens} tokens at a time for each of {batch} sequences", "one")
    place = ops.reshape(ops.iota(first.dtype, [length], 0), [1, 1, length, 1])
    here = ops.compare("EQ", place, ops.reshape(first, [batch, 1, 1, 1]))
    return ops.where(here, new, cache)


def shown_keys(
    node: NodeCall, first: OnnxTensor | int, tokens: int, length: int
) -> OnnxTensor | None:
    """Which keys a query sees [B or 1, 1, S, length]: those up to itself, or in a window."""
    window, causal = node.attr("local_window_size", -1), node.attr("causal", 1)
    own = np.arange(tokens) if causal else np.full(tokens, tokens - 1)
    if isinstance(first, int) or first.known is not None:
        start = np.asarray(first if isinstance(first, int) else first.known).reshape(-1, 1, 1, 1)
        last, keys = start + own.reshape(-1, 1), np.arange(length)
        shown = (keys <= last) & ((keys > last - window) | (window <= 0))
        return None if shown.all() else constant(shown)
    last = ops.reshape(first, [first.count, 1, 1, 1]) + constant(own.reshape(-1, 1), first.dtype)
    place = ops.reshape(ops.iota(first.dtype, [length], 0), [1, 1, 1, length])
    shown = ops.compare("LE", place, last)
    return shown if window <= 0 else shown & ops.compare("GT", place, last - window)


def padded_bias(bias: OnnxTensor, length: int) -> OnnxTensor:
    """A bias [.., T] with zeros for places of the cache that hold nothing."""
    return ops.pad(bias, [0] * bias.rank, [0] * (bias.rank - 1) + [length - bias.shape[-1]])


def normalized(node: NodeCall, scores: OnnxTensor) -> OnnxTensor:
    """Softmax over the keys, to which a number for each head may be added that has no value."""
    sink = node.optional(11)
    if sink is None and not node.attr("smooth_softmax", 0):
        return ops.softmax(scores, 3)
    heads = scores.shape[1]
    least = constant(0, scores.dtype) if sink is None else ops.reshape(sink, [1, heads, 1, 1])
    most = ops.maximum(ops.reduce("maximum", scores, [3], keepdims=True), least)
    weights = ops.exp(scores - most)
    return weights / (ops.reduce("add", weights, [3], keepdims=True) + ops.exp(least - most))
