"""Rotary embeddings as onnxruntime has them: positions choose rows of tables of angles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import MICROSOFT, operator
from davinci.frontends.onnx.tensor import BadNode, OnnxTensor, constant

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall


def rotated(x: OnnxTensor, cos: OnnxTensor, sin: OnnxTensor, interleaved: bool) -> OnnxTensor:
    """Pairs of numbers of each head, turned by the angles of their tokens.

    Args:
        x: [B, N, S, H]; what is behind the first R numbers of a head stays.
        cos, sin: of the angles, [S, R / 2] or [B, 1, S, R / 2].
        interleaved: pairs are neighbours, not R / 2 apart.
    """
    half, size = cos.shape[-1], x.shape[3]
    if 2 * half > size:
        raise BadNode(f"rotations of {2 * half} numbers", f"at most {size}, the size of a head")
    turned, rest = ops.cut_axis(x, 3, 0, 2 * half), ops.cut_axis(x, 3, 2 * half, size)
    if interleaved:
        pairs = ops.reshape(turned, [*turned.shape[:3], half, 2])
        first, second = ops.unstack(pairs, 4)
        found = ops.stack([first * cos - second * sin, first * sin + second * cos], 4)
        found = ops.reshape(found, turned.shape)
    else:
        first, second = ops.split(turned, 3, [half, half])
        twice = [ops.concat([t, t], t.rank - 1) for t in (cos, sin)]
        found = turned * twice[0] + ops.concat([-second, first], 3) * twice[1]
    return found if not rest.count else ops.concat([found, rest], 3)


def angles(table: OnnxTensor, positions: OnnxTensor) -> OnnxTensor:
    """Rows of a table [M, R / 2] at positions [S] or [B, S]: [S, R / 2] or [B, 1, S, R / 2]."""
    if positions.known is not None and table.known is not None:
        found = constant(table.known[positions.known])
    else:
        found = ops.take_rows(table, positions)
    return ops.expand_dims(found, [1]) if positions.rank == 2 else found


def consecutive(first: OnnxTensor | int, tokens: int) -> OnnxTensor:
    """Positions [tokens] from the first one on, [B, tokens] from those of a batch [B] on."""
    if isinstance(first, int):
        return constant(np.arange(first, first + tokens, dtype=np.int32))
    if first.known is not None:
        return constant(first.known.reshape(*first.shape, 1) + np.arange(tokens))
    return ops.expand_dims(first, [first.rank]) + ops.iota(first.dtype, [tokens], 0)


@operator("RotaryEmbedding", domain=MICROSOFT, inputs="input position_ids cos_cache sin_cache")
def lower_rotary_embedding(node: NodeCall) -> OnnxTensor:
    """Lowers RotaryEmbedding of [B, S, N H] or [B, N, S, H]; positions are [B, S], or the first one
    of all sequences."""
    x, positions, cos, sin = (node.take(i) for i in range(4))
    heads, interleaved = node.attr("num_heads", 0), bool(node.attr("interleaved", 0))
    if node.attr("is_packed_batching", 0):
        node.refuse("attribute 'is_packed_batching' is not supported", "0")
    if node.attr("scale", 1.0) != 1:
        node.refuse("attribute 'scale' is not supported", "1.0")
    width, upright = node.attr("rotary_embedding_dim", 0) or 2 * cos.shape[1], x
    if width != 2 * cos.shape[1]:
        raise BadNode(f"tables of {cos.shape[1]} angles", f"{width // 2}")
    if x.rank == 3:
        heads = heads or x.shape[2] // width
        split = ops.reshape(x, [*x.shape[:2], heads, x.shape[2] // heads])
        upright = ops.transpose(split, [0, 2, 1, 3])
    tokens = upright.shape[2]
    if positions.count == 1 and positions.rank == 1:
        positions = consecutive(ops.reshape(positions, []), tokens)
    found = rotated(upright, angles(cos, positions), angles(sin, positions), interleaved)
    return ops.reshape(ops.transpose(found, [0, 2, 1, 3]), x.shape) if x.rank == 3 else found
