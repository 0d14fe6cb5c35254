"""Operators that sample images at places that are inputs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.operators.convolution import add_bias
from davinci.frontends.onnx.sampling import ImageTable, Outside, cubic, linear, nearest
from davinci.frontends.onnx.tensor import Array, BadNode, OnnxTensor, constant, convert
from davinci.frontends.onnx.windows import SpatialWindows, windows_of

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall

MODES = {
    **{"linear": linear, "bilinear": linear, "nearest": nearest},
    **{"cubic": cubic, "bicubic": cubic},
}


@operator("GridSample")
def lower_grid_sample(node: NodeCall) -> OnnxTensor:
    """[N, C, ..] at places [N, .., dimensions] of -1 to 1, the last dimension first."""
    x, grid, mode, padding = (
        node.take(0),
        node.take(1),
        node.attr("mode"),
        node.attr("padding_mode"),
    )
    if mode not in MODES or padding not in ("zeros", "border", "reflection"):
        node.refuse(f"mode {mode!r} with padding {padding!r} is not supported")
    aligned = bool(node.attr("align_corners"))
    sizes, rank = x.shape[2:], x.rank - 2
    if rank < 1 or grid.rank != x.rank or (grid.shape[0], grid.shape[-1]) != (x.shape[0], rank):
        raise BadNode(
            f"a grid {list(grid.shape)} on images {list(x.shape)}",
            "images [N, C, ..] with a grid [N, .., number of axes behind C]",
        )
    outer = grid.shape[:-1]
    count = math.prod(outer[1:])
    columns = ops.unstack(convert(ops.reshape(grid, [x.shape[0], count, rank]), np.float32), -1)
    places = [
        element_places(column, size, aligned)
        for column, size in zip(reversed(columns), sizes, strict=True)
    ]
    outside = OUTSIDE[padding](aligned)
    image = ImageTable.of(wide(x), ops.iota(np.int32, [x.shape[0], count], 0))
    found = ops.transpose(MODES[mode](image, places, outside), [0, 2, 1])
    return convert(ops.reshape(found, [x.shape[0], x.shape[1], *outer[1:]]), x.dtype)


def wide(x: OnnxTensor) -> OnnxTensor:
    return convert(x, np.float32) if not x.is_float or x.dtype.itemsize < 4 else x


def element_places(place: OnnxTensor, size: int, aligned: bool) -> OnnxTensor:
    """-1 to 1 as 0 to size - 1, or as -0.5 to size - 0.5."""
    if aligned:
        return (place + 1) * ((size - 1) / 2)
    return ((place + 1) * size - 1) * 0.5


def ends(size: int, aligned: bool) -> tuple[float, float]:
    return (0, size - 1) if aligned else (-0.5, size - 0.5)


def border(aligned: bool) -> Outside:
    return lambda place, size: ops.clip(place, 0, size - 1)


def reflection(aligned: bool) -> Outside:
    """There and back between the ends, again and again."""

    def reflect(place: OnnxTensor, size: int) -> OnnxTensor:
        low, high = ends(size, aligned)
        if high == low:
            return ops.like(place, low)
        length = high - low
        way = ops.absolute(place - low)
        rounds = ops.floor(way / (2 * length))
        way = way - rounds * (2 * length)
        return ops.where(ops.compare("GT", way, length), 2 * length - way, way) + low

    return reflect


OUTSIDE = {"zeros": lambda aligned: None, "border": border, "reflection": reflection}


@operator("AffineGrid")
def lower_affine_grid(node: NodeCall) -> OnnxTensor:
    """Places of a regular grid, moved by matrices [N, dimensions, dimensions + 1]."""
    theta, aligned = node.take(0), bool(node.attr("align_corners"))
    images, _, *sizes = node.constant_integers("size", 1)
    axes = [grid_places(n, aligned) for n in sizes]
    mesh = np.meshgrid(*axes, indexing="ij")[::-1]
    points = np.stack([*mesh, np.ones(sizes)], -1).reshape(-1, len(sizes) + 1)
    base = constant(points[:, None, :].astype(theta.dtype))
    moved = ops.reduce("add", ops.expand_dims(theta, [1]) * base, [-1])
    return ops.reshape(moved, [images, *sizes, len(sizes)])


def grid_places(size: int, aligned: bool) -> Array:
    """Middles of `size` elements, or from end to end, of -1 to 1."""
    if aligned:
        return np.linspace(-1, 1, size) if size > 1 else np.full(1, -1.0)
    return (2 * np.arange(size) + 1) / size - 1


@operator("DeformConv")
def lower_deform_conv(node: NodeCall) -> OnnxTensor:
    """A convolution whose windows take elements at places moved by an input.

    The moved windows make columns [N, C, elements, places], which a product takes up.
    """
    x, w, offset = (node.take(i) for i in range(3))
    bias, mask = node.optional(3), node.optional(4)
    groups, parts = node.attr("group"), node.attr("offset_group")
    windows = windows_of(node, x, w.shape[2:])
    n, channels = x.shape[:2]
    elements, places = math.prod(windows.kernel), math.prod(windows.counts)
    moved = wide(ops.reshape(offset, [n * parts, elements, windows.rank, places]))
    coordinates = [
        axis + constant(starts[None].astype(np.float32))
        for axis, starts in zip(ops.unstack(moved, 2), window_places(windows), strict=True)
    ]
    split = ops.reshape(x, [n * parts, channels // parts, *x.shape[2:]])
    numbers = ops.iota(np.int32, [n * parts, elements, places], 0)
    columns = linear(ImageTable.of(split, numbers), coordinates)
    if mask is not None:
        columns = columns * ops.reshape(mask, [n * parts, elements, places, 1])
    columns = ops.transpose(columns, [0, 3, 1, 2])
    shape = [n, groups, channels // groups * elements, places]
    weights = ops.reshape(w, [groups, w.shape[0] // groups, shape[2]])
    # [groups, M / groups, N, places]
    product = ops.dot_general(weights, ops.reshape(columns, shape), ([2], [2]), ([0], [1]))
    result = ops.transpose(product, [2, 0, 1, 3])
    return add_bias(ops.reshape(result, [n, w.shape[0], *windows.counts]), bias)


def window_places(windows: SpatialWindows) -> list[Array]:
    """Along each axis, where element e of window p lies: [elements, places]."""
    found = []
    elements = np.indices(windows.kernel).reshape(windows.rank, -1)
    numbers = np.indices(windows.counts).reshape(windows.rank, -1)
    for i in range(windows.rank):
        starts = numbers[i] * windows.strides[i] - windows.low[i]
        found.append(elements[i][:, None] * windows.dilations[i] + starts)
    return found
