"""Layers that networks of images are made of, in the order in which they are called."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto

from davinci.zoo.graph import OnnxGraph, require_positive


@dataclass(frozen=True)
class ImageNetwork:
    """Parameters that networks of images share: images and their side, classes, the seed."""

    batch: int = 1
    resolution: int = 224
    classes: int = 1000
    seed: int = 0

    def build(self) -> onnx.ModelProto:
        names = [field.name for field in fields(self) if field.default]
        require_positive(self, *names)
        graph = OnnxGraph(type(self).__name__.lower(), self.seed)
        shape = [self.batch, 3, self.resolution, self.resolution]
        images = Images(graph, graph.input("x", TensorProto.FLOAT, shape), 3)
        classified = self.layers(images)
        graph.output(classified, "y", self.result_shape())
        return graph.model()

    def layers(self, images: Images) -> str:
        """From images to the result, numbers of classes for most."""
        raise NotImplementedError

    def result_shape(self) -> list[int]:
        return [self.batch, self.classes]

    def inputs(self, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
        shape = (self.batch, 3, self.resolution, self.resolution)
        return {"x": rng.standard_normal(shape, dtype=np.float32)}


@dataclass(frozen=True)
class Images:
    """Images in a graph: their value and how many channels they have.

    Attributes:
        halvings: operators with a stride of 2 in front of them: images of equally many are of one
            size.
    """

    graph: OnnxGraph
    value: str
    channels: int
    halvings: int = 0

    def then(self, operator: str, *others: str, channels: int = 0, **attributes: Any) -> Images:
        """What an operator makes of them."""
        value = self.graph.node(operator, self.value, *others, **attributes)
        halvings = self.halvings + (attributes.get("strides", [1])[0] == 2)
        return Images(self.graph, value, channels or self.channels, halvings)

    def conv(
        self,
        channels: int,
        kernel: int | tuple[int, int],
        stride: int = 1,
        groups: int = 1,
        padded: bool = True,
        dilation: int = 1,
    ) -> Images:
        """A convolution with a bias, what batch norms become; padded, the size is that of the
        images through the stride."""
        high, wide = sides = (kernel, kernel) if isinstance(kernel, int) else kernel
        name = f"conv{len(self.graph.nodes)}"
        inner = self.channels // groups
        std = math.sqrt(1 / (inner * high * wide))
        weight = self.graph.weight(f"{name}.weight", channels, inner, *sides, std=std)
        bias = self.graph.weight(f"{name}.bias", channels)
        pads = [side // 2 * dilation if padded else 0 for side in sides] * 2
        lies = {"kernel_shape": [*sides], "strides": [stride] * 2, "pads": pads, "group": groups}
        spread = {"dilations": [dilation] * 2} if dilation > 1 else {}
        return self.then("Conv", weight, bias, channels=channels, **lies, **spread)

    def relu(self) -> Images:
        return self.then("Relu")

    def relu6(self) -> Images:
        graph = self.graph
        return self.then("Clip", graph.scalar(0), graph.scalar(6))

    def swish(self) -> Images:
        return self.then("Mul", self.then("Sigmoid").value)

    def batch_norm(self) -> Images:
        """With statistics that were learnt."""
        graph, name = self.graph, f"norm{len(self.graph.nodes)}"
        scale = graph.weight(f"{name}.scale", self.channels, mean=1.0)
        mean, bias = (graph.weight(f"{name}.{part}", self.channels) for part in ("mean", "bias"))
        variance = graph.weight(f"{name}.variance", self.channels, mean=1.0)
        return self.then("BatchNormalization", scale, bias, mean, variance)

    def pool(self, kind: str, kernel: int, stride: int, pad: int = 0, ceil: bool = False) -> Images:
        """`kind` is "Max" or "Average"."""
        lies: dict[str, Any] = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2}
        more = {"count_include_pad": 1} if kind == "Average" else {}
        return self.then(f"{kind}Pool", pads=[pad] * 4, ceil_mode=int(ceil), **lies, **more)

    def plus(self, other: Images) -> Images:
        return self.then("Add", other.value)

    def beside(self, *others: Images) -> Images:
        """Their channels and those of others."""
        channels = sum(part.channels for part in (self, *others))
        values = (part.value for part in others)
        return self.then("Concat", *values, channels=channels, axis=1)

    def resized(self, batch: int, side: int, mode: str = "nearest") -> Images:
        """To another size, as PyTorch's `interpolate` exports it."""
        sizes = self.graph.constant(np.array([batch, self.channels, side, side], np.int64))
        places: dict[str, Any] = {"coordinate_transformation_mode": "half_pixel"}
        if mode == "nearest":
            places = {
                "coordinate_transformation_mode": "asymmetric",
                "nearest_mode": "floor",
            }
        return self.then("Resize", "", "", sizes, mode=mode, **places)

    def averages(self) -> str:
        """One number for each channel, [batch, channels]."""
        pooled = self.then("GlobalAveragePool")
        return self.graph.node("Flatten", pooled.value)

    def classified(self, classes: int) -> str:
        """By the averages of channels."""
        return dense(self.graph, self.averages(), self.channels, classes)


def dense(graph: OnnxGraph, x: str, given: int, made: int) -> str:
    """A dense layer with bias from `given` features to `made`."""
    name = f"dense{len(graph.nodes)}"
    weight = graph.weight(f"{name}.weight", made, given, std=math.sqrt(1 / given))
    bias = graph.weight(f"{name}.bias", made)
    return graph.node("Gemm", x, weight, bias, transB=1)
