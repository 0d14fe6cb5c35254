"""Swin transformer: attention within windows, which are moved by half of their side in every second
layer; four stages, each with a quarter of the tokens (Liu et al., 2021)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from davinci.zoo.graph import OnnxGraph, require
from davinci.zoo.layers import ImageNetwork, Images, dense
from davinci.zoo.transformer import (
    MASKED,
    SequenceSizes,
    attention,
    feed_forward,
    layer_norm,
    linear,
    merge_heads,
    require_heads,
    reshaped,
    split_heads,
)

DEPTHS = (2, 2, 6, 2)
PATCH = 4
HEAD = 32
"""Numbers of a head."""


@dataclass(frozen=True)
class Swin(ImageNetwork):
    """Swin-T. Parameters besides: numbers of a token in the first stage, side of a window."""

    width: int = 96
    window: int = 7

    def layers(self, images: Images) -> str:
        unit = PATCH * self.window << (len(DEPTHS) - 1)
        text = f"resolution must be a multiple of {unit}"
        require("swin", self.resolution % unit == 0, text, self.resolution)
        require_heads("swin", self.width, max(1, self.width // HEAD))
        graph, side, width = images.graph, self.resolution // PATCH, self.width
        patched = images.conv(width, PATCH, PATCH, padded=False)
        x = graph.node("Transpose", patched.value, perm=[0, 2, 3, 1])
        x = layer_norm(graph, "patches.norm", x, width)
        for stage, depth in enumerate(DEPTHS):
            with graph.scope(f"stage{stage}"):
                if stage:
                    x = self._merged(graph, f"stage{stage}.merge", x, side, width)
                    side, width = side // 2, 2 * width
                for number in range(depth):
                    # All windows of an image that has one are the same however they are moved.
                    moved = self.window // 2 if number % 2 and side > self.window else 0
                    x = self._layer(graph, f"stage{stage}.{number}", x, side, width, moved)
        x = layer_norm(graph, "norm", x, width)
        flat = reshaped(graph, x, [self.batch, side * side, width])
        averages = graph.node("ReduceMean", flat, axes=[1], keepdims=0)
        return dense(graph, averages, width, self.classes)

    def _merged(self, graph: OnnxGraph, name: str, x: str, side: int, width: int) -> str:
        """Four tokens as one of twice as many numbers."""
        half = side // 2
        parted = reshaped(graph, x, [self.batch, half, 2, half, 2, width])
        beside = graph.node("Transpose", parted, perm=[0, 1, 3, 4, 2, 5])
        four = reshaped(graph, beside, [self.batch, half, half, 4 * width])
        normal = layer_norm(graph, f"{name}.norm", four, 4 * width)
        return linear(graph, name, normal, 4 * width, 2 * width, bias=False)

    def _layer(self, graph: OnnxGraph, name: str, x: str, side: int, width: int, moved: int) -> str:
        """[batch, side, side, width] -> the same."""
        window, across = self.window, side // self.window
        tokens = window * window
        sizes = SequenceSizes(self.batch * across**2, tokens, width, width // HEAD or 1)
        made = layer_norm(graph, f"{name}.norm1", x, width)
        made = rolled(graph, made, side - moved) if moved else made
        parted = [self.batch, across, window, across, window, width]
        made = graph.node("Transpose", reshaped(graph, made, parted), perm=[0, 1, 3, 2, 4, 5])
        made = reshaped(graph, made, [sizes.batch, tokens, width])
        made = self._attention(graph, name, made, sizes, across, moved)
        parted = [self.batch, across, across, window, window, width]
        made = graph.node("Transpose", reshaped(graph, made, parted), perm=[0, 1, 3, 2, 4, 5])
        made = reshaped(graph, made, [self.batch, side, side, width])
        made = rolled(graph, made, moved) if moved else made
        x = graph.node("Add", x, made)
        return feed_forward(graph, name, x, width)

    def _attention(
        self, graph: OnnxGraph, name: str, x: str, sizes: SequenceSizes, across: int, moved: int
    ) -> str:
        """Within windows, with a number for each head and each way from token to token."""
        joined = linear(graph, f"{name}.qkv", x, sizes.hidden, 3 * sizes.hidden)
        parts = reshaped(graph, joined, [sizes.batch, sizes.seq, 3, sizes.hidden])
        split = graph.parts("Split", parts, count=3, axis=2)
        query, value = (split_heads(graph, split[i], sizes) for i in (0, 2))
        key = split_heads(graph, split[1], sizes, perm=(0, 2, 3, 1))
        table = graph.rng.standard_normal((sizes.heads, (2 * self.window - 1) ** 2))
        mask = (table[:, ways(self.window)] * 0.05)[None]
        if moved:
            apart = np.tile(apart_in(across, self.window, moved), (self.batch, 1, 1))
            mask = mask + apart[:, None]
        bias = graph.constant(mask.astype(np.float32))
        made = attention(graph, query, key, value, sizes.head, bias)
        made = merge_heads(graph, made, sizes)
        return linear(graph, f"{name}.projection", made, sizes.hidden, sizes.hidden)


def rolled(graph: OnnxGraph, x: str, cut: int) -> str:
    """Rows and columns before `cut` moved behind the others."""
    first, last = graph.constant(np.array([0])), graph.constant(np.array([1 << 30]))
    at = graph.constant(np.array([cut]))
    for axis in (1, 2):
        along = graph.constant(np.array([axis]))
        before = graph.node("Slice", x, first, at, along)
        x = graph.node("Concat", graph.node("Slice", x, at, last, along), before, axis=axis)
    return x


def ways(window: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """[tokens, tokens]: which of the (2 window - 1)^2 ways leads from one to the other."""
    places = np.stack(np.meshgrid(np.arange(window), np.arange(window), indexing="ij"))
    flat = places.reshape(2, -1)
    way = flat[:, :, None] - flat[:, None, :] + window - 1
    return np.asarray(way[0] * (2 * window - 1) + way[1])


def apart_in(
    across: int, window: int, moved: int
) -> np.ndarray[tuple[int, int, int], np.dtype[np.float64]]:
    """[windows, tokens, tokens]: what keeps tokens apart that only moving has brought together."""
    side = across * window
    band = np.digitize(np.arange(side), [side - window, side - moved])
    region = band[:, None] * 3 + band[None, :]
    parted = region.reshape(across, window, across, window).swapaxes(1, 2)
    flat = parted.reshape(across * across, -1)
    return np.asarray(np.where(flat[:, :, None] == flat[:, None, :], 0.0, MASKED))
