"""MobileNet V1, V2 and V3: convolutions of each channel alone, then of single pixels."""

from __future__ import annotations

from dataclasses import dataclass

from davinci.zoo.layers import ImageNetwork, Images, dense

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

LARGE = (
    *((3, 16, 16, 0, 0, 1), (3, 64, 24, 0, 0, 2), (3, 72, 24, 0, 0, 1), (5, 72, 40, 1, 0, 2)),
    *((5, 120, 40, 1, 0, 1),) * 2,
    *((3, 240, 80, 0, 1, 2), (3, 200, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1)),
    *((3, 480, 112, 1, 1, 1), (3, 672, 112, 1, 1, 1), (5, 672, 160, 1, 1, 2)),
    *((5, 960, 160, 1, 1, 1),) * 2,
)
"""V3 large: side of the kernel, channels inside and behind, whether channels are weighed and the
activation is hard swish, stride."""


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


@dataclass(frozen=True)
class MobilenetV3(ImageNetwork):
    """V3 large. Parameters besides: percent of the channels."""

    percent: int = 100

    def layers(self, images: Images) -> str:
        images = images.conv(scaled(16, self.percent), 3, 2).then("HardSwish")
        for number, (kernel, inner, outer, weighs, hard, stride) in enumerate(LARGE):
            with images.graph.scope(f"block{number}"):
                activation = "HardSwish" if hard else "Relu"
                made = images
                if inner != LARGE[0][1]:
                    made = made.conv(scaled(inner, self.percent), 1).then(activation)
                made = made.conv(made.channels, kernel, stride, groups=made.channels)
                made = weighed(made.then(activation)) if weighs else made.then(activation)
                made = made.conv(scaled(outer, self.percent), 1)
                same = stride == 1 and made.channels == images.channels
                images = made.plus(images) if same else made
        images = images.conv(scaled(960, self.percent), 1).then("HardSwish")
        pooled = dense(images.graph, images.averages(), images.channels, 1280)
        return dense(images.graph, images.graph.node("HardSwish", pooled), 1280, self.classes)


def weighed(images: Images) -> Images:
    """Each channel by a number from 0 to 1 that comes of the averages of all of them."""
    few = images.then("GlobalAveragePool").conv(scaled(images.channels, 25), 1).relu()
    weights = few.conv(images.channels, 1).then("HardSigmoid", alpha=1 / 6, beta=0.5)
    return images.then("Mul", weights.value)


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
