"""GoogLeNet: convolutions of several sizes beside each other; without what helps its training."""

from __future__ import annotations

from dataclasses import dataclass

from davinci.zoo.layers import ImageNetwork, Images

STAGES = (
    ((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64)),
    (
        (192, 96, 208, 16, 48, 64),
        (160, 112, 224, 24, 64, 64),
        (128, 128, 256, 24, 64, 64),
        (112, 144, 288, 32, 64, 64),
        (256, 160, 320, 32, 128, 128),
    ),
    ((256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)),
)
"""Channels of 1x1; in front of 3x3, of 3x3; in front of 5x5, of 5x5; behind the maximum."""


@dataclass(frozen=True)
class Googlenet(ImageNetwork):
    """GoogLeNet."""

    def layers(self, images: Images) -> str:
        images = images.conv(64, 7, 2).relu().pool("Max", 3, 2, ceil=True)
        images = images.conv(64, 1).relu().conv(192, 3).relu().pool("Max", 3, 2, ceil=True)
        for stage, modules in enumerate(STAGES):
            if stage:
                images = images.pool("Max", 3, 2, ceil=True)
            for number, channels in enumerate(modules):
                with images.graph.scope(f"inception{stage + 3}.{number}"):
                    images = inception(images, *channels)
        return images.classified(self.classes)


def inception(x: Images, one: int, r3: int, three: int, r5: int, five: int, pooled: int) -> Images:
    return (
        x.conv(one, 1)
        .relu()
        .beside(
            x.conv(r3, 1).relu().conv(three, 3).relu(),
            x.conv(r5, 1).relu().conv(five, 5).relu(),
            x.pool("Max", 3, 1, 1).conv(pooled, 1).relu(),
        )
    )
