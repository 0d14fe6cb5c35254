"""DeepLabV3 on ResNet-50: classes of pixels, from convolutions that reach differently far (Chen et
al., "Rethinking Atrous Convolution", 2017)."""

from __future__ import annotations

from dataclasses import dataclass

from davinci.zoo.layers import ImageNetwork, Images
from davinci.zoo.resnet import Resnet

RATES = (6, 12, 18)


@dataclass(frozen=True)
class DeeplabV3(ImageNetwork):
    """Parameters besides: depth and channels of the first stage of the ResNet, channels of the
    head."""

    resolution: int = 513
    classes: int = 21
    depth: int = 50
    width: int = 64
    head: int = 256

    def layers(self, images: Images) -> str:
        images = Resnet(depth=self.depth, width=self.width).stages(images, dilated=1)
        with images.graph.scope("aspp"):
            parts = [images.conv(self.head, 1).relu()]
            parts += [images.conv(self.head, 3, dilation=rate).relu() for rate in RATES]
            whole = images.then("GlobalAveragePool").conv(self.head, 1).relu()
            size = (self.resolution + 15) // 16
            parts.append(whole.resized(self.batch, size, "linear"))
            images = parts[0].beside(*parts[1:]).conv(self.head, 1).relu()
        images = images.conv(self.head, 3).relu().conv(self.classes, 1)
        return images.resized(self.batch, self.resolution, "linear").value

    def result_shape(self) -> list[int]:
        return [self.batch, self.classes, self.resolution, self.resolution]
