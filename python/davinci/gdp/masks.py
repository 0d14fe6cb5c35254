"""Comparisons of neighbours: shifted reads, or a depthwise convolution (GDPNPU's Algorithm 3).

    a img[i, j] - b img[i - x, j - y] > K

is a comparison of two parts of a padded image, which a kernel reads where they lie, or one of a
convolution's result, whose kernel has a and -b at two places. The first pads the image, in a kernel
of its own that all its neighbours share; the second writes a plane and reads it again. Which takes
less is asked of the compiler's estimates of both, for the shape and machine at hand.

Convolutions are of f16, so only images of f16 with zeros around them are asked about: a difference
of two is more than 0 in both ways alike. A NaN or infinite pixel would spoil others of its block.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.tensor import OnnxTensor, constant
from davinci.gdp.arrays import Array, Compared
from davinci.gdp.indexing import Border, Neighbour, margins_of
from davinci.machine import Machine
from davinci.operators.tensors import Tensor as Value
from davinci.passes.ascend.ascend_winograd import FormChooser
from davinci.passes.stablehlo_to_ascend.stablehlo_pixels_to_channels import (
    move,
    planes_filter,
)
from davinci.schedule.graph import Graph, Node, Scalar

Offset = tuple[int, int]


@dataclass(frozen=True)
class Taps:
    """A sum of neighbours of one image times numbers, less a threshold.

    Attributes:
        source: the image.
        weights: numbers by the offset of each neighbour, of rows and columns.
        threshold: what the sum is compared with.
    """

    source: Array
    weights: Mapping[Offset, float]
    threshold: float

    @staticmethod
    def of(array: Compared) -> Taps | None:
        """None for comparisons of anything else."""
        if not all(isinstance(side, (Array, int, float)) for side in array.sides):
            return None
        weights: dict[tuple[Array, Offset], float] = {}
        threshold, waiting = 0.0, [(array.sides[0], 1.0), (array.sides[1], -1.0)]
        for _ in range(MOST_TERMS):
            if not waiting:
                break
            operand, scale = waiting.pop()
            if not isinstance(operand, Array):
                threshold -= scale * operand
            elif (place := neighbour_of(operand)) is not None:
                weights[place] = weights.get(place, 0.0) + scale
            else:
                waiting += [(term, scale * factor) for term, factor in operand.terms]
        if waiting:
            return None
        sources = {source for source, _ in weights}
        if len(sources) != 1:
            return None
        (source,) = sources
        found = {offset: weight for (_, offset), weight in weights.items() if weight}
        if source.dtype != np.float16 or source.ndim < 2 or not any(map(any, found)):
            return None
        return Taps(source, found, threshold)

    @property
    def kernel(self) -> Any:
        """[kh, kw] of odd sizes, the pixel itself in the middle."""
        reach = [max(abs(offset[axis]) for offset in self.weights) for axis in range(2)]
        made = np.zeros([2 * pixels + 1 for pixels in reach])
        for (down, right), weight in self.weights.items():
            made[reach[0] + down, reach[1] + right] = weight
        return made


MOST_TERMS = 64
"""Operands of a sum that are looked at; longer ones are left as they are."""


def neighbour_of(array: Array) -> tuple[Array, Offset] | None:
    """The image and the place of a neighbour in it, of any other array itself; None of sums."""
    if isinstance(array, Neighbour) and array.border == Border() and len(array.offsets) == 2:
        return array.operands[0], (array.offsets[0], array.offsets[1])
    return None if array.terms else (array, (0, 0))


class Ways:
    """Says by which way comparisons of neighbours take less time on a machine."""

    def __init__(self, machine: Machine, cores: int) -> None:
        self._chooser = FormChooser(machine, cores or machine.cores)
        self._known: dict[Any, bool] = {}

    def by_convolution(self, comparisons: Sequence[Taps]) -> bool:
        """Whether convolutions take less than shifted reads.

        Args:
            comparisons: all that read neighbours of one image, which is padded for them once.
        """
        shape = comparisons[0].source.shape
        key = shape, tuple((taps.kernel.shape, len(taps.weights)) for taps in comparisons)
        if key not in self._known:
            *others, height, width = shape
            size = (math.prod(others), height, width)
            self._known[key] = 0 not in shape and self._weighed(size, comparisons)
        return self._known[key]

    def _weighed(self, size: Size, comparisons: Sequence[Taps]) -> bool:
        planes, height, width = size
        kernels = [taps.kernel for taps in comparisons]
        reach = [max(kernel.shape[axis] // 2 for kernel in kernels) for axis in range(2)]
        rows, columns = margins_of(size, reach)
        padded = (planes, height + 2 * rows, width + 2 * columns)
        reads = [len(taps.weights) for taps in comparisons]
        shifts = [move("pad", size, padded), compared([padded], size, reads)]
        convolutions = [
            graph
            for kernel in kernels
            for graph in planes_filter(planes, (height, width), kernel).graphs_of_blocks()
        ]
        convolutions.append(compared([size] * len(kernels), size, [1] * len(kernels)))
        costs = [self._chooser.cycles(each, math.inf) for each in (convolutions, shifts)]
        return costs[0] < costs[1]


Size = tuple[int, int, int]
"""Planes, rows and columns."""


def compared(sources: Sequence[Size], size: Size, reads: Sequence[int]) -> Graph:
    """A kernel of comparisons, each of the sum of some arrays: parts of the only source if that is
    larger, or one of the sources each."""
    half = Value(size, "f16")
    graph = Graph([Value(source, "f16") for source in sources], [], [*range(len(sources))], [])
    for number, count in enumerate(reads):
        total = number % len(sources) if sources[0] == size else part_of(graph, size, 0)
        for place in range(1, count):
            made = graph.add(half)
            part = part_of(graph, size, number + place)
            graph.nodes.append(Node("sub", (total, part), made, {}))
            total = made
        flags = graph.add(Value(size, "i1"))
        graph.nodes.append(Node("compare", (total, Scalar(0.0)), flags, {"predicate": "GT"}))
        graph.outputs.append(flags)
    return graph


def part_of(graph: Graph, size: Size, place: int) -> int:
    """A part of the first array, of the `place`th of the offsets along rows, then columns."""
    _, height, width = graph.arrays[0].shape
    rows, columns = height - size[1] + 1, width - size[2] + 1
    at = [0, place // columns % rows, place % columns]
    limits = [start + length for start, length in zip(at, size, strict=True)]
    part = graph.add(Value(size, "f16"))
    bounds = {"starts": at, "limits": limits, "strides": [1, 1, 1]}
    graph.nodes.append(Node("slice", (0,), part, bounds))
    return part


def convolution_of(taps: Taps, direction: str, image: OnnxTensor) -> OnnxTensor:
    """The comparison, of a convolution of `image`."""
    *planes, height, width = image.shape
    images = ops.reshape(image, [math.prod(planes), 1, height, width])
    kernel = taps.kernel
    reach = [size // 2 for size in kernel.shape]
    weights = constant(kernel.astype(image.dtype)[None, None])
    made = ops.convolution(images, weights, (1, 1), reach, reach, (1, 1))
    return ops.compare(direction, ops.reshape(made, image.shape), taps.threshold)
