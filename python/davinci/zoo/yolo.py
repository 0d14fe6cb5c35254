"""A detector in the manner of YOLO v5: features of three sizes, joined upwards and downwards, and
for each place of each size boxes with their classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from davinci.zoo.graph import require
from davinci.zoo.layers import ImageNetwork, Images
from davinci.zoo.transformer import reshaped

STRIDES = (8, 16, 32)
ANCHORS = (
    ((10, 13), (16, 30), (33, 23)),
    ((30, 61), (62, 45), (59, 119)),
    ((116, 90), (156, 198), (373, 326)),
)
"""Pixels of the three usual boxes of each size."""


@dataclass(frozen=True)
class Yolo(ImageNetwork):
    """Parameters besides: channels of the first level, blocks of a stage."""

    resolution: int = 320
    classes: int = 80
    width: int = 32
    blocks: int = 1

    def layers(self, images: Images) -> str:
        text = "resolution must be a multiple of 32"
        require("yolo", self.resolution % 32 == 0, text, self.resolution)
        width, seen = self.width, []
        images = images.conv(width, 3, 2).swish()
        for stage in range(4):
            with images.graph.scope(f"stage{stage}"):
                images = images.conv((2 * width) << stage, 3, 2).swish()
                images = crossed(images, images.channels, self.blocks, True)
                seen.append(images)
        small, middle, large = seen[1], seen[2], pyramid(images)
        size = self.resolution
        with images.graph.scope("head"):
            top = pointwise(large, 8 * width)
            joined = top.resized(self.batch, size // 16).beside(middle)
            inner = pointwise(crossed(joined, 8 * width, self.blocks, False), 4 * width)
            joined = inner.resized(self.batch, size // 8).beside(small)
            found = [crossed(joined, 4 * width, self.blocks, False)]
            for other, channels in ((inner, 8 * width), (top, 16 * width)):
                down = found[-1].conv(found[-1].channels, 3, 2).swish().beside(other)
                found.append(crossed(down, channels, self.blocks, False))
        parts = [self._boxes(level, number) for number, level in enumerate(found)]
        return images.graph.node("Concat", *parts, axis=1)

    def _boxes(self, images: Images, level: int) -> str:
        """[batch, boxes, 5 + classes]: centre, size, whether there is one, classes."""
        graph, anchors = images.graph, ANCHORS[level]
        side, values = self.resolution // STRIDES[level], 5 + self.classes
        made = images.conv(len(anchors) * values, 1).value
        made = reshaped(graph, made, [self.batch, len(anchors), values, side, side])
        made = graph.node("Transpose", made, perm=[0, 1, 3, 4, 2])
        made = graph.node("Sigmoid", made)
        sizes = graph.constant(np.array([2, 2, 1 + self.classes], np.int64))
        parts = graph.parts("Split", made, sizes, count=3, axis=4)
        grid = np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1) - 0.5
        places = graph.constant(grid[None, None].astype(np.float32))
        centre = graph.node("Add", graph.node("Mul", parts[0], graph.scalar(2)), places)
        centre = graph.node("Mul", centre, graph.scalar(STRIDES[level]))
        usual = graph.constant(np.array(anchors, np.float32)[None, :, None, None])
        extent = graph.node("Pow", graph.node("Mul", parts[1], graph.scalar(2)), graph.scalar(2))
        extent = graph.node("Mul", extent, usual)
        made = graph.node("Concat", centre, extent, parts[2], axis=4)
        return reshaped(graph, made, [self.batch, len(anchors) * side * side, values])

    def result_shape(self) -> list[int]:
        boxes = sum(3 * (self.resolution // stride) ** 2 for stride in STRIDES)
        return [self.batch, boxes, 5 + self.classes]


def pointwise(images: Images, channels: int) -> Images:
    return images.conv(channels, 1).swish()


def crossed(images: Images, channels: int, blocks: int, added: bool) -> Images:
    """Half of the channels through blocks, half beside them."""
    made = pointwise(images, channels // 2)
    for _ in range(blocks):
        inner = pointwise(made, channels // 2).conv(channels // 2, 3).swish()
        made = inner.plus(made) if added else inner
    return pointwise(made.beside(pointwise(images, channels // 2)), channels)


def pyramid(images: Images) -> Images:
    """Maxima of larger and larger surroundings."""
    parts = [pointwise(images, images.channels // 2)]
    for _ in range(3):
        parts.append(parts[-1].pool("Max", 5, 1, 2))
    return pointwise(parts[0].beside(*parts[1:]), images.channels)
