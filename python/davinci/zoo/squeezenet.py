"""SqueezeNet 1.1: few channels, made many by 1x1 and 3x3 convolutions beside each other."""

from __future__ import annotations

from dataclasses import dataclass

from davinci.zoo.layers import ImageNetwork, Images

FIRES = ((16, 16, 0, 32, 32, 0), (48, 48, 64, 64))
"""Channels that are left of each module, a fourth of what either of its convolutions makes; with 0
for a maximum of 3x3 pixels."""


@dataclass(frozen=True)
class Squeezenet(ImageNetwork):
    """SqueezeNet."""

    def layers(self, images: Images) -> str:
        images = images.conv(64, 3, 2, padded=False).relu().pool("Max", 3, 2, ceil=True)
        for number, inner in enumerate([*FIRES[0], *FIRES[1]]):
            with images.graph.scope(f"fire{number}"):
                images = fire(images, inner) if inner else images.pool("Max", 3, 2, ceil=True)
        return images.conv(self.classes, 1).relu().averages()


def fire(images: Images, inner: int) -> Images:
    """`inner` channels, then 8 times as many."""
    few = images.conv(inner, 1).relu()
    return few.conv(4 * inner, 1).relu().beside(few.conv(4 * inner, 3).relu())
