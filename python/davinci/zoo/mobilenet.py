"""MobileNet V1 and V2: convolutions of each channel alone, then of single pixels."""

from __future__ import annotations

from dataclasses import dataclass

from davinci.zoo.layers import ImageNetwork, Images

PAIRS = (
    *((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)),
    *((512, 1),) * 5,
    *((1024, 2), (1024, 1)),
)
"""V1: channels and strides of the pairs of convolutions."""

BLOCKS = (
    *((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)),
    *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
)
"""V2: times as many channels inside, channels, blocks, and the stride of the first one."""


@dataclass(frozen=True)
class MobilenetV1(ImageNetwork):
    """Parameters besides: percent of the channels."""

    percent: int = 100

    def layers(self, images: Images) -> str:
        images = images.conv(scaled(32, self.percent), 3, 2).relu()
        for number, (channels, stride) in enumerate(PAIRS):
            with images.graph.scope(f"pair{number}"):
                images = images.conv(images.channels, 3, stride, groups=images.channels).relu()
                images = images.conv(scaled(channels, self.percent), 1).relu()
        return images.classified(self.classes)


@dataclass(frozen=True)
class MobilenetV2(ImageNetwork):
    """Parameters besides: percent of the channels."""

    percent: int = 100

    def layers(self, images: Images) -> str:
        images = images.conv(scaled(32, self.percent), 3, 2).relu6()
        for times, channels, count, stride in BLOCKS:
            for number in range(count):
                with images.graph.scope(f"channels{channels}.{number}"):
                    made = scaled(channels, self.percent)
                    images = block(images, times, made, 1 if number else stride)
        return images.conv(scaled(1280, max(100, self.percent)), 1).relu6().classified(self.classes)


def block(images: Images, times: int, channels: int, stride: int) -> Images:
    """More channels, each convolved alone, and fewer again; beside them the images as they are."""
    inner = images.channels * times
    made = images.conv(inner, 1).relu6() if times > 1 else images
    made = made.conv(inner, 3, stride, groups=inner).relu6().conv(channels, 1)
    return made.plus(images) if stride == 1 and channels == images.channels else made


def scaled(channels: int, percent: int) -> int:
    """A part of channels, in eights.

    >>> scaled(32, 75)
    24
    """
    return max(8, (channels * percent // 100 + 4) // 8 * 8)
