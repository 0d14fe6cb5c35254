"""InceptionV3 and InceptionV4, their batch norms folded, without what helps their training.

Szegedy et al., "Rethinking the Inception Architecture for Computer Vision" (2016), and
"Inception-v4, Inception-ResNet and the Impact of Residual Connections on Learning" (2017).
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci.zoo.layers import ImageNetwork, Images


@dataclass(frozen=True)
class InceptionV3(ImageNetwork):
    """InceptionV3; images are 299x299 as it was trained."""

    resolution: int = 299

    def layers(self, images: Images) -> str:
        x = unpadded(unpadded(images, 32, 3, 2), 32, 3).conv(64, 3).relu().pool("Max", 3, 2)
        x = unpadded(unpadded(x, 80, 1), 192, 3).pool("Max", 3, 2)
        for number, pooled in enumerate((32, 64, 64)):
            with x.graph.scope(f"a{number}"):
                x = of_fives(x, pooled)
        x = unpadded(x, 384, 3, 2).beside(
            unpadded(x.conv(64, 1).relu().conv(96, 3).relu(), 96, 3, 2), x.pool("Max", 3, 2)
        )
        for number, inner in enumerate((128, 160, 160, 192)):
            with x.graph.scope(f"b{number}"):
                x = of_sevens(x, inner)
        long = sides(x.conv(192, 1).relu(), (192, 192), 7)
        x = unpadded(x.conv(192, 1).relu(), 320, 3, 2).beside(
            unpadded(long, 192, 3, 2), x.pool("Max", 3, 2)
        )
        for number in range(2):
            with x.graph.scope(f"c{number}"):
                x = parted(x)
        return x.classified(self.classes)


@dataclass(frozen=True)
class InceptionV4(ImageNetwork):
    """InceptionV4; images are 299x299 as it was trained."""

    resolution: int = 299

    def layers(self, images: Images) -> str:
        with images.graph.scope("stem"):
            x = stem(images)
        for number in range(4):
            with x.graph.scope(f"a{number}"):
                x = averaged(x, 96).beside(
                    x.conv(96, 1).relu(),
                    x.conv(64, 1).relu().conv(96, 3).relu(),
                    x.conv(64, 1).relu().conv(96, 3).relu().conv(96, 3).relu(),
                )
        x = x.pool("Max", 3, 2).beside(
            unpadded(x, 384, 3, 2),
            unpadded(x.conv(192, 1).relu().conv(224, 3).relu(), 256, 3, 2),
        )
        for number in range(7):
            with x.graph.scope(f"b{number}"):
                x = averaged(x, 128).beside(
                    x.conv(384, 1).relu(),
                    sides(x.conv(192, 1).relu(), (224, 256), 7),
                    sides(sides(x.conv(192, 1).relu(), (192, 224), 7), (224, 256), 7),
                )
        x = x.pool("Max", 3, 2).beside(
            unpadded(x.conv(192, 1).relu(), 192, 3, 2),
            unpadded(sides(x.conv(256, 1).relu(), (256, 320), 7), 320, 3, 2),
        )
        for number in range(3):
            with x.graph.scope(f"c{number}"):
                x = forked(x)
        return x.classified(self.classes)


def stem(images: Images) -> Images:
    """In front of the modules of InceptionV4: convolutions and maxima beside each other."""
    x = unpadded(unpadded(images, 32, 3, 2), 32, 3).conv(64, 3).relu()
    x = x.pool("Max", 3, 2).beside(unpadded(x, 96, 3, 2))
    long = sides(x.conv(64, 1).relu(), (64, 64), 7)
    x = unpadded(x.conv(64, 1).relu(), 96, 3).beside(unpadded(long, 96, 3))
    return unpadded(x, 192, 3, 2).beside(x.pool("Max", 3, 2))


def averaged(x: Images, channels: int) -> Images:
    return x.pool("Average", 3, 1, 1).conv(channels, 1).relu()


def forked(x: Images) -> Images:
    """The last modules of InceptionV4, where branches end in two convolutions each."""
    first = x.conv(384, 1).relu()
    second = sides(x.conv(384, 1).relu(), (448, 512), 3)
    halves = [y.conv(256, kernel).relu() for y in (first, second) for kernel in ((1, 3), (3, 1))]
    return averaged(x, 256).beside(x.conv(256, 1).relu(), *halves)


def unpadded(x: Images, channels: int, kernel: int, stride: int = 1) -> Images:
    return x.conv(channels, kernel, stride, padded=False).relu()


def sides(x: Images, channels: tuple[int, int], length: int) -> Images:
    """Along rows, then along columns."""
    first, second = channels
    return x.conv(first, (1, length)).relu().conv(second, (length, 1)).relu()


def of_fives(x: Images, pooled: int) -> Images:
    return (
        x.conv(64, 1)
        .relu()
        .beside(
            x.conv(48, 1).relu().conv(64, 5).relu(),
            x.conv(64, 1).relu().conv(96, 3).relu().conv(96, 3).relu(),
            x.pool("Average", 3, 1, 1).conv(pooled, 1).relu(),
        )
    )


def of_sevens(x: Images, inner: int) -> Images:
    return (
        x.conv(192, 1)
        .relu()
        .beside(
            sides(x.conv(inner, 1).relu(), (inner, 192), 7),
            sides(sides(x.conv(inner, 1).relu(), (inner, inner), 7), (inner, 192), 7),
            x.pool("Average", 3, 1, 1).conv(192, 1).relu(),
        )
    )


def parted(x: Images) -> Images:
    """Convolutions along rows and along columns beside each other."""
    first = x.conv(384, 1).relu()
    second = x.conv(448, 1).relu().conv(384, 3).relu()
    halves = [y.conv(384, kernel).relu() for y in (first, second) for kernel in ((1, 3), (3, 1))]
    pooled = x.pool("Average", 3, 1, 1).conv(192, 1).relu()
    return x.conv(320, 1).relu().beside(*halves, pooled)
