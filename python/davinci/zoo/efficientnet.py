"""EfficientNet-b0: blocks as MobileNet V2 has them, each channel weighed by all of them."""

from __future__ import annotations

from dataclasses import dataclass

from davinci.zoo.layers import ImageNetwork, Images

BLOCKS = (
    *((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3)),
    *((6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)),
)
"""Times as many channels inside, channels, blocks, the stride of the first, side of the kernel."""


@dataclass(frozen=True)
class Efficientnet(ImageNetwork):
    """EfficientNet-b0."""

    def layers(self, images: Images) -> str:
        images = images.conv(32, 3, 2).swish()
        for times, channels, count, stride, kernel in BLOCKS:
            for number in range(count):
                with images.graph.scope(f"channels{channels}.{number}"):
                    images = block(images, times, channels, 1 if number else stride, kernel)
        return images.conv(1280, 1).swish().classified(self.classes)


def block(images: Images, times: int, channels: int, stride: int, kernel: int) -> Images:
    """More channels, each convolved alone and weighed, and fewer again."""
    inner = images.channels * times
    made = images.conv(inner, 1).swish() if times > 1 else images
    made = made.conv(inner, kernel, stride, groups=inner).swish()
    few = made.then("GlobalAveragePool").conv(max(1, images.channels // 4), 1).swish()
    made = made.then("Mul", few.conv(inner, 1).then("Sigmoid").value).conv(channels, 1)
    return made.plus(images) if stride == 1 and channels == images.channels else made
