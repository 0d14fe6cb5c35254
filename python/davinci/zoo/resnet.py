"""Residual networks of images, ResNet v1 and ResNeXt as torchvision has them, without norms."""

from __future__ import annotations

from dataclasses import dataclass

from davinci.zoo.graph import require
from davinci.zoo.layers import ImageNetwork, Images

BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3)}
"""Blocks of the four stages, by depth."""

BOTTLENECK = 50
"""From this depth on blocks are a 1x1, a 3x3 and a 1x1 convolution, with 4 times the channels."""


@dataclass(frozen=True)
class Resnet(ImageNetwork):
    """Parameters besides: depth, channels of the first stage; groups of the 3x3 convolutions of
    bottlenecks, and channels of a group in the first stage, as many as all have unless given."""

    depth: int = 50
    width: int = 64
    groups: int = 1
    group_width: int = 0

    def layers(self, images: Images) -> str:
        require("resnet", self.depth in BLOCKS, f"depth must be one of {[*BLOCKS]}", self.depth)
        return self.stages(images).classified(self.classes)

    def stages(self, images: Images, dilated: int = 0) -> Images:
        """Images of a 32nd of the size; the last `dilated` stages keep the size that they are
        given, and their convolutions reach as far."""
        images = images.conv(self.width, 7, 2).relu().pool("Max", 3, 2, 1)
        dilation = 1
        for stage, blocks in enumerate(BLOCKS[self.depth]):
            whole = stage < len(BLOCKS[self.depth]) - dilated
            dilation *= 1 if whole else 2
            for number in range(blocks):
                stride = 2 if whole and stage and not number else 1
                with images.graph.scope(f"layer{stage + 1}.{number}"):
                    images = self._block(images, stage, stride, dilation)
        return images

    def _block(self, x: Images, stage: int, stride: int, dilation: int) -> Images:
        """The convolutions of a block, and what is added to them."""
        if self.depth >= BOTTLENECK:
            outer = (4 * self.width) << stage
            inner = (self.groups * (self.group_width or self.width // self.groups)) << stage
            y = x.conv(inner, 1).relu()
            y = (
                y.conv(inner, 3, stride, groups=self.groups, dilation=dilation)
                .relu()
                .conv(outer, 1)
            )
        else:
            outer = self.width << stage
            y = x.conv(outer, 3, stride, dilation=dilation).relu()
            y = y.conv(outer, 3, dilation=dilation)
        if x.channels != outer or stride > 1:
            x = x.conv(outer, 1, stride)
        return y.plus(x).relu()
