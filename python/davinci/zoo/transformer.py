"""What transformers are made of, node by node as PyTorch exports it; values are names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from davinci.zoo.graph import OnnxGraph, require

HEADS_FIRST = (0, 2, 1, 3)
MASKED = -1e4
"""What is added to scores that do not count: fp16 holds it, and its exponential is 0."""


@dataclass(frozen=True)
class SequenceSizes:
    """Sequences of tokens: how many, how long, numbers of a token, heads."""

    batch: int
    seq: int
    hidden: int
    heads: int

    @property
    def head(self) -> int:
        return self.hidden // self.heads


def require_heads(network: str, hidden: int, heads: int) -> None:
    found = f"hidden={hidden}, heads={heads}"
    require(network, hidden % heads == 0, "hidden must be a multiple of heads", found)


def linear(
    graph: OnnxGraph, name: str, x: str, given: int, made: int, bias: bool = True, std: float = 0
) -> str:
    """A dense layer from `given` features of a token to `made`; the weight's standard deviation is
    `std`, or such that the result varies as its operand does."""
    weight = graph.weight(f"{name}.weight", given, made, std=std or math.sqrt(1 / given))
    product = graph.node("MatMul", x, weight)
    return graph.node("Add", graph.weight(f"{name}.bias", made), product) if bias else product


def layer_norm(graph: OnnxGraph, name: str, x: str, size: int) -> str:
    weight = graph.weight(f"{name}.weight", size, mean=1.0)
    bias = graph.weight(f"{name}.bias", size)
    return graph.node("LayerNormalization", x, weight, bias, axis=-1, epsilon=1e-5)


def reshaped(graph: OnnxGraph, x: str, shape: Sequence[int]) -> str:
    return graph.node("Reshape", x, graph.constant(np.array(shape, np.int64)))


def split_heads(
    graph: OnnxGraph, x: str, sizes: SequenceSizes, perm: Sequence[int] = HEADS_FIRST, seq: int = 0
) -> str:
    """[batch, seq, hidden] -> [batch, seq, heads, head], transposed."""
    split = reshaped(graph, x, [sizes.batch, seq or sizes.seq, sizes.heads, sizes.head])
    return graph.node("Transpose", split, perm=list(perm))


def merge_heads(graph: OnnxGraph, x: str, sizes: SequenceSizes) -> str:
    """[batch, heads, seq, head] -> [batch, seq, hidden]."""
    merged = graph.node("Transpose", x, perm=list(HEADS_FIRST))
    return reshaped(graph, merged, [sizes.batch, sizes.seq, sizes.hidden])


def attention(graph: OnnxGraph, query: str, key: str, value: str, size: int, mask: str = "") -> str:
    """softmax(q k / sqrt(size) + mask) v; keys are transposed: [batch, heads, size, seq]."""
    scores = graph.node("MatMul", query, key)
    scores = graph.node("Div", scores, graph.scalar(math.sqrt(size)))
    scores = graph.node("Add", scores, mask) if mask else scores
    return graph.node("MatMul", graph.node("Softmax", scores, axis=-1), value)


def gelu(graph: OnnxGraph, x: str) -> str:
    """x / 2 * (1 + erf(x / sqrt(2)))."""
    error = graph.node("Erf", graph.node("Div", x, graph.scalar(math.sqrt(2.0))))
    factor = graph.node("Add", error, graph.scalar(1.0))
    return graph.node("Mul", graph.node("Mul", x, factor), graph.scalar(0.5))


def feed_forward(graph: OnnxGraph, name: str, x: str, hidden: int) -> str:
    """x and what two products of four times as many numbers make of its norm."""
    normal = layer_norm(graph, f"{name}.norm2", x, hidden)
    inner = gelu(graph, linear(graph, f"{name}.inner", normal, hidden, 4 * hidden))
    return graph.node("Add", x, linear(graph, f"{name}.outer", inner, 4 * hidden, hidden))


def causal_mask(graph: OnnxGraph, seq: int, past: int) -> str:
    """[1, 1, seq, past + seq]: a token sees those before it and itself."""
    later = np.triu(np.full((seq, past + seq), MASKED, np.float32), past + 1)
    return graph.constant(later[None, None])


def after_past(
    graph: OnnxGraph, name: str, new: str, shape: Sequence[int], past: int, kept: bool = False
) -> str:
    """Keys or values of all tokens [batch, heads, past + seq, head], an output of the graph that
    the next step takes as an input.

    Args:
        shape: [batch, heads, seq, head] of `new`.
        kept: whether the input is f16 and has room for the new ones, so that both may be one state
            that is written in place.
    """
    batch, heads, seq, head = shape
    if kept:
        whole = [batch, heads, past + seq, head]
        seen = graph.input(f"past_{name}", TensorProto.FLOAT16, whole)
        places = np.indices([batch, heads, seq])
        places[2] += past
        new = graph.node("Cast", new, to=TensorProto.FLOAT16)
        new = graph.node("ScatterND", seen, graph.constant(np.moveaxis(places, 0, -1)), new)
        graph.output(new, f"present_{name}", whole, TensorProto.FLOAT16)
        return graph.node("Cast", new, to=TensorProto.FLOAT)
    if past:
        seen = graph.input(f"past_{name}", TensorProto.FLOAT, [batch, heads, past, head])
        new = graph.node("Concat", seen, new, axis=2)
    graph.output(new, f"present_{name}", [batch, heads, past + seq, head])
    return new
