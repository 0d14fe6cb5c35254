"""VGG-16: 3x3 convolutions one after the other, and three dense layers."""

from __future__ import annotations

from dataclasses import dataclass

from davinci.zoo.layers import ImageNetwork, Images, dense

STAGES = (2, 2, 3, 3, 3)
"""Convolutions of the stages; a maximum of 2x2 pixels follows each."""


@dataclass(frozen=True)
class Vgg(ImageNetwork):
    """Parameters besides: channels of the first stage, numbers of the dense layers."""

    width: int = 64
    hidden: int = 4096

    def layers(self, images: Images) -> str:
        for stage, convolutions in enumerate(STAGES):
            with images.graph.scope(f"stage{stage + 1}"):
                for _ in range(convolutions):
                    images = images.conv(self.width << min(stage, 3), 3).relu()
                images = images.pool("Max", 2, 2)
        graph, side = images.graph, self.resolution >> len(STAGES)
        value, given = graph.node("Flatten", images.value), images.channels * side * side
        for made in (self.hidden, self.hidden):
            value = graph.node("Relu", dense(graph, value, given, made))
            given = made
        return dense(graph, value, given, self.classes)
