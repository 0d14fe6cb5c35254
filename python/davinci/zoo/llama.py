"""Blocks of LLaMA and Mixtral: rotary places, keys and values shared by heads, gated products, for
Mixtral of the experts that a router chooses (Touvron et al., 2023; Jiang et al., 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto

from davinci.zoo.graph import OnnxGraph, require, require_positive
from davinci.zoo.transformer import (
    HEADS_FIRST,
    SequenceSizes,
    after_past,
    attention,
    causal_mask,
    linear,
    merge_heads,
    require_heads,
    reshaped,
    split_heads,
)

ROTARY_BASE = 10000.0


@dataclass(frozen=True)
class Llama:
    """Parameters: blocks, hidden size, heads, those of keys and values, width of the gated part,
    tokens, those in the cache before them, batch, and 1 for caches that are kept.

    Keys and values of all tokens are outputs, those of the `past` ones inputs. Kept ones are inputs
    of f16 with room for all tokens, of which the outputs are the next values, written in place.
    """

    layers: int = 1
    hidden: int = 1024
    heads: int = 16
    kv_heads: int = 4
    intermediate: int = 2816
    seq: int = 64
    past: int = 0
    batch: int = 1
    kept: int = 0
    seed: int = 0

    NAME: ClassVar[str] = "llama"

    def build(self) -> onnx.ModelProto:
        sizes = ("layers", "hidden", "heads", "kv_heads", "intermediate", "seq", "batch")
        require_positive(self, *sizes)
        require_heads(self.NAME, self.hidden, self.heads)
        text = "heads must be a multiple of kv_heads"
        found = f"heads={self.heads}, kv_heads={self.kv_heads}"
        require(self.NAME, self.heads % self.kv_heads == 0, text, found)
        graph = OnnxGraph(self.NAME, self.seed)
        shape = [self.batch, self.seq, self.hidden]
        x = graph.input("x", TensorProto.FLOAT, shape)
        mask = causal_mask(graph, self.seq, self.past)
        turns = self._turns(graph)
        for number in range(self.layers):
            name = f"layers.{number}"
            with graph.scope(name):
                x = self._attended(graph, name, x, mask, turns, number)
                normal = rms_norm(graph, f"{name}.post_norm", x, self.hidden)
                x = graph.node("Add", x, self.feed_forward(graph, f"{name}.mlp", normal))
        graph.output(rms_norm(graph, "norm", x, self.hidden), "y", shape)
        return graph.model()

    def feed_forward(self, graph: OnnxGraph, name: str, x: str) -> str:
        return gated(graph, name, x, self.hidden, self.intermediate)

    def inputs(self, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
        def normal(*shape: int) -> npt.NDArray[Any]:
            return rng.standard_normal(shape, dtype=np.float32)

        head = self.hidden // self.heads
        names = [f"past_{kind}_{i}" for i in range(self.layers) for kind in ("key", "value")]
        there = self.past + self.seq if self.kept else self.past
        dtype = np.float16 if self.kept else np.float32
        cache = {
            name: normal(self.batch, self.kv_heads, there, head).astype(dtype) for name in names
        }
        x = {"x": normal(self.batch, self.seq, self.hidden)}
        return {**x, **(cache if self.past or self.kept else {})}

    def _turns(self, graph: OnnxGraph) -> tuple[str, str]:
        """Cosines and sines [1, 1, seq, head] of the places of the tokens."""
        head = self.hidden // self.heads
        rates = ROTARY_BASE ** (-np.arange(0, head, 2) / head)
        angles = np.arange(self.past, self.past + self.seq)[:, None] * rates
        both = np.concatenate([angles, angles], axis=1)[None, None]
        parts = (np.cos(both), np.sin(both))
        cosines, sines = (graph.constant(part.astype(np.float32)) for part in parts)
        return cosines, sines

    def _attended(
        self,
        graph: OnnxGraph,
        name: str,
        x: str,
        mask: str,
        turns: tuple[str, str],
        number: int,
    ) -> str:
        sizes = SequenceSizes(self.batch, self.seq, self.hidden, self.heads)
        few = SequenceSizes(self.batch, self.seq, sizes.head * self.kv_heads, self.kv_heads)
        normal = rms_norm(graph, f"{name}.norm", x, self.hidden)
        query, key, value = (
            split_heads(
                graph,
                linear(graph, f"{name}.{part}", normal, self.hidden, of.hidden, bias=False),
                of,
            )
            for part, of in (("q", sizes), ("k", few), ("v", few))
        )
        query, key = (turned(graph, part, turns, sizes.head) for part in (query, key))
        shape = [self.batch, self.kv_heads, self.seq, sizes.head]
        key = after_past(graph, f"key_{number}", key, shape, self.past, bool(self.kept))
        value = after_past(graph, f"value_{number}", value, shape, self.past, bool(self.kept))
        key, value = (self._shared(graph, part) for part in (key, value))
        key = graph.node("Transpose", key, perm=[0, 1, 3, 2])
        made = merge_heads(graph, attention(graph, query, key, value, sizes.head, mask), sizes)
        made = linear(graph, f"{name}.o", made, self.hidden, self.hidden, bias=False)
        return graph.node("Add", x, made)

    def _shared(self, graph: OnnxGraph, x: str) -> str:
        """[batch, kv_heads, tokens, head], each for several heads."""
        times, head = self.heads // self.kv_heads, self.hidden // self.heads
        if times == 1:
            return x
        tokens = self.past + self.seq
        apart = graph.node("Unsqueeze", x, graph.constant(np.array([2])))
        shape = np.array([self.batch, self.kv_heads, times, tokens, head])
        repeated = graph.node("Expand", apart, graph.constant(shape))
        return reshaped(graph, repeated, [self.batch, self.heads, tokens, head])


@dataclass(frozen=True)
class Mixtral(Llama):
    """Parameters besides: experts, and how many of them a token takes."""

    intermediate: int = 1792
    experts: int = 8
    chosen: int = 2

    NAME: ClassVar[str] = "mixtral"

    def feed_forward(self, graph: OnnxGraph, name: str, x: str) -> str:
        """All experts compute all tokens, as exports of fixed shape have it; those that were not
        chosen count 0 times."""
        found = f"chosen={self.chosen}, experts={self.experts}"
        text = "chosen must be 1 to the number of experts"
        require(self.NAME, 0 < self.chosen <= self.experts, text, found)
        scores = linear(graph, f"{name}.router", x, self.hidden, self.experts, bias=False)
        count = graph.constant(np.array([self.chosen]))
        best, places = graph.parts("TopK", scores, count, count=2, axis=-1)
        shares = graph.node("Softmax", best, axis=-1)
        none = np.zeros((self.batch, self.seq, self.experts), np.float32)
        shares = graph.node("ScatterElements", graph.constant(none), places, shares, axis=2)
        parts = graph.parts("Split", shares, count=self.experts, axis=2)
        total = ""
        for number, share in enumerate(parts):
            with graph.scope(f"expert{number}"):
                inner = f"{name}.experts.{number}"
                made = gated(graph, inner, x, self.hidden, self.intermediate)
                made = graph.node("Mul", made, share)
                total = graph.node("Add", total, made) if total else made
        return total


def rms_norm(graph: OnnxGraph, name: str, x: str, size: int) -> str:
    """x / sqrt(mean(x^2)), scaled."""
    squares = graph.node("Pow", x, graph.scalar(2))
    mean = graph.node("ReduceMean", squares, axes=[-1])
    root = graph.node("Sqrt", graph.node("Add", mean, graph.scalar(1e-5)))
    normal = graph.node("Mul", x, graph.node("Reciprocal", root))
    return graph.node("Mul", graph.weight(f"{name}.weight", size, mean=1.0), normal)


def turned(graph: OnnxGraph, x: str, turns: tuple[str, str], head: int) -> str:
    """Halves of a head, [batch, heads, seq, head], turned by the angles of their tokens."""
    start, half, end = (graph.constant(np.array([i])) for i in (0, head // 2, head))
    along = graph.constant(np.array([len(HEADS_FIRST) - 1]))
    low = graph.node("Slice", x, start, half, along)
    high = graph.node("Slice", x, half, end, along)
    across = graph.node("Concat", graph.node("Neg", high), low, axis=-1)
    cosines, sines = turns
    return graph.node("Add", graph.node("Mul", x, cosines), graph.node("Mul", across, sines))


def gated(graph: OnnxGraph, name: str, x: str, hidden: int, inner: int) -> str:
    """down(swish(gate(x)) * up(x))."""
    gate = linear(graph, f"{name}.gate", x, hidden, inner, bias=False)
    swish = graph.node("Mul", gate, graph.node("Sigmoid", gate))
    up = linear(graph, f"{name}.up", x, hidden, inner, bias=False)
    return linear(graph, f"{name}.down", graph.node("Mul", swish, up), inner, hidden, bias=False)
