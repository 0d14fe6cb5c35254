"""Normalizations as onnxruntime's optimizer writes them: with residuals, embeddings and gates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import MICROSOFT, operator
from davinci.frontends.onnx.operators.activations import swish
from davinci.frontends.onnx.operators.normalization import (
    computed,
    per_channel,
    standardized,
)
from davinci.frontends.onnx.tensor import OnnxTensor, convert

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall


def summed(x: OnnxTensor, *others: OnnxTensor | None) -> OnnxTensor:
    """`x` and what is given of the others."""
    for other in others:
        x = x if other is None else x + other
    return x


def root_of_squares(x: OnnxTensor, axes: range, epsilon: float) -> OnnxTensor:
    """sqrt(mean(x x) + epsilon) over some axes, kept."""
    return ops.sqrt(ops.mean(x * x, axes, keepdims=True) + epsilon)


@operator("SimplifiedLayerNormalization", inputs="X scale")
@operator("SimplifiedLayerNormalization", domain=MICROSOFT, inputs="X scale")
def lower_simplified(node: NodeCall) -> tuple[OnnxTensor, ...]:
    """x / sqrt(mean(x x) + epsilon) * scale; and the reciprocal of the root."""
    x, scale = node.take(0), node.take(1)
    axes = range(ops.axis_of(node.attr("axis", -1), x.rank), x.rank)
    wide = computed(node, x)
    root = root_of_squares(wide, axes, node.attr("epsilon", 1e-5))
    found = convert(wide / root, scale.dtype) * scale
    return (found, 1 / root) if node.wants(1) else (found,)


@operator("SkipSimplifiedLayerNormalization", domain=MICROSOFT, inputs="input skip gamma bias")
def lower_skip_simplified(node: NodeCall) -> tuple[OnnxTensor | None, ...]:
    """The root mean square normalization of a sum, and the sum."""
    total = summed(node.take(0), node.optional(3), node.take(1))
    refuse_statistics(node)
    root = root_of_squares(total, range(total.rank - 1, total.rank), node.attr("epsilon", 1e-12))
    found = total / root * node.take(2)
    return (found, None, None, total)[: len(node.outputs)]


@operator("SkipLayerNormalization", domain=MICROSOFT, inputs="input skip gamma beta bias")
def lower_skip_layer_normalization(node: NodeCall) -> tuple[OnnxTensor | None, ...]:
    """The layer normalization of a sum, and the sum."""
    total = summed(node.take(0), node.optional(4), node.take(1))
    refuse_statistics(node)
    epsilon = node.attr("epsilon", 1e-12)
    found = summed(standardized(total, [total.rank - 1], epsilon) * node.take(2), node.optional(3))
    return (found, None, None, total)[: len(node.outputs)]


def refuse_statistics(node: NodeCall) -> None:
    """Means and deviations are for training."""
    for number, name in ((1, "mean"), (2, "inv_std_var")):
        if node.wants(number):
            node.refuse(f"output {number} ({name}) is not supported", "it left out")


@operator(
    "EmbedLayerNormalization",
    domain=MICROSOFT,
    inputs="input_ids segment_ids word_embedding position_embedding segment_embedding gamma beta"
    " mask position_ids",
)
def lower_embed_layer_normalization(node: NodeCall) -> tuple[OnnxTensor, ...]:
    """The layer normalization of a sum of rows of tables, the number of words, and the sum.

    Positions count from 0 if they are not given.
    """
    words, segments, positions = node.take(0), node.optional(1), node.optional(8)
    tokens, table = words.shape[1], node.take(3)
    placed = (
        ops.cut_axis(table, 0, 0, tokens) if positions is None else ops.take_rows(table, positions)
    )
    total = ops.take_rows(node.take(2), words) + placed
    total = total if segments is None else total + ops.take_rows(node.take(4), segments)
    node.ignore("mask_index_type")
    epsilon = node.attr("epsilon", 1e-12)
    found = standardized(total, [2], epsilon) * node.take(5) + node.take(6)
    mask = node.optional(7)
    counts = ops.full(words.shape[:1], np.int32, 0)
    if mask is not None:
        ones = convert(ops.compare("EQ", mask, 1), np.int32)
        counts = ops.reduce("add", ones, [1])
    return (found, counts, total)[: len(node.outputs)]


@operator("GroupNorm", domain=MICROSOFT, inputs="X gamma beta")
def lower_group_norm(node: NodeCall) -> OnnxTensor:
    return group_normalized(node, node.take(0))


@operator("SkipGroupNorm", domain=MICROSOFT, inputs="X gamma beta skip bias")
def lower_skip_group_norm(node: NodeCall) -> tuple[OnnxTensor, ...]:
    """The group normalization of a sum, and the sum; what is added may be of channels only."""
    x, skip, bias = node.take(0), node.take(3), node.optional(4)
    at = x.rank - 1 if node.attr("channels_last", 1) else 1
    if skip.rank == 2:
        skip = ops.expand_dims(skip, [i for i in range(1, x.rank) if i != at])
    total = summed(x, skip, None if bias is None else per_channel(bias, x.rank, at))
    return (group_normalized(node, total), total)[: len(node.outputs)]


def group_normalized(node: NodeCall, x: OnnxTensor) -> OnnxTensor:
    """Normalization of groups of channels, which are last if not said otherwise."""
    groups, last = node.attr("groups"), node.attr("channels_last", 1)
    channels = x.shape[-1 if last else 1]
    if channels % groups:
        node.refuse(f"{groups} groups of {channels} channels", "groups of equal size")
    at = x.rank - 1 if last else 1
    shape = [*x.shape[:at], groups, channels // groups, *x.shape[at + 1 :]]
    grouped = ops.reshape(convert(x, np.float32), shape)
    axes = [i for i in range(1, grouped.rank) if i != at]
    found = ops.reshape(standardized(grouped, axes, node.attr("epsilon", 1e-5)), x.shape)
    gamma, beta = (convert(per_channel(node.take(i), x.rank, at), np.float32) for i in (1, 2))
    found = found * gamma + beta
    return convert(swish(found) if node.attr("activation") else found, x.dtype)


@operator("GatedRMSNorm", domain=MICROSOFT, inputs="X scale gate")
def lower_gated_rms_norm(node: NodeCall) -> OnnxTensor:
    """Parts of a row as long as the scale, normalized each by its root mean square, and a gate."""
    x, scale, gate = node.take(0), node.take(1), convert(node.take(2), np.float32)
    kind = node.attr("activation", "silu")
    if kind not in ("silu", "swish", "sigmoid"):
        node.refuse(f"activation={kind!r} is not supported", "silu, swish or sigmoid")
    rows = ops.reshape(
        convert(x, np.float32), [*x.shape[:-1], -1 * (-x.shape[-1] // scale.count), scale.count]
    )
    root = root_of_squares(rows, range(rows.rank - 1, rows.rank), node.attr("epsilon", 1e-5))
    found = ops.reshape(rows / root * convert(scale, np.float32), x.shape)
    return convert(found * (ops.sigmoid(gate) if kind == "sigmoid" else swish(gate)), x.dtype)
