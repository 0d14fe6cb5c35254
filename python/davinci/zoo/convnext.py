"""ConvNeXt: blocks of a 7x7 convolution of each channel alone, a norm over channels, and two
products (Liu et al., "A ConvNet for the 2020s", 2022), as torchvision exports it."""

from __future__ import annotations

from dataclasses import dataclass

from davinci.zoo.graph import OnnxGraph
from davinci.zoo.layers import ImageNetwork, Images, dense
from davinci.zoo.transformer import gelu, layer_norm, linear

DEPTHS = (3, 3, 9, 3)
FIRST = (0, 2, 3, 1)
LAST = (0, 3, 1, 2)
"""Channels behind the pixels, and back in front of them."""


@dataclass(frozen=True)
class Convnext(ImageNetwork):
    """ConvNeXt-T. Parameters besides: channels of the first stage."""

    width: int = 96

    def layers(self, images: Images) -> str:
        images = normal(images.conv(self.width, 4, 4, padded=False), "stem")
        for stage, depth in enumerate(DEPTHS):
            with images.graph.scope(f"stage{stage}"):
                if stage:
                    images = normal(images, f"stage{stage}")
                    images = images.conv(self.width << stage, 2, 2, padded=False)
                for number in range(depth):
                    images = block(images, f"stage{stage}.{number}")
        graph = images.graph
        flat = graph.node("Flatten", normal(images.then("GlobalAveragePool"), "head").value)
        return dense(graph, flat, images.channels, self.classes)


def normal(images: Images, name: str) -> Images:
    """Normalised over the channels of each pixel."""
    graph = images.graph
    behind = graph.node("Transpose", images.value, perm=list(FIRST))
    made = layer_norm(graph, f"{name}.norm", behind, images.channels)
    return Images(graph, graph.node("Transpose", made, perm=list(LAST)), images.channels)


def block(images: Images, name: str) -> Images:
    graph: OnnxGraph = images.graph
    channels = images.channels
    made = images.conv(channels, 7, groups=channels)
    x = graph.node("Transpose", made.value, perm=list(FIRST))
    x = layer_norm(graph, f"{name}.norm", x, channels)
    x = gelu(graph, linear(graph, f"{name}.inner", x, channels, 4 * channels))
    x = linear(graph, f"{name}.outer", x, 4 * channels, channels)
    x = graph.node("Transpose", x, perm=list(LAST))
    scale = graph.weight(f"{name}.scale", channels, 1, 1, mean=1.0)
    return Images(graph, graph.node("Mul", x, scale), channels).plus(images)
