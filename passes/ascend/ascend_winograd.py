"""ascend-winograd: 3x3 convolutions as products of transformed tiles, where that takes less time.

before:
    %y = "ascend.conv"(%x, %w) {kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, ..}
        : (tensor<4x4096x1024xf32>, tensor<1x9216x1024xf32>) -> tensor<4x4096x1024xf32>
after, as F(4x4, 3x3), transposes apart:
    %r = "ascend.conv"(%x, %b) {kernel = array<i64: 6, 1>, strides = array<i64: 4, 1>, ..}
        : (tensor<256x4096x16xf32>, tensor<1x96x96xf32>) -> tensor<256x1024x96xf32>
    %v = "ascend.conv"(%r, %b) {kernel = array<i64: 1, 6>, strides = array<i64: 1, 4>, ..}
        : (tensor<1536x1024x16xf32>, tensor<1x96x96xf32>) -> tensor<1536x256x96xf32>
    %m = "ascend.conv"(%v, %u) {kernel = array<i64: 1, 1>, groups = 36, ..}
        : (tensor<4x256x36864xf32>, tensor<36x1024x1024xf32>) -> tensor<4x256x36864xf32>
    %y = "ascend.conv"(%m, %a) {kernel = array<i64: 1, 1>, ..}
        : (tensor<256x256x576xf32>, tensor<1x576x256xf32>) -> tensor<256x256x256xf32>

A tile of m x m pixels of the result is A ((G g G') * (B d B')) A' (`winograd_forms`), and takes (m
+ 2)^2 multiplications for 9 m^2. G g G' is made at compile time, so weights must be known. The
vector unit is weak here, and the transforms are work of the cube too: B d B' is two convolutions,
along columns and along rows, whose windows begin m pixels apart. load3d cuts the tiles, and what
pads the image and ragged tiles is its padding. A channel meets itself only, so weights are B with a
block of 16 channels for each number, the same for all blocks, which are images of their own. The
sum over channels is a product for each of the (m + 2)^2 elements of a tile, as groups of channels;
A is one more.

In fractals all else is another view, but where blocks of channels and elements of tiles change
places, and where pixels of tiles become pixels of the image. So the tiles of an image are as many
as fill whole fractals.

`winograd=cost` takes what is estimated to take least, launches counted, and a tenth less than a
direct one; `2x2` and `4x4` take that form wherever it can be, `none` neither. With `precision=fp32`
each of these products would become several, transforms too, so none is taken by cost.

Numbers are rounded to f16 five times instead of twice. Where no more is known of pixels and weights
than how large they are, the bound of the error is 18 (2x2) and 209 times (4x4) that of a direct
convolution; of random numbers the error is 2.5 and 7 times as large. `winograd_forms` derives it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from davinci import machine as machines
from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.elements import Array
from davinci.errors import CompileError
from davinci.machine import Machine
from davinci.mlir import ir
from davinci.operators import OPERATORS, Tensor
from davinci.operators.call import Call
from davinci.operators.conv import LENGTHS, MOST_PADDING, Geometry, geometry
from davinci.operators.tensors import ND, NZ
from davinci.passes.ascend.ascend_fold_constants import mark_foldable, value_of
from davinci.passes.ascend.grouping import Judge
from davinci.passes.ascend.tensor_ops import (
    CONVOLUTION,
    TensorOps,
    definition,
    erase_unused,
    merge_equal,
    tensor_functions,
)
from davinci.passes.ascend.winograd_forms import FORMS, KERNEL, Form
from davinci.passes.pipeline.base import Pass, option, register_pass
from davinci.passes.pipeline.pipelines import PRECISIONS, WINOGRAD
from davinci.schedule.graph import Graph, Node
from davinci.schedule.products.choice import Wanted, choose
from davinci.schedule.products.estimate import estimate
from davinci.schedule.products.group import read_group
from davinci.schedule.vector.space import NoSpace
from davinci.units import FRACTAL_SIDE, ceil_div

WORTH = 1.25
"""How many times what it takes at least a direct convolution takes at most, about: forms that take
more at least are not looked at."""

GAIN = 0.9
"""The part of a direct convolution's cycles that a form may take at most: estimates of several
kernels are that near."""

HALF = "f16"
"""What factors are rounded to."""


@register_pass
@dataclass(frozen=True)
class AscendWinogradPass(Pass):
    """Compute 3x3 convolutions by transformed tiles."""

    NAME = "ascend-winograd"

    machine: str = option("ascend910", "machine file that the costs come from")
    cores: int = option(0, "most blocks a kernel may use; 0: all cores of the machine")
    precision: str = option("mixed", "the policy of ascend-legalize-precision", PRECISIONS)
    winograd: str = option("cost", "by cost, nowhere, or everywhere with such tiles", WINOGRAD)

    def run(self, op: Any) -> None:
        machine = machines.load(self.machine)
        forms = [form for form in FORMS if self.winograd in ("cost", form.name)]
        by_cost = self.winograd == "cost"
        if not forms or (by_cost and (machine.split or self.precision == "fp32")):
            return
        chooser = Chooser(machine, self.cores or machine.cores)
        for function in tensor_functions(op):
            block = function.regions[0].blocks[0]
            foldable = mark_foldable(block)
            for operation in list(block.operations):
                conv = operation.operation
                if conv.name != CONVOLUTION or not may_be_tiled(conv, foldable):
                    continue
                ways = [way for form in forms if (way := Tiled.of(conv, form)).legal]
                best = chooser.best(conv, ways) if by_cost else next(iter(ways), None)
                if best is not None:
                    best.replace(conv, self.precision != "fp32")
            erase_unused(block)
            merge_equal(block)


def may_be_tiled(conv: Any, foldable: set[Any]) -> bool:
    """Whether a convolution is one of 3x3 floats, of all pixels and channels, of known weights."""
    w, lies = conv.operands[1], geometry_of(conv)
    plain = (KERNEL, (1, 1), (1, 1)) == (lies.kernel, lies.strides, lies.dilations)
    w_type = tensor_of(w.type)
    groups = {w_type.shape[0], attribute(conv, "groups") or 1}
    whole = groups == {1} and w_type.element != "i8"
    rows = all(tensor_of(value.type).layout == ND for value in conv.operands)
    return plain and whole and rows and (w in foldable or definition(w) is not None)


def geometry_of(conv: Any) -> Geometry:
    return geometry({name: attribute(conv, name) for name in LENGTHS})


@dataclass(frozen=True)
class Windows:
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
        """Of images, weights and result."""
        rows = self.channels * self.lies.elements
        return (
            (self.images, math.prod(self.image), self.groups * self.channels),
            (self.groups, rows, self.outputs),
            (self.images, math.prod(self.lies.windows), self.groups * self.outputs),
        )

    def emit(self, x: Any, w: Any, ops: TensorOps) -> Any:
        """The result in the element type of the images, which sums in f32 are rounded to."""
        made = ops.emit("conv", [x, w], Tensor(self.shapes[2], "f32"), **self.attributes)
        return ops.cast(made, tensor_of(x.type).element)

    def graph(self) -> Graph:
        """Of factors and a result of f16 in fractals."""
        values = [Tensor(shape, HALF, NZ) for shape in self.shapes]
        return Graph(values, [Node("conv", (0, 1), 2, self.attributes)], [0, 1], [2])


@dataclass(frozen=True)
class Turn:
    """Blocks of 16 channels that change places in memory.

    Attributes:
        shape: the last dimension is a block's channels.
        result: what is made of the transposed shape.
    """

    shape: tuple[int, ...]
    permutation: tuple[int, ...]
    result: tuple[int, ...]

    def emit(self, value: Any, ops: TensorOps) -> Any:
        turned = ops.transpose(ops.reshape(value, self.shape), self.permutation)
        return ops.reshape(turned, self.result)

    def graph(self) -> Graph:
        turned = tuple(self.shape[dim] for dim in self.permutation)
        values = [Tensor(self.shape, HALF), Tensor(turned, HALF)]
        node = Node("transpose", (0,), 1, {"permutation": self.permutation})
        return Graph(values, [node], [0], [1])


def blocks_apart(value: Any, ops: TensorOps) -> Any:
    """Images [n, p, k 16] of one block of channels each: [n k, p, 16]; in fractals a view."""
    n, pixels, channels = tensor_of(value.type).shape
    blocks = channels // FRACTAL_SIDE
    value = ops.reshape(value, [n, pixels, blocks, FRACTAL_SIDE])
    return ops.reshape(ops.transpose(value, [0, 2, 1, 3]), [n * blocks, pixels, FRACTAL_SIDE])


def blocks_together(value: Any, images: int, ops: TensorOps) -> Any:
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

    form: Form
    lies: Geometry
    images: int
    channels: int
    outputs: int
    tiles: tuple[int, int]

    @staticmethod
    def of(conv: Any, form: Form) -> Tiled:
        images, _, channels = tensor_of(conv.operands[0].type).shape
        outputs = tensor_of(conv.result.type).shape[2]
        return Tiled.fitted(form, geometry_of(conv), images, channels, outputs)

    @staticmethod
    def fitted(form: Form, lies: Geometry, images: int, channels: int, outputs: int) -> Tiled:
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
        """Whether load3d has such padding."""
        return max(self.pads) <= MOST_PADDING

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
        """Of channels and of outputs."""
        return ceil_div(self.channels, FRACTAL_SIDE), ceil_div(self.outputs, FRACTAL_SIDE)

    @property
    def columns(self) -> Windows:
        """The image transformed along its columns: [n c, tiles w, (i, 16)]."""
        top, bottom, _, _ = self.pads
        form, count = self.form, self.images * self.blocks[0]
        side, kernel, strides = form.reach * FRACTAL_SIDE, (form.reach, 1), (form.size, 1)
        pads = (top, bottom, 0, 0)
        return Windows(count, FRACTAL_SIDE, side, self.lies.image, kernel, strides, pads)

    @property
    def rows(self) -> Windows:
        """And along its rows: [n c i, tiles, (j, 16)]."""
        _, _, left, right = self.pads
        form, count = self.form, self.images * self.blocks[0] * self.form.reach
        side, kernel, strides = form.reach * FRACTAL_SIDE, (1, form.reach), (1, form.size)
        image, pads = (self.tiles[0], self.lies.image[1]), (0, 0, left, right)
        return Windows(count, FRACTAL_SIDE, side, image, kernel, strides, pads)

    @property
    def products(self) -> Windows:
        """One for each element of a tile: [n, tiles, (i, j, o)]."""
        channels, outputs = (count * FRACTAL_SIDE for count in self.blocks)
        return Windows(self.images, channels, outputs, self.tiles, groups=self.form.reach**2)

    @property
    def results(self) -> Windows:
        """Tiles of the result: [n o, tiles, (a, b, 16)]."""
        inner, outer = (side**2 * FRACTAL_SIDE for side in (self.form.reach, self.form.size))
        return Windows(self.images * self.blocks[1], inner, outer, self.tiles)

    @property
    def turns(self) -> tuple[Turn, Turn, Turn, Turn]:
        """Elements of tiles in front of blocks of channels, behind them; pixels in the order of
        rows, then rows in that of images: both at once are more, and shorter, runs."""
        n, elements, size = self.images, self.form.reach**2, self.form.size
        (channels, outputs), (rows, columns) = self.blocks, self.tiles
        swap, block = (0, 2, 1, 3, 4), (rows * columns, FRACTAL_SIDE)
        lines, line = (n * outputs * size, size, *block), columns * size * FRACTAL_SIDE
        image = (n * outputs, size * rows, size * columns, FRACTAL_SIDE)
        return (
            Turn((n, channels, elements, *block), swap, (n * elements * channels, *block)),
            Turn((n, elements, outputs, *block), swap, (n * outputs * elements, *block)),
            Turn(lines, (0, 2, 1, 3), (n * outputs, size, rows, line)),
            Turn((n * outputs, size, rows, line), (0, 2, 1, 3), image),
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

    def replace(self, conv: Any, rounded: bool) -> None:
        """Computes the convolution so.

        Args:
            rounded: whether the result is rounded to f16 on its way through memory.
        """
        x, w = conv.operands
        result = tensor_of(conv.result.type)
        with conv.location, ir.InsertionPoint(conv):
            ops = TensorOps()
            made = self.tiles_of_result(x, value_of(w), rounded, ops)
            made = ops.cast(self.in_order(made, ops), result.element)
        conv.result.replace_all_uses_with(made)
        conv.erase()

    def tiles_of_result(self, x: Any, w: Array, rounded: bool, ops: TensorOps) -> Any:
        """[n o, tiles, (a, b, 16)]."""
        form, (first, second, *_) = self.form, self.turns
        element = tensor_of(x.type).element

        def constant(array: Array) -> Any:
            return ops.cast(ops.constant(array.astype(np.float32), "f32"), element)

        lines = constant(for_each_channel(form.b))
        x = blocks_apart(self.with_whole_blocks(x, ops), ops)
        x = blocks_apart(self.columns.emit(x, lines, ops), ops)
        x = blocks_apart(self.rows.emit(x, lines, ops), ops)
        x = blocks_together(first.emit(x, ops), self.images, ops)
        x = blocks_apart(self.products.emit(x, constant(self.weights(w)), ops), ops)
        x = blocks_together(second.emit(x, ops), self.results.images, ops)
        x = self.results.emit(x, constant(for_each_channel(np.kron(form.a, form.a))), ops)
        return ops.cast(x, HALF) if rounded else x

    def with_whole_blocks(self, x: Any, ops: TensorOps) -> Any:
        """Images with channels of zeros, where their channels are no whole blocks."""
        found = tensor_of(x.type)
        more = self.blocks[0] * FRACTAL_SIDE - self.channels
        if not more:
            return x
        wide = Tensor((*found.shape[:2], self.channels + more), found.element)
        zero, none = ops.full((), found.element, 0), [0, 0, 0]
        return ops.emit("pad", [x, zero], wide, low=none, high=[0, 0, more], interior=none)

    def in_order(self, tiles: Any, ops: TensorOps) -> Any:
        """Tiles of the result as images [n, pixels, outputs]."""
        windows, count = self.lies.windows, self.results.images
        made = blocks_apart(tiles, ops)
        for turn in self.turns[2:]:
            made = turn.emit(made, ops)
        made = first_of(made, [count, *windows, FRACTAL_SIDE], ops)
        made = ops.reshape(made, [count, math.prod(windows), FRACTAL_SIDE])
        made = blocks_together(made, self.images, ops)
        return first_of(made, [self.images, math.prod(windows), self.outputs], ops)

    @cached_property
    def graphs(self) -> list[Graph]:
        """Of its kernels, and one of what follows, which a direct one does on its way: in f32, as
        a bias is added and an activation computed."""
        kernels = (self.columns, self.rows, self.products, self.results, *self.turns)
        shape = self.images, math.prod(self.lies.windows), self.outputs
        values = [Tensor(shape, element) for element in (HALF, "f32", "f32", "f32", HALF)]
        steps = [("cast", (0,)), ("add", (1, 1)), ("relu", (2,)), ("cast", (3,))]
        nodes = [Node(name, read, i + 1) for i, (name, read) in enumerate(steps)]
        after = Graph(values, nodes, [0], [4])
        return [*(kernel.graph() for kernel in kernels), after]


def first_of(value: Any, shape: Sequence[int], ops: TensorOps) -> Any:
    """The first elements along each dimension."""
    found = tensor_of(value.type)
    if found.shape == tuple(shape):
        return value
    bounds = {"starts": [0] * len(shape), "limits": list(shape), "strides": [1] * len(shape)}
    return ops.emit("slice", [value], Tensor(tuple(shape), found.element), **bounds)


@dataclass
class Chooser:
    """Says what forms cost on a machine; equal convolutions are weighed once."""

    machine: Machine
    cores: int
    _known: dict[Any, Tiled | None] = field(default_factory=dict)

    @cached_property
    def _judge(self) -> Judge:
        return Judge(self.machine, self.cores)

    def best(self, conv: Any, ways: Sequence[Tiled]) -> Tiled | None:
        """The form of fewest cycles, None if that is the direct one."""
        key = tensor_of(conv.operands[0].type), tensor_of(conv.result.type), geometry_of(conv)
        if key not in self._known:
            self._known[key] = self.least_of(direct_graph(conv), ways)
        return self._known[key]

    def least_of(self, direct: Graph, ways: Sequence[Tiled]) -> Tiled | None:
        most = WORTH * self.least(direct)
        ways = [way for way in ways if sum(map(self.least, way.graphs)) < most]
        best, cycles = None, GAIN * self.cycles([direct], math.inf) if ways else 0
        for way in ways:
            found = self.cycles(way.graphs, cycles)
            if found < cycles:
                best, cycles = way, found
        return best

    def cycles(self, kernels: Sequence[Graph], most: float) -> float:
        """Estimated cycles of kernels with their launches; infinite where that is `most` or more,
        or there is no kernel for one."""
        left = [(self.least(graph), graph) for graph in kernels]
        rest, total = sum(least for least, _ in left), 0.0
        for least, graph in sorted(left, key=lambda pair: -pair[0]):
            rest -= least
            total += self._estimated(graph)
            if total + rest >= most:
                return math.inf
        return total

    def least(self, graph: Graph) -> float:
        """What a kernel takes at least: a launch, its multiplications, or its bytes by the L2."""
        node, values = graph.nodes[0], graph.arrays
        macs, cube, l2 = 0, self.machine.cube, self.machine.l2
        if node.name == "conv":
            call = Call(tuple(values[:-1]), (values[-1],), node.attributes)
            macs = OPERATORS[node.name].work(call).macs
        busy = max(
            macs / (cube.m * cube.n * cube.k_b16),
            sum(values[i].size_bytes for i in graph.inputs) / l2.read_bytes_per_cycle,
            sum(values[i].size_bytes for i in graph.outputs) / l2.write_bytes_per_cycle,
        )
        return self._judge.launch + busy / self.cores

    def _estimated(self, graph: Graph) -> float:
        if graph.nodes[0].name != "conv":
            cycles = self._judge.cycles(graph, growing=False)
            return math.inf if cycles is None else cycles
        try:
            product = read_group(graph).product
            schedule = choose(product, self.machine, self.cores, Wanted())
        except (NoSpace, CompileError):
            return math.inf
        return self._judge.launch + estimate(product, schedule, self.machine, self.cores)


def direct_graph(conv: Any) -> Graph:
    """A convolution as it is, of factors and a result of f16 in fractals."""
    shapes = [tensor_of(value.type).shape for value in (*conv.operands, conv.result)]
    attributes = {"groups": 1, **{name: list(attribute(conv, name)) for name in LENGTHS}}
    values = [Tensor(shape, HALF, NZ) for shape in shapes]
    return Graph(values, [Node("conv", (0, 1), 2, attributes)], [0, 1], [2])
