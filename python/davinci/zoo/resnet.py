"""A residual network of images, ResNet v1 as torchvision has it, its batch norms folded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto

from davinci.zoo.graph import OnnxGraph, require, require_positive

BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3)}
"""Blocks of the four stages, by depth."""

BOTTLENECK = 50
"""From this depth on blocks are a 1x1, a 3x3 and a 1x1 convolution, with 4 times the channels."""


@dataclass(frozen=True)
class Resnet:
    """Parameters: depth, images and their side, channels of the first stage, classes."""

    depth: int = 50
    batch: int = 1
    resolution: int = 224
    width: int = 64
    classes: int = 1000
    seed: int = 0

    def build(self) -> onnx.ModelProto:
        require_positive(self, "batch", "resolution", "width", "classes")
        require("resnet", self.depth in BLOCKS, f"depth must be one of {[*BLOCKS]}", self.depth)
        graph = OnnxGraph("resnet", self.seed)
        shape = [self.batch, 3, self.resolution, self.resolution]
        value = graph.input("x", TensorProto.FLOAT, shape)
        value = graph.node("Relu", convolution(graph, value, "conv1", (3, self.width), 7, 2))
        value = graph.node("MaxPool", value, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
        channels = self.width
        for stage, blocks in enumerate(BLOCKS[self.depth]):
            inner = self.width << stage
            outer = inner * (4 if self.depth >= BOTTLENECK else 1)
            for number in range(blocks):
                stride = 2 if stage and not number else 1
                with graph.scope(f"layer{stage + 1}.{number}"):
                    value = self._block(graph, value, (channels, inner, outer), stride)
                channels = outer
        value = graph.node("Flatten", graph.node("GlobalAveragePool", value))
        weight = graph.weight("fc.weight", self.classes, channels)
        bias = graph.weight("fc.bias", self.classes)
        value = graph.node("Gemm", value, weight, bias, transB=1)
        graph.output(value, "y", [self.batch, self.classes])
        return graph.model()

    def _block(self, graph: OnnxGraph, x: str, channels: tuple[int, int, int], stride: int) -> str:
        """The convolutions of a block, and what is added to them."""
        given, inner, outer = channels
        name = f"w{len(graph.nodes)}"
        if self.depth >= BOTTLENECK:
            y = graph.node("Relu", convolution(graph, x, f"{name}.conv1", (given, inner), 1))
            y = convolution(graph, y, f"{name}.conv2", (inner, inner), 3, stride)
            y = convolution(graph, graph.node("Relu", y), f"{name}.conv3", (inner, outer), 1)
        else:
            y = convolution(graph, x, f"{name}.conv1", (given, inner), 3, stride)
            y = convolution(graph, graph.node("Relu", y), f"{name}.conv2", (inner, outer), 3)
        if given != outer or stride > 1:
            x = convolution(graph, x, f"{name}.downsample", (given, outer), 1, stride)
        return graph.node("Relu", graph.node("Add", y, x))

    def inputs(self, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
        shape = (self.batch, 3, self.resolution, self.resolution)
        return {"x": rng.standard_normal(shape, dtype=np.float32)}


def convolution(
    graph: OnnxGraph, x: str, name: str, channels: tuple[int, int], kernel: int, stride: int = 1
) -> str:
    """With a bias, padded so that the size is that of the input through the stride."""
    given, made = channels
    weight = graph.weight(f"{name}.weight", made, given, kernel, kernel)
    bias = graph.weight(f"{name}.bias", made)
    sides = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [kernel // 2] * 4}
    return graph.node("Conv", x, weight, bias, **sides)
