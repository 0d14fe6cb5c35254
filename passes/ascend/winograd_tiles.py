"""How a convolution is computed by tiles: its kernels, their shapes, and the operators of them.

    image -> columns -> rows -> turned -> products -> turned -> results -> in order

`ascend_winograd` says what each does. Shapes here are those of the operators; what lies between
two of them, not named, is a view in fractals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.elements import Array
from davinci.mlir import ir
from davinci.operators import Tensor
from davinci.operators.conv import LENGTHS, MOST_PADDING, MOST_SIDE, Geometry
from davinci.operators.tensors import NZ
from davinci.passes.ascend.tensor_ops import HALF, TensorOps
from davinci.passes.ascend.winograd_forms import KERNEL, WinogradForm
from davinci.schedule.graph import Graph, Node
from davinci.units import FRACTAL_SIDE, ceil_div


@dataclass(frozen=True)
class WindowsConvolution:
    """A convolution of one block of channels, or of groups of windows that are pixels.

    Attributes:
        images: how many.
        channels, outputs: of each group.
    """

    images: int
    channels: int
    outputs: int
    image: tuple[int, int]
    kernel: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    groups: int = 1

    @property
    def lies(self) -> Geometry:
        return Geometry(self.image, self.kernel, self.strides, (1, 1), self.pads)

    @property
    def attributes(self) -> dict[str, Any]:
        lengths = {name: list(getattr(self.lies, name)) for name in LENGTHS}
        return {"groups": self.groups, **lengths}

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """The shapes of the images, the weights and the result."""
        rows = self.channels * self.lies.elements
        return (
            (self.images, math.prod(self.image), self.groups * self.channels),
            (self.groups, rows, self.outputs),
            (self.images, math.prod(self.lies.windows), self.groups * self.outputs),
        )

    def emit(self, x: ir.Value, w: ir.Value, ops: TensorOps) -> ir.Value:
        """The sums in f32."""
        return ops.emit("conv", [x, w], Tensor(self.shapes[2], "f32"), **self.attributes)

    def graph(self) -> Graph:
        """The convolution as a graph whose factors and result are f16 in fractals."""
        values = [Tensor(shape, HALF, NZ) for shape in self.shapes]
        return Graph(values, [Node("conv", (0, 1), 2, self.attributes)], [0, 1], [2])


@dataclass(frozen=True)
class ChannelBlockTurn:
    """Blocks of 16 channels that change places in memory.

    Attributes:
        shape: the last dimension is a block's channels.
        result: what is made of the transposed shape.
    """

    shape: tuple[int, ...]
    permutation: tuple[int, ...]
    result: tuple[int, ...]

    def emit(self, value: ir.Value, ops: TensorOps) -> ir.Value:
        turned = ops.transpose(ops.reshape(value, self.shape), self.permutation)
        return ops.reshape(turned, self.result)

    def graph(self) -> Graph:
        turned = tuple(self.shape[dim] for dim in self.permutation)
        values = [Tensor(self.shape, HALF), Tensor(turned, HALF)]
        node = Node("transpose", (0,), 1, {"permutation": self.permutation})
        return Graph(values, [node], [0], [1])


def blocks_apart(value: ir.Value, ops: TensorOps) -> ir.Value:
    """Images [n, p, k 16] of one block of channels each: [n k, p, 16]; in fractals a view."""
    n, pixels, channels = tensor_of(value.type).shape
    blocks = channels // FRACTAL_SIDE
    value = ops.reshape(value, [n, pixels, blocks, FRACTAL_SIDE])
    return ops.reshape(ops.transpose(value, [0, 2, 1, 3]), [n * blocks, pixels, FRACTAL_SIDE])


def blocks_together(value: ir.Value, images: int, ops: TensorOps) -> ir.Value:
    """The other way: [n k, p, 16] to [n, p, k 16]."""
    count, pixels, _ = tensor_of(value.type).shape
    blocks = count // images
    value = ops.reshape(value, [images, blocks, pixels, FRACTAL_SIDE])
    return ops.reshape(ops.transpose(value, [0, 2, 1, 3]), [images, pixels, blocks * FRACTAL_SIDE])


def for_each_channel(matrix: Array) -> Array:
    """Weights [1, k 16, i 16] of a matrix [i, k]: a channel meets itself only."""
    return np.kron(matrix.T, np.eye(FRACTAL_SIDE))[None]


@dataclass(frozen=True)
class Tiled:
    """A convolution by tiles of a form.

    Attributes:
        images: how many.
        tiles: rows and columns of them, as many as fill whole fractals.
    """

    form: WinogradForm
    lies: Geometry
    images: int
    channels: int
    outputs: int
    tiles: tuple[int, int]

    @staticmethod
    def fitted(
        form: WinogradForm, lies: Geometry, images: int, channels: int, outputs: int
    ) -> Tiled:
        """With the fewest tiles that are whole fractals."""
        rows, columns = (ceil_div(size, form.size) for size in lies.windows)
        ways = [
            (rows + i, columns + j)
            for i in range(FRACTAL_SIDE)
            for j in range(FRACTAL_SIDE)
            if (rows + i) * (columns + j) % FRACTAL_SIDE == 0
        ]
        return Tiled(form, lies, images, channels, outputs, min(ways, key=math.prod))

    @property
    def legal(self) -> bool:
        """Whether load3d has such padding and images."""
        return max(self.pads) <= MOST_PADDING and max(self.products.image) <= MOST_SIDE

    @property
    def pads(self) -> tuple[int, int, int, int]:
        """Around images, behind them as far as tiles go."""
        top, _, left, _ = self.lies.pads
        ends = [
            self.form.size * (count - 1) + self.form.reach - before - size
            for count, before, size in zip(self.tiles, (top, left), self.lies.image, strict=True)
        ]
        return top, ends[0], left, ends[1]

    @property
    def blocks(self) -> tuple[int, int]:
        """How many blocks of 16 the channels and the outputs have."""
        return ceil_div(self.channels, FRACTAL_SIDE), ceil_div(self.outputs, FRACTAL_SIDE)

    @property
    def columns(self) -> WindowsConvolution:
        """The image transformed along its columns: [n c, tiles w, (i, 16)]."""
        top, bottom, _, _ = self.pads
        form, count = self.form, self.images * self.blocks[0]
        side, kernel, strides = form.reach * FRACTAL_SIDE, (form.reach, 1), (form.size, 1)
        pads = (top, bottom, 0, 0)
        return WindowsConvolution(count, FRACTAL_SIDE, side, self.lies.image, kernel, strides, pads)

    @property
    def rows(self) -> WindowsConvolution:
        """And along its rows: [n c i, tiles, (j, 16)]."""
        _, _, left, right = self.pads
        form, count = self.form, self.images * self.blocks[0] * self.form.reach
        side, kernel, strides = form.reach * FRACTAL_SIDE, (1, form.reach), (1, form.size)
        image, pads = (self.tiles[0], self.lies.image[1]), (0, 0, left, right)
        return WindowsConvolution(count, FRACTAL_SIDE, side, image, kernel, strides, pads)

    @property
    def products(self) -> WindowsConvolution:
        """One for each element of a tile, of all images: [1, n tiles, (i, j, o)]."""
        channels, outputs = (count * FRACTAL_SIDE for count in self.blocks)
        image = self.images * self.tiles[0], self.tiles[1]
        return WindowsConvolution(1, channels, outputs, image, groups=self.form.reach**2)

    @property
    def results(self) -> WindowsConvolution:
        """Tiles of the result: [n o, tiles, (a, b, 16)]."""
        inner, outer = (side**2 * FRACTAL_SIDE for side in (self.form.reach, self.form.size))
        return WindowsConvolution(self.images * self.blocks[1], inner, outer, self.tiles)

    @property
    def turns(
        self,
    ) -> tuple[ChannelBlockTurn, ChannelBlockTurn, ChannelBlockTurn, ChannelBlockTurn]:
        """Elements of tiles in front of blocks of channels and these of images, and back; pixels in
        the order of rows, then rows in that of images: both at once are more, shorter runs."""
        n, elements, size = self.images, self.form.reach**2, self.form.size
        (channels, outputs), (rows, columns) = self.blocks, self.tiles
        swap, block = (2, 1, 0, 3, 4), (rows * columns, FRACTAL_SIDE)
        of_all = n * rows * columns, FRACTAL_SIDE
        lines, line = (n * outputs * size, size, *block), columns * size * FRACTAL_SIDE
        image = (n * outputs, size * rows, size * columns, FRACTAL_SIDE)
        return (
            ChannelBlockTurn((n, channels, elements, *block), swap, (elements * channels, *of_all)),
            ChannelBlockTurn(
                (elements, outputs, n, *block), swap, (n * outputs * elements, *block)
            ),
            ChannelBlockTurn(lines, (0, 2, 1, 3), (n * outputs, size, rows, line)),
            ChannelBlockTurn((n * outputs, size, rows, line), (0, 2, 1, 3), image),
        )

    def weights(self, w: Array) -> Array:
        """U = G g G' of weights as `conv` has them: [(i, j), channels, outputs], padded."""
        channels, outputs = self.blocks
        g = w.reshape(channels, *KERNEL, FRACTAL_SIDE, self.outputs).transpose(1, 2, 0, 3, 4)
        g = g.reshape(math.prod(KERNEL), -1).astype(np.float32)
        both = np.kron(self.form.g, self.form.g).astype(np.float32)
        u = (both @ g).reshape(self.form.reach**2, channels * FRACTAL_SIDE, self.outputs)
        more = outputs * FRACTAL_SIDE - self.outputs
        return np.pad(u, ((0, 0), (0, 0), (0, more)))

    def emit(self, x: ir.Value, w: Array, ops: TensorOps) -> ir.Value:
        """Tiles of the result in f32: [n o, tiles, (a, b, 16)].

        Args:
            x: images in rows.
            w: weights as `conv` has them.
        """
        form, (first, second, *_) = self.form, self.turns
        element = tensor_of(x.type).element

        def constant(array: Array) -> ir.Value:
            return ops.cast(ops.constant(array.astype(np.float32), "f32"), element)

        lines = constant(for_each_channel(form.b))
        results = constant(for_each_channel(np.kron(form.a, form.a)))
        whole = [*tensor_of(x.type).shape[:2], self.blocks[0] * FRACTAL_SIDE]
        x = blocks_apart(ops.padded(x, whole), ops)
        x = blocks_apart(ops.cast(self.columns.emit(x, lines, ops), element), ops)
        x = blocks_apart(ops.cast(self.rows.emit(x, lines, ops), element), ops)
        x = blocks_together(first.emit(x, ops), 1, ops)
        x = self.products.emit(x, constant(self.weights(w)), ops)
        x = blocks_apart(ops.cast(x, element), ops)
        x = blocks_together(second.emit(x, ops), self.results.images, ops)
        return self.results.emit(x, results, ops)

    def in_order(self, tiles: ir.Value, ops: TensorOps) -> ir.Value:
        """Tiles of the result as images [n, pixels, outputs]."""
        windows, count = self.lies.windows, self.results.images
        made = blocks_apart(tiles, ops)
        for turn in self.turns[2:]:
            made = turn.emit(made, ops)
        made = ops.cut(made, [0] * 4, [count, *windows, FRACTAL_SIDE])
        made = ops.reshape(made, [count, math.prod(windows), FRACTAL_SIDE])
        made = blocks_together(made, self.images, ops)
        return ops.cut(made, [0] * 3, [self.images, math.prod(windows), self.outputs])

    @property
    def graphs(self) -> list[Graph]:
        """The graphs of the kernels that the convolution becomes."""
        kernels = (self.columns, self.rows, self.products, self.results, *self.turns)
        return [kernel.graph() for kernel in kernels]
