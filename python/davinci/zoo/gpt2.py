"""GPT-2: a decoder, all tokens at once or the next ones behind a cache (Radford et al., 2019)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto

from davinci.zoo.graph import OnnxGraph, require_positive
from davinci.zoo.transformer import (
    SequenceSizes,
    after_past,
    attention,
    causal_mask,
    layer_norm,
    linear,
    merge_heads,
    require_heads,
    split_heads,
)


@dataclass(frozen=True)
class Gpt2:
    """Parameters: decoder layers, hidden size, heads, tokens, those in the cache before them,
    vocabulary, batch.

    Keys and values of all tokens are outputs, those of the `past` ones inputs.
    """

    layers: int = 12
    hidden: int = 768
    heads: int = 12
    seq: int = 64
    past: int = 0
    vocab: int = 50257
    batch: int = 1
    seed: int = 0

    def build(self) -> onnx.ModelProto:
        require_positive(self, "layers", "hidden", "heads", "seq", "vocab", "batch")
        require_heads("gpt2", self.hidden, self.heads)
        graph = OnnxGraph("gpt2", self.seed)
        ids = graph.input("input_ids", TensorProto.INT64, [self.batch, self.seq])
        words = graph.weight("wte", self.vocab, self.hidden)
        places = graph.weight("wpe", self.past + self.seq, self.hidden)
        place = graph.constant(np.arange(self.past, self.past + self.seq)[None])
        x = graph.node("Gather", words, ids, axis=0)
        x = graph.node("Add", x, graph.node("Gather", places, place, axis=0))
        mask = causal_mask(graph, self.seq, self.past)
        for number in range(self.layers):
            with graph.scope(f"h.{number}"):
                x = self._layer(graph, f"h.{number}", x, mask, number)
        x = layer_norm(graph, "ln_f", x, self.hidden)
        logits = graph.node("MatMul", x, graph.node("Transpose", words, perm=[1, 0]))
        graph.output(logits, "logits", [self.batch, self.seq, self.vocab])
        return graph.model()

    def _layer(self, graph: OnnxGraph, name: str, x: str, mask: str, number: int) -> str:
        hidden = self.hidden
        sizes = SequenceSizes(self.batch, self.seq, hidden, self.heads)
        normal = layer_norm(graph, f"{name}.ln_1", x, hidden)
        joined = linear(graph, f"{name}.attn.c_attn", normal, hidden, 3 * hidden)
        parts = graph.parts("Split", joined, count=3, axis=2)
        query, key, value = (split_heads(graph, part, sizes) for part in parts)
        shape = [self.batch, self.heads, self.seq, sizes.head]
        key = after_past(graph, f"key_{number}", key, shape, self.past)
        value = after_past(graph, f"value_{number}", value, shape, self.past)
        key = graph.node("Transpose", key, perm=[0, 1, 3, 2])
        made = merge_heads(graph, attention(graph, query, key, value, sizes.head, mask), sizes)
        made = linear(graph, f"{name}.attn.c_proj", made, hidden, hidden)
        x = graph.node("Add", x, made)
        normal = layer_norm(graph, f"{name}.ln_2", x, hidden)
        inner = gelu_tanh(graph, linear(graph, f"{name}.mlp.c_fc", normal, hidden, 4 * hidden))
        return graph.node("Add", x, linear(graph, f"{name}.mlp.c_proj", inner, 4 * hidden, hidden))

    def inputs(self, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
        """Random tokens; what would be in the cache is normally distributed."""
        ids = rng.integers(0, self.vocab, (self.batch, self.seq), dtype=np.int64)
        shape = (self.batch, self.heads, self.past, self.hidden // self.heads)
        names = [f"past_{kind}_{i}" for i in range(self.layers) for kind in ("key", "value")]
        cache = {name: rng.standard_normal(shape, dtype=np.float32) for name in names}
        return {"input_ids": ids, **(cache if self.past else {})}


def gelu_tanh(graph: OnnxGraph, x: str) -> str:
    """x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))."""
    cube = graph.node("Mul", graph.node("Pow", x, graph.scalar(3)), graph.scalar(0.044715))
    inner = graph.node("Mul", graph.node("Add", x, cube), graph.scalar(math.sqrt(2 / math.pi)))
    factor = graph.node("Add", graph.node("Tanh", inner), graph.scalar(1))
    return graph.node("Mul", graph.node("Mul", x, graph.scalar(0.5)), factor)
