"""ShuffleNet V2: half of the channels convolved, then all of them shuffled."""

from __future__ import annotations

from dataclasses import dataclass

from davinci.zoo.graph import require
from davinci.zoo.layers import ImageNetwork, Images

CHANNELS = {
    50: (48, 96, 192, 1024),
    100: (116, 232, 464, 1024),
    150: (176, 352, 704, 1024),
    200: (244, 488, 976, 2048),
}
"""Channels of the three stages and of the convolution behind them, by percent of the width: 0.5x to
2x of the paper (Ma and others, ECCV 2018)."""

BLOCKS = (4, 8, 4)
"""Blocks of the stages."""


@dataclass(frozen=True)
class ShufflenetV2(ImageNetwork):
    """ShuffleNet V2. Parameters besides: percent of the width, one of 50, 100, 150 and 200."""

    percent: int = 100

    def layers(self, images: Images) -> str:
        known = ", ".join(map(str, CHANNELS))
        require(
            "shufflenet-v2", self.percent in CHANNELS, f"percent is one of {known}", self.percent
        )
        *stages, last = CHANNELS[self.percent]
        images, side = images.conv(24, 3, 2).relu().pool("Max", 3, 2, 1), halved(self.resolution, 2)
        for stage, (channels, blocks) in enumerate(zip(stages, BLOCKS, strict=True)):
            side = halved(side, 1)
            for number in range(blocks):
                with images.graph.scope(f"stage{stage + 2}.{number}"):
                    made = block(images, channels // 2, first=not number)
                    images = shuffled(made, self.batch, side)
        return images.conv(last, 1).relu().classified(self.classes)


def halved(side: int, times: int) -> int:
    """Through as many strides of 2, padded.

    >>> halved(57, 2)
    15
    """
    for _ in range(times):
        side = -(-side // 2)
    return side


def block(images: Images, channels: int, first: bool) -> Images:
    """Two branches of so many channels: of the first block both are convolved, with a stride."""
    if first:
        left = images.conv(images.channels, 3, 2, groups=images.channels).conv(channels, 1).relu()
        right = images
    else:
        left, right = (half(images, number) for number in range(2))
    right = right.conv(channels, 1).relu()
    right = right.conv(channels, 3, 2 if first else 1, groups=channels).conv(channels, 1).relu()
    return left.beside(right)


def half(images: Images, number: int) -> Images:
    """Half of the channels."""
    count = images.channels // 2
    starts, ends = ([(number + i) * count] for i in range(2))
    limits = (images.graph.constant(values) for values in (starts, ends, [1]))
    return images.then("Slice", *limits, channels=count)


def shuffled(images: Images, batch: int, side: int) -> Images:
    """Channels of both halves in turn."""
    shapes = [[batch, 2, images.channels // 2, side, side], [batch, images.channels, side, side]]
    first, last = (images.graph.constant(shape) for shape in shapes)
    return (
        images.then("Reshape", first).then("Transpose", perm=[0, 2, 1, 3, 4]).then("Reshape", last)
    )
