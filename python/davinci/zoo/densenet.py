"""DenseNet: every layer reads what all before it have made."""

from __future__ import annotations

from dataclasses import dataclass

from davinci.zoo.graph import require
from davinci.zoo.layers import ImageNetwork, Images

BLOCKS = {121: (6, 12, 24, 16), 169: (6, 12, 32, 32), 201: (6, 12, 48, 32)}
"""Layers of the blocks, by depth."""


@dataclass(frozen=True)
class Densenet(ImageNetwork):
    """Parameters besides: depth, channels that a layer adds."""

    depth: int = 121
    growth: int = 32

    def layers(self, images: Images) -> str:
        known = f"depth must be one of {[*BLOCKS]}"
        require("densenet", self.depth in BLOCKS, known, self.depth)
        images = images.conv(2 * self.growth, 7, 2).relu().pool("Max", 3, 2, 1)
        for number, layers in enumerate(BLOCKS[self.depth]):
            if number:
                images = images.batch_norm().relu().conv(images.channels // 2, 1)
                images = images.pool("Average", 2, 2)
            for layer in range(layers):
                with images.graph.scope(f"block{number + 1}.{layer}"):
                    made = images.batch_norm().relu().conv(4 * self.growth, 1).relu()
                    images = images.beside(made.conv(self.growth, 3))
        return images.batch_norm().relu().classified(self.classes)
