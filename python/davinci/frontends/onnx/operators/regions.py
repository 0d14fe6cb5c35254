"""Pools over regions of images, whose places are inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.sampling import ImageTable, corners
from davinci.frontends.onnx.tensor import BadNode, OnnxTensor, broadcast, convert

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall


@operator("RoiAlign")
def lower_roi_align(node: NodeCall) -> OnnxTensor:
    """Samples between elements, a grid of them for each element of the result.

    The maximum is, as in onnxruntime, that of the four weighted neighbours of all samples.
    """
    x, regions, numbers = node.take(0), node.take(1), node.take(2)
    counts = (node.attr("output_height"), node.attr("output_width"))
    samples, mode = node.attr("sampling_ratio"), node.attr("mode")
    if samples < 1:
        node.refuse("the number of samples depends on the regions", "a sampling_ratio from 1 on")
    if mode not in ("avg", "max") or x.rank != 4:
        raise BadNode(f"mode {mode!r} on a tensor of rank {x.rank}", "avg or max on [N, C, H, W]")
    half = node.attr("coordinate_transformation_mode") == "half_pixel"
    borders = [
        border * node.attr("spatial_scale") - (0.5 if half else 0.0)
        for border in ops.unstack(convert(regions, np.float32), 1)
    ]
    places = [
        sample_places(borders[1 - i], borders[3 - i], counts[i], samples, half) for i in (0, 1)
    ]
    shape = (regions.shape[0], counts[0] * samples, counts[1] * samples)
    y, x_place = broadcast(places[0], shape, [0, 1]), broadcast(places[1], shape, [0, 2])
    image = ImageTable.of(convert(x, np.float32), broadcast(convert(numbers, np.int32), shape, [0]))
    terms = corners(image, [y, x_place])
    grid = [shape[0], counts[0], samples, counts[1], samples, x.shape[1]]
    if mode == "avg":
        total = ops.reshape(terms[0] + terms[1] + terms[2] + terms[3], grid)
        found = ops.mean(total, [2, 4])
    else:
        best = ops.maximum(ops.maximum(terms[0], terms[1]), ops.maximum(terms[2], terms[3]))
        found = ops.reduce("maximum", ops.reshape(best, grid), [2, 4])
    return convert(ops.transpose(found, [0, 3, 1, 2]), x.dtype)


def sample_places(
    start: OnnxTensor, end: OnnxTensor, count: int, samples: int, half: bool
) -> OnnxTensor:
    """Places along an axis, evenly in each region: [regions, count * samples]."""
    length = end - start if half else ops.maximum(end - start, 1)
    number = ops.iota(np.float32, [start.count, count * samples], 1) + 0.5
    step = ops.expand_dims(length / float(count * samples), [1])
    return ops.expand_dims(start, [1]) + number * step


@operator("MaxRoiPool")
def lower_max_roi_pool(node: NodeCall) -> OnnxTensor:
    """Maxima of bins of regions [number, x1, y1, x2, y2], whose bounds are rounded outwards."""
    x, regions, counts = node.take(0), node.take(1), node.attr("pooled_shape")
    number, *borders = ops.unstack(convert(regions, np.float32), 1)
    borders = [ops.floor(border * node.attr("spatial_scale") + 0.5) for border in borders]
    of_regions = ops.take(x, convert(number, np.int32), 0)
    rows, columns = (
        in_bins(borders[1 - i], borders[3 - i], counts[i], x.shape[2 + i]) for i in (0, 1)
    )
    lowest = ops.lowest(x.dtype)
    # [regions, C, H, bins, W], then [regions, C, bins, H, bins]
    chosen = ops.where(ops.expand_dims(columns, [1, 2]), ops.expand_dims(of_regions, [3]), lowest)
    best = ops.reduce("maximum", chosen, [4])
    chosen = ops.where(ops.expand_dims(rows, [1, 4]), ops.expand_dims(best, [2]), lowest)
    found = ops.reduce("maximum", chosen, [3])
    filled = [ops.reduce("or", mask, [2]) for mask in (rows, columns)]
    some = ops.expand_dims(filled[0], [1, 3]) & ops.expand_dims(filled[1], [1, 2])
    return ops.where(some, found, 0)


def in_bins(start: OnnxTensor, end: OnnxTensor, count: int, size: int) -> OnnxTensor:
    """Which elements of an axis are in which bin of each region: [regions, count, size]."""
    shape = (start.count, count, size)
    width = ops.maximum(end - start + 1, 1) / float(count)
    bin_number, element = ops.iota(np.float32, shape, 1), ops.iota(np.float32, shape, 2)
    start, width = ops.expand_dims(start, [1, 2]), ops.expand_dims(width, [1, 2])
    first = ops.floor(bin_number * width) + start
    behind = start - ops.floor(-((bin_number + 1) * width))
    return ops.compare("GE", element, first) & ops.compare("LT", element, behind)
