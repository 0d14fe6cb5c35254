"""U-Net: images made smaller and larger again, each size beside what it was on the way down
(Ronneberger et al., 2015), padded, so that the result is as large as the images."""

from __future__ import annotations

from dataclasses import dataclass

from davinci.zoo.graph import require
from davinci.zoo.layers import ImageNetwork, Images


@dataclass(frozen=True)
class Unet(ImageNetwork):
    """Parameters besides: channels of the first level, levels."""

    resolution: int = 256
    classes: int = 2
    width: int = 64
    levels: int = 4

    def layers(self, images: Images) -> str:
        smallest = 1 << self.levels
        text = f"resolution must be a multiple of {smallest}"
        require("unet", self.resolution % smallest == 0, text, self.resolution)
        seen = []
        for level in range(self.levels):
            with images.graph.scope(f"down{level}"):
                images = twice(images, self.width << level)
                seen.append(images)
                images = images.pool("Max", 2, 2)
        images = twice(images, self.width << self.levels)
        for level in reversed(range(self.levels)):
            with images.graph.scope(f"up{level}"):
                images = enlarged(images, self.width << level)
                images = twice(seen[level].beside(images), self.width << level)
        return images.conv(self.classes, 1).value

    def result_shape(self) -> list[int]:
        return [self.batch, self.classes, self.resolution, self.resolution]


def twice(images: Images, channels: int) -> Images:
    return images.conv(channels, 3).relu().conv(channels, 3).relu()


def enlarged(images: Images, channels: int) -> Images:
    """Twice as high and wide."""
    graph, name = images.graph, f"up{len(images.graph.nodes)}"
    std = images.channels**-0.5
    weight = graph.weight(f"{name}.weight", images.channels, channels, 2, 2, std=std)
    bias = graph.weight(f"{name}.bias", channels)
    lies = {"kernel_shape": [2, 2], "strides": [2, 2]}
    return images.then("ConvTranspose", weight, bias, channels=channels, **lies)
