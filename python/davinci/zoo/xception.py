"""Xception: convolutions of each channel alone, then of single pixels, with shortcuts around them
(Chollet, 2017)."""

from __future__ import annotations

from dataclasses import dataclass

from davinci.zoo.layers import ImageNetwork, Images

ENTRY = (128, 256, 728)


@dataclass(frozen=True)
class Xception(ImageNetwork):
    """Parameters besides: blocks in the middle, which leave images as large as they are."""

    resolution: int = 299
    middle: int = 8

    def layers(self, images: Images) -> str:
        images = images.conv(32, 3, 2).relu().conv(64, 3).relu()
        for number, channels in enumerate(ENTRY):
            with images.graph.scope(f"entry{number}"):
                made = images.relu() if number else images
                made = separable(separable(made, channels).relu(), channels)
                images = made.pool("Max", 3, 2, 1).plus(images.conv(channels, 1, 2))
        for number in range(self.middle):
            with images.graph.scope(f"middle{number}"):
                made = images
                for _ in range(3):
                    made = separable(made.relu(), images.channels)
                images = made.plus(images)
        with images.graph.scope("exit"):
            made = separable(separable(images.relu(), 728).relu(), 1024)
            images = made.pool("Max", 3, 2, 1).plus(images.conv(1024, 1, 2))
            images = separable(separable(images, 1536).relu(), 2048).relu()
        return images.classified(self.classes)


def separable(images: Images, channels: int) -> Images:
    """Each channel convolved alone, then all of a pixel."""
    return images.conv(images.channels, 3, groups=images.channels).conv(channels, 1)
