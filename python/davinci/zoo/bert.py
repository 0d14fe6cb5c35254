"""A BERT encoder with pooler, node by node as PyTorch exports the one of Hugging Face.

Layer norm, gelu and the attention mask are decomposed, biases are separate additions, and heads are
split by Reshape and Transpose (Devlin et al., "BERT", 2018).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto

from davinci.zoo.graph import WEIGHT_STD, OnnxGraph, require_positive
from davinci.zoo.transformer import (
    SequenceSizes,
    attention,
    gelu,
    linear,
    merge_heads,
    require_heads,
    split_heads,
)

TOKEN_TYPES = 2
LAYER_NORM_EPSILON = 1e-12
MASKED_SCORE = -10000.0


@dataclass(frozen=True)
class Bert:
    """Parameters: encoder layers, hidden size, attention heads, tokens, vocabulary, batch.

    `intermediate` is the width of the feed-forward part, 0 for four times `hidden`.
    """

    layers: int = 2
    hidden: int = 768
    heads: int = 12
    seq: int = 128
    vocab: int = 2000
    intermediate: int = 0
    batch: int = 1
    seed: int = 0

    def build(self) -> onnx.ModelProto:
        require_positive(self, "layers", "hidden", "heads", "seq", "vocab", "batch")
        require_heads("bert", self.hidden, self.heads)
        graph = OnnxGraph("bert", self.seed)
        shape = [self.batch, self.seq]
        ids = graph.input("input_ids", TensorProto.INT64, shape)
        attention_mask = graph.input("attention_mask", TensorProto.INT64, shape)
        types = graph.input("token_type_ids", TensorProto.INT64, shape)
        mask = self.mask(graph, attention_mask)
        with graph.scope("embeddings"):
            value = self.embeddings(graph, ids, types)
        for i in range(self.layers):
            with graph.scope("encoder"), graph.scope(f"layer.{i}"):
                value = self.layer(graph, f"encoder.layer.{i}", value, mask)
        with graph.scope("pooler"):
            pooled = self.pooler(graph, value)
        graph.output(value, "last_hidden_state", [*shape, self.hidden])
        graph.output(pooled, "pooler_output", [self.batch, self.hidden])
        return graph.model()

    def inputs(self, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
        """Random tokens in two segments, the last eighth of them padding."""
        shape = (self.batch, self.seq)
        place = np.broadcast_to(np.arange(self.seq), shape)
        return {
            "input_ids": rng.integers(0, self.vocab, shape, dtype=np.int64),
            "attention_mask": (place < self.seq - self.seq // 8).astype(np.int64),
            "token_type_ids": (place >= self.seq // 2).astype(np.int64),
        }

    def mask(self, graph: OnnxGraph, attention_mask: str) -> str:
        """[batch, seq] of 0 and 1 -> [batch, 1, 1, seq] to be added to the scores."""
        value = graph.node("Unsqueeze", attention_mask, graph.constant(np.array([1, 2])))
        value = graph.node("Cast", value, to=TensorProto.FLOAT)
        value = graph.node("Sub", graph.scalar(1.0), value)
        return graph.node("Mul", value, graph.scalar(MASKED_SCORE))

    def embeddings(self, graph: OnnxGraph, ids: str, types: str) -> str:
        words = graph.weight("embeddings.word_embeddings", self.vocab, self.hidden)
        segments = graph.weight("embeddings.token_type_embeddings", TOKEN_TYPES, self.hidden)
        positions = graph.weight("embeddings.position_embeddings", self.seq, self.hidden)
        place = graph.constant(np.arange(self.seq, dtype=np.int64)[None, :])
        word = graph.node("Gather", words, ids, axis=0)
        segment = graph.node("Gather", segments, types, axis=0)
        position = graph.node("Gather", positions, place, axis=0)
        total = graph.node("Add", graph.node("Add", word, segment), position)
        return self.layer_norm(graph, "embeddings.LayerNorm", total)

    def layer(self, graph: OnnxGraph, name: str, value: str, mask: str) -> str:
        with graph.scope("attention"):
            attended = self.attention(graph, f"{name}.attention", value, mask)
            projected = self.linear(graph, f"{name}.attention.output", attended, self.hidden)
            summed = graph.node("Add", projected, value)
            value = self.layer_norm(graph, f"{name}.attention.LayerNorm", summed)
        inner_size = self.intermediate or 4 * self.hidden
        inner = self.linear(graph, f"{name}.intermediate", value, inner_size)
        with graph.scope("intermediate"):
            activated = gelu(graph, inner)
        outer = self.linear(graph, f"{name}.output", activated, self.hidden, inner_size)
        return self.layer_norm(graph, f"{name}.LayerNorm", graph.node("Add", outer, value))

    def attention(self, graph: OnnxGraph, name: str, value: str, mask: str) -> str:
        """[batch, seq, hidden] -> the same; softmax(q k' / sqrt(d) + mask) v for each head."""
        sizes = SequenceSizes(self.batch, self.seq, self.hidden, self.heads)
        query = split_heads(graph, self.linear(graph, f"{name}.query", value, self.hidden), sizes)
        key = self.linear(graph, f"{name}.key", value, self.hidden)
        key = split_heads(graph, key, sizes, perm=(0, 2, 3, 1))
        content = self.linear(graph, f"{name}.value", value, self.hidden)
        content = split_heads(graph, content, sizes)
        context = attention(graph, query, key, content, sizes.head, mask)
        return merge_heads(graph, context, sizes)

    def linear(self, graph: OnnxGraph, name: str, value: str, outputs: int, inputs: int = 0) -> str:
        with graph.scope(name.rpartition(".")[2]):
            return linear(graph, name, value, inputs or self.hidden, outputs, std=WEIGHT_STD)

    def layer_norm(self, graph: OnnxGraph, name: str, value: str) -> str:
        with graph.scope("LayerNorm"):
            centred = graph.node("Sub", value, graph.node("ReduceMean", value, axes=[-1]))
            squares = graph.node("Pow", centred, graph.scalar(2.0))
            variance = graph.node("ReduceMean", squares, axes=[-1])
            stable = graph.node("Add", variance, graph.scalar(LAYER_NORM_EPSILON))
            normal = graph.node("Div", centred, graph.node("Sqrt", stable))
            scaled = graph.node(
                "Mul", normal, graph.weight(f"{name}.weight", self.hidden, mean=1.0)
            )
            return graph.node("Add", scaled, graph.weight(f"{name}.bias", self.hidden))

    def pooler(self, graph: OnnxGraph, value: str) -> str:
        first = graph.node("Gather", value, graph.constant(np.int64(0)), axis=1)
        weight = graph.weight("pooler.weight", self.hidden, self.hidden)
        dense = graph.node(
            "Gemm", first, weight, graph.weight("pooler.bias", self.hidden), transB=1
        )
        return graph.node("Tanh", dense)
