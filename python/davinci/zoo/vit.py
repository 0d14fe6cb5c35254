"""Vision transformer: patches of an image are the tokens of an encoder, before them one that
becomes the class (Dosovitskiy et al., 2021)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from davinci.zoo.graph import OnnxGraph, require
from davinci.zoo.layers import ImageNetwork, Images, dense
from davinci.zoo.transformer import (
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


@dataclass(frozen=True)
class Vit(ImageNetwork):
    """Parameters besides: side of a patch, layers, numbers of a token, heads."""

    patch: int = 16
    depth: int = 12
    hidden: int = 768
    heads: int = 12

    def layers(self, images: Images) -> str:
        text = "resolution must be a multiple of patch"
        found = f"resolution={self.resolution}, patch={self.patch}"
        require("vit", self.resolution % self.patch == 0, text, found)
        require_heads("vit", self.hidden, self.heads)
        graph, patches = images.graph, (self.resolution // self.patch) ** 2
        patched = images.conv(self.hidden, self.patch, self.patch, padded=False)
        flat = reshaped(graph, patched.value, [self.batch, self.hidden, patches])
        tokens = graph.node("Transpose", flat, perm=[0, 2, 1])
        first = graph.weight("class_token", 1, 1, self.hidden)
        shape = graph.constant(np.array([self.batch, 1, self.hidden], np.int64))
        tokens = graph.node("Concat", graph.node("Expand", first, shape), tokens, axis=1)
        places = graph.weight("positions", 1, patches + 1, self.hidden)
        tokens = graph.node("Add", tokens, places)
        sizes = SequenceSizes(self.batch, patches + 1, self.hidden, self.heads)
        for number in range(self.depth):
            with graph.scope(f"layer.{number}"):
                tokens = encoder_layer(graph, f"layer.{number}", tokens, sizes)
        tokens = layer_norm(graph, "norm", tokens, self.hidden)
        first = graph.node("Gather", tokens, graph.constant(np.int64(0)), axis=1)
        return dense(graph, first, self.hidden, self.classes)


def encoder_layer(graph: OnnxGraph, name: str, x: str, sizes: SequenceSizes) -> str:
    """Norms stand in front of attention and of the two products behind it."""
    hidden = sizes.hidden
    normal = layer_norm(graph, f"{name}.norm1", x, hidden)
    joined = linear(graph, f"{name}.qkv", normal, hidden, 3 * hidden)
    query, key, value = graph.parts("Split", joined, count=3, axis=2)
    query, value = (split_heads(graph, part, sizes) for part in (query, value))
    key = split_heads(graph, key, sizes, perm=(0, 2, 3, 1))
    made = merge_heads(graph, attention(graph, query, key, value, sizes.head), sizes)
    x = graph.node("Add", x, linear(graph, f"{name}.projection", made, hidden, hidden))
    return feed_forward(graph, name, x, hidden)
