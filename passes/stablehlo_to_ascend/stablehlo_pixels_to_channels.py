"""stablehlo-pixels-to-channels: filters of few planes become convolutions of 16 channels.

before:
    %y = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
        window = {pad = [[2, 2], [2, 2]]} {batch_group_count = 1, feature_group_count = 3}
        : (tensor<1x3x1080x1920xf16>, tensor<3x1x5x5xf16>) -> tensor<1x3x1080x1920xf16>
after:
    %b = stablehlo.reshape %x : (..) -> tensor<3x1080x120x16xf16>
    %c = stablehlo.convolution(%b, %v) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {pad = [[2, 2], [1, 1]]} : (.., tensor<5x3x16x16xf16>) -> tensor<3x1080x120x16xf16>
    %y = stablehlo.reshape %c : (..) -> tensor<1x3x1080x1920xf16>

The cube meets blocks of 16 channels, so an image of one to four planes leaves it idle, and must be
laid out anew, pixels by channels, in front of it and behind it. Here 16 pixels side by side are the
channels of one: an image in rows is then the fractals that load3d reads, and both reshapes move
nothing. Weights are bands:

    Y[y, 16 u + o] = sum over i, b, p of X[y + i, 16 (u + b) + p] V[i, b, p, o]
    V[i, b, p, o] = W[i, j]   where 16 b + p = o + j d - left, else 0

The source of the idea (GDPNPU) cuts an image in blocks of rows for channels, with their halo, and
puts them together again; pixels of a row need neither. Blocks of 32 or 64 pixels multiply more
zeros in longer rows, and are no fractals as they lie; the estimate says which size takes least.
Rows that are no multiple of a block are padded and cut; pixels that negative padding leaves out are
not read. Planes that all have the same weights are images of a batch, others groups of channels.
Rows may be strided, windows of a row may not.

With `where=cost` it is done where the estimate of kernels, movements in rows and changes of layout
says that it takes less; weights must be known. An infinite pixel or NaN makes NaN of all that its
block of 16 and the neighbouring ones lead to, since zeros of V meet it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from davinci import machine as machines
from davinci.dialects.base import attribute
from davinci.element_types import dtype_of
from davinci.elements import Array, to_array
from davinci.mlir import Op, ir, operations, stablehlo
from davinci.operators.conv import LENGTHS, MOST_PADDING, Geometry, weight_rows
from davinci.operators.tensors import ND, NZ, Tensor
from davinci.passes.analysis.rewrite_counts import note
from davinci.passes.ascend.ascend_winograd import FormChooser
from davinci.passes.pipeline.base import Pass, option, register_pass
from davinci.passes.stablehlo_to_ascend import tensors as t
from davinci.passes.stablehlo_to_ascend.convolution import orders
from davinci.passes.stablehlo_to_ascend.padding import edges_of
from davinci.schedule.graph import Graph, Node
from davinci.units import FRACTAL_SIDE as BLOCK
from davinci.units import ceil_div, round_up

FEW = 4
"""Channels, and outputs, up to which images are taken for planes."""

SIZES = (BLOCK, 2 * BLOCK, 4 * BLOCK)
"""Pixels of a block that are tried."""

HALF = "f16"


@register_pass
@dataclass(frozen=True)
class StablehloPixelsToChannelsPass(Pass):
    """Make pixels of a row channels where images have few."""

    NAME = "stablehlo-pixels-to-channels"

    machine: str = option("ascend910", "machine file that the costs come from")
    cores: int = option(0, "most blocks a kernel may use; 0: all cores of the machine")
    where: str = option("cost", "by cost, or wherever it can be", ("cost", "all"))

    def run(self, op: Op) -> None:
        machine = machines.load(self.machine)
        if machine.split:
            return
        chooser, count = FormChooser(machine, self.cores or machine.cores), 0
        for convolution in list(operations(op, "stablehlo.convolution")):
            filter_ = Filter.of(convolution)
            if filter_ is not None and self.where == "cost":
                filter_ = filter_.cheapest(chooser)
            if filter_ is not None:
                rewrite(filter_)
                count += 1
        note(op, "pixels-to-channels", count)


@dataclass(frozen=True)
class Filter:
    """A convolution of few planes.

    Attributes:
        op: the operation, None where only its price is asked for.
        weights: [outputs, channels of a group, kh, kw].
        images: of the batch.
        channels, groups: of an image.
        lies: how windows lie on a plane; columns may have negative padding.
        pixels: of a row that are the channels of one pixel.
    """

    op: Op | None
    weights: Array
    images: int
    channels: int
    groups: int
    lies: Geometry
    pixels: int = BLOCK

    @staticmethod
    def of(op: Op) -> Filter | None:
        """None for convolutions that are no filters of few planes, or whose weights are unknown."""
        x, w = (value.type for value in op.operands)
        known, result = known_array(op.operands[1]), op.results[0].type
        numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
        if known is None or len(list(numbers.input_spatial_dimensions)) != 2:
            return None
        floats = all(isinstance(kind.element_type, ir.FloatType) for kind in (x, w, result))
        turned = any(attribute(op, "window_reversal") or [])
        apart = any(n != 1 for n in attribute(op, "lhs_dilation") or [])
        of_x, of_w = orders(op)
        channels, outputs = x.shape[of_x.channels], w.shape[of_w.first]
        strides = attribute(op, "window_strides") or [1, 1]
        edges = edges_of(op, 2)
        legal = floats and not turned and not apart and attribute(op, "batch_group_count") == 1
        few = channels <= FEW and outputs <= FEW and 0 not in (*x.shape, *w.shape, *result.shape)
        if not legal or not few or strides[1] != 1 or edges[0].min() < 0:
            return None
        order = [of_w.first, of_w.channels, *of_w.space]
        weights = np.transpose(known, order)
        lies = Geometry(
            image=(x.shape[of_x.space[0]], x.shape[of_x.space[1]]),
            kernel=(weights.shape[2], weights.shape[3]),
            strides=(strides[0], 1),
            dilations=pair(attribute(op, "rhs_dilation") or [1, 1]),
            pads=(int(edges[0, 0]), int(edges[0, 1]), int(edges[1, 0]), int(edges[1, 1])),
        )
        groups = attribute(op, "feature_group_count")
        found = Filter(op, weights, x.shape[of_x.first], channels, groups, lies)
        return found if found.is_legal else None

    @property
    def is_legal(self) -> bool:
        """Whether load3d has the padding of blocks."""
        pads = self.banded.pads
        return min(pads) >= 0 and max(pads) <= MOST_PADDING

    @property
    def outputs(self) -> int:
        """Planes of a result."""
        return int(self.weights.shape[0])

    @property
    def alike(self) -> bool:
        """Whether all groups of channels have the same weights."""
        parts = self.weights.reshape(self.groups, -1, *self.weights.shape[1:])
        return bool((parts == parts[:1]).all())

    @property
    def apart(self) -> Filter:
        """The same with channels that have the same weights as images of the batch."""
        if self.groups == 1 or not self.alike:
            return self
        each, channels = self.outputs // self.groups, self.channels // self.groups
        images = self.images * self.groups
        return replace(
            self, weights=self.weights[:each], images=images, channels=channels, groups=1
        )

    @property
    def blocks(self) -> range:
        """The blocks of pixels, counted from the one of a result, that it needs."""
        left, step = self.lies.pads[2], self.lies.dilations[1]
        last = self.pixels - 1 - left + (self.lies.kernel[1] - 1) * step
        return range(-left // self.pixels, last // self.pixels + 1)

    @property
    def banded(self) -> Geometry:
        """The geometry of the convolution on the image whose pixels are blocks of pixels."""
        (height, width), top, bottom = self.lies.image, *self.lies.pads[:2]
        wide, blocks = ceil_div(width, self.pixels), self.blocks
        results = ceil_div(self.lies.windows[1], self.pixels)
        right = results - 1 + blocks[-1] + 1 - wide
        return Geometry(
            image=(height, wide + min(0, right)),
            kernel=(self.lies.kernel[0], len(blocks)),
            strides=self.lies.strides,
            dilations=(self.lies.dilations[0], 1),
            pads=(top, bottom, -blocks[0], max(0, right)),
        )

    @property
    def bands(self) -> Array:
        """Weights [kh, blocks, channels of a group x pixels, outputs x pixels]."""
        size = self.pixels
        outputs, channels, high, wide = self.weights.shape
        left, step = self.lies.pads[2], self.lies.dilations[1]
        made = np.zeros((high, len(self.blocks), channels, size, outputs, size), np.float64)
        for pixel, tap in np.ndindex(size, wide):
            block, lane = divmod(pixel + tap * step - left, size)
            taps = self.weights[:, :, :, tap].astype(np.float64).transpose(2, 1, 0)
            made[:, block - self.blocks[0], :, lane, :, pixel] += taps
        made = made.reshape(high, len(self.blocks), channels * size, outputs * size)
        return made.astype(self.weights.dtype)

    def cheapest(self, chooser: FormChooser) -> Filter | None:
        """The filter with the blocks of pixels that take least time; None if planes as they are
        take no more."""
        best, least = None, math.inf
        for pixels in SIZES:
            found = replace(self, pixels=pixels)
            if found.is_legal:
                cycles = chooser.cycles(list(found.apart.graphs_of_blocks()), least)
                if cycles < least:
                    best, least = found, cycles
        if best is None or chooser.cycles(list(self.graphs_as_is()), least) < least:
            return None
        return best

    def graphs_of_blocks(self) -> Iterator[Graph]:
        """The kernels that compute it by blocks of pixels."""
        channels, outputs = (count * self.pixels for count in (self.channels, self.outputs))
        lies = self.banded
        (height, width), (rows, columns) = self.lies.image, self.lies.windows
        planes = (self.images * self.channels, height)
        if width % self.pixels:
            yield move("pad", (*planes, width), (*planes, lies.image[1] * self.pixels))
        given, made = (
            Tensor((self.images, math.prod(sizes), count), HALF)
            for sizes, count in ((lies.image, channels), (lies.windows, outputs))
        )
        if channels > BLOCK:
            yield relayout(given, NZ)
        yield convolved(self.images, channels, outputs, self.groups, lies)
        if outputs > BLOCK:
            yield relayout(replace(made, layout=NZ), ND)
        if columns % self.pixels:
            results = (self.images * self.outputs, rows)
            yield move("slice", (*results, round_up(columns, self.pixels)), (*results, columns))

    def graphs_as_is(self) -> Iterator[Graph]:
        """The kernels that compute it pixels by channels, of planes in rows, without what negative
        padding leaves out."""
        (height, width), (top, bottom, left, right) = self.lies.image, self.lies.pads
        read = width + min(0, left) + min(0, right)
        pads = (top, bottom, max(0, left), max(0, right))
        lies = replace(self.lies, image=(height, read), pads=pads)
        pixels = height * read
        windows = math.prod(self.lies.windows)
        given = Tensor((self.images, pixels, self.channels), HALF)
        made = Tensor((self.images, windows, self.outputs), HALF)
        if self.channels > 1:
            yield transposed((self.images, self.channels, pixels))
        yield relayout(given, NZ)
        yield convolved(self.images, self.channels, self.outputs, 1, lies)
        yield relayout(replace(made, layout=NZ), ND)
        if self.outputs > 1:
            yield transposed((self.images, windows, self.outputs))


def planes_filter(planes: int, image: tuple[int, int], kernel: Array) -> Filter:
    """A filter [kh, kw] of odd sizes of planes with zeros around them, to be priced."""
    high, wide = (size // 2 for size in kernel.shape)
    lies = Geometry(image, pair(kernel.shape), (1, 1), (1, 1), (high, high, wide, wide))
    return Filter(None, kernel[None, None], planes, 1, 1, lies)


def pair(values: Sequence[int]) -> tuple[int, int]:
    first, second = values
    return first, second


def known_array(value: ir.Value) -> Array | None:
    """The array that a value is: a constant, also in another shape, order or element type."""
    owner = value.owner
    if isinstance(owner, ir.Block) or not owner.name.startswith("stablehlo."):
        return None
    name = owner.name.removeprefix("stablehlo.")
    if name == "constant":
        return to_array(owner.attributes["value"])
    if name not in ("reshape", "transpose", "broadcast_in_dim", "convert"):
        return None
    known, shape = known_array(owner.operands[0]), value.type.shape
    if known is None:
        return None
    if name == "reshape":
        return known.reshape(shape)
    if name == "transpose":
        return known.transpose(attribute(owner, "permutation"))
    if name == "convert":
        return known.astype(dtype_of(str(value.type.element_type)))
    dims = attribute(owner, "broadcast_dimensions")
    spread = [known.shape[dims.index(d)] if d in dims else 1 for d in range(len(shape))]
    order = np.argsort(dims)
    return np.broadcast_to(known.transpose(order).reshape(spread), shape)


def move(name: str, source: tuple[int, ...], result: tuple[int, ...]) -> Graph:
    """A kernel that pads or cuts rows."""
    none = [0] * len(source)
    values = [Tensor(source, HALF), Tensor(result, HALF)]
    if name == "slice":
        bounds = {"starts": none, "limits": list(result), "strides": [1] * len(source)}
        return Graph(values, [Node("slice", (0,), 1, bounds)], [0], [1])
    high = [size - own for size, own in zip(result, source, strict=True)]
    values.insert(1, Tensor((), HALF))
    sides = {"low": none, "high": high, "interior": none}
    return Graph(values, [Node("pad", (0, 1), 2, sides)], [0, 1], [2])


def transposed(shape: tuple[int, int, int]) -> Graph:
    """A kernel that exchanges the last two dimensions."""
    values = [Tensor(shape, HALF), Tensor((shape[0], shape[2], shape[1]), HALF)]
    return Graph(values, [Node("transpose", (0,), 1, {"permutation": [0, 2, 1]})], [0], [1])


def relayout(source: Tensor, layout: str) -> Graph:
    """A kernel that changes a layout."""
    return Graph(
        [source, replace(source, layout=layout)], [Node("relayout", (0,), 1, {})], [0], [1]
    )


def convolved(images: int, channels: int, outputs: int, groups: int, lies: Geometry) -> Graph:
    """A convolution of f16 in fractals."""
    (height, width), (rows, columns) = lies.image, lies.windows
    matrix = (groups, weight_rows(channels // groups, lies), outputs // groups)
    shapes = [(images, height * width, channels), matrix, (images, rows * columns, outputs)]
    attributes = {"groups": groups, **{name: list(getattr(lies, name)) for name in LENGTHS}}
    values = [Tensor(shape, HALF, NZ) for shape in shapes]
    return Graph(values, [Node("conv", (0, 1), 2, attributes)], [0, 1], [2])


def rewrite(filter_: Filter) -> None:
    """Computes a convolution by blocks of pixels."""
    op = filter_.op
    assert op is not None, "a filter without an operation is only priced"
    with op.location, ir.InsertionPoint(op):
        made = by_blocks(filter_)
        op.results[0].replace_all_uses_with(made)
    op.erase()


def by_blocks(given: Filter) -> ir.Value:
    """The result of a filter, from a convolution of blocks of pixels."""
    op, found, size = given.op, given.apart, given.pixels
    assert op is not None, "a filter without an operation is only priced"
    x, result = op.operands[0], op.results[0].type
    of_x, _ = orders(op)
    x = t.transpose(x, [of_x.first, of_x.channels, *of_x.space])
    (height, width), lies = given.lies.image, found.banded
    wide = lies.image[1]
    x = fitted(t.reshape(x, [found.images, found.channels, height, width]), wide * size)
    x = t.reshape(x, [found.images, found.channels, height, wide, size])
    x = t.transpose(x, [0, 2, 3, 1, 4]) if found.channels > 1 else x
    x = t.reshape(x, [found.images, height, wide, found.channels * size])
    rows, columns = lies.windows
    made = t.op(
        "convolution",
        [x, t.constant(found.bands, op.operands[1].type.element_type)],
        kind_of([found.images, rows, columns, found.outputs * size], result),
        dimension_numbers=ir.Attribute.parse(
            "#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>"
        ),
        window_strides=list(lies.strides),
        padding=ir.DenseIntElementsAttr.get(np.array(lies.pads, np.int64).reshape(2, 2)),
        lhs_dilation=[1, 1],
        rhs_dilation=list(lies.dilations),
        feature_group_count=found.groups,
        batch_group_count=1,
    )
    made = t.reshape(made, [found.images, rows, columns, found.outputs, size])
    made = t.transpose(made, [0, 3, 1, 2, 4]) if found.outputs > 1 else made
    made = t.reshape(made, [given.images, given.outputs, rows, columns * size])
    made = fitted(made, given.lies.windows[1])
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    places = [
        numbers.output_batch_dimension,
        numbers.output_feature_dimension,
        *numbers.output_spatial_dimensions,
    ]
    return t.transpose(made, [places.index(dim) for dim in range(4)])


def kind_of(shape: Sequence[int], like: ir.RankedTensorType) -> ir.RankedTensorType:
    return ir.RankedTensorType.get(list(shape), like.element_type)


def fitted(x: ir.Value, width: int) -> ir.Value:
    """`x` [.., width], with zeros behind its rows or without their ends."""
    *others, found = x.type.shape
    none, kind = [0] * x.type.rank, kind_of([*x.type.shape[:-1], width], x.type)
    if found == width:
        return x
    if found > width:
        limits = [*others, width]
        ones = [1] * x.type.rank
        return t.op("slice", [x], kind, start_indices=none, limit_indices=limits, strides=ones)
    zero = t.full(ir.RankedTensorType.get([], x.type.element_type), 0)
    high = [*none[:-1], width - found]
    return t.op(
        "pad",
        [x, zero],
        kind,
        edge_padding_low=none,
        edge_padding_high=high,
        interior_padding=none,
    )
