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
        : (tensor<1x1024x36864xf32>, tensor<36x1024x1024xf32>) -> tensor<1x1024x36864xf32>
    %y = "ascend.conv"(%m, %a) {kernel = array<i64: 1, 1>, ..}
        : (tensor<256x256x576xf32>, tensor<1x576x256xf32>) -> tensor<256x256x256xf32>

A tile of m x m pixels of the result is A ((G g G') * (B d B')) A' (`winograd_forms`), of (m + 2)^2
multiplications instead of 9 m^2. G g G' is made at compile time, so weights must be known. The
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
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from davinci import machine as machines
from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.errors import CompileError
from davinci.machine import Machine
from davinci.mlir import Op, ir
from davinci.operators import OPERATORS, Tensor
from davinci.operators.call import Call
from davinci.operators.conv import LENGTHS, Geometry, geometry
from davinci.operators.tensors import ND, NZ
from davinci.passes.ascend.ascend_fold_constants import mark_foldable, value_of
from davinci.passes.ascend.group_judge import Judge
from davinci.passes.ascend.tensor_ops import (
    CONVOLUTION,
    HALF,
    TensorOps,
    depends_on_constants,
    erase_unused,
    is_elementwise,
    merge_equal,
    tensor_functions,
    users_of,
)
from davinci.passes.ascend.winograd_forms import FORMS, KERNEL, WinogradForm
from davinci.passes.ascend.winograd_tiles import Tiled
from davinci.passes.pipeline.base import Pass, option, register_pass
from davinci.passes.pipeline.pipelines import PRECISIONS, WINOGRAD
from davinci.schedule.graph import Graph, Node
from davinci.schedule.products.candidates import Wanted
from davinci.schedule.products.choice import choose
from davinci.schedule.products.estimate import estimate
from davinci.schedule.products.group import read_group
from davinci.schedule.vector.space import NoSpace

WORTH = 1.25
"""How many times what it takes at least a direct convolution takes at most, about: forms that take
more at least are not looked at."""

GAIN = 0.9
"""The part of a direct convolution's cycles that a form may take at most: estimates of several
kernels are that near."""


@register_pass
@dataclass(frozen=True)
class AscendWinogradPass(Pass):
    """Compute 3x3 convolutions by transformed tiles."""

    NAME = "ascend-winograd"

    machine: str = option("ascend910", "machine file that the costs come from")
    cores: int = option(0, "most blocks a kernel may use; 0: all cores of the machine")
    precision: str = option("mixed", "the policy of ascend-legalize-precision", PRECISIONS)
    winograd: str = option("cost", "by cost, nowhere, or everywhere with such tiles", WINOGRAD)

    def run(self, op: Op) -> None:
        machine = machines.load(self.machine)
        forms = [form for form in FORMS if self.winograd in ("cost", form.name)]
        by_cost = self.winograd == "cost"
        if not forms or (by_cost and (machine.split or self.precision == "fp32")):
            return
        chooser = FormChooser(machine, self.cores or machine.cores)
        for function in tensor_functions(op):
            block = function.regions[0].blocks[0]
            foldable = mark_foldable(block)
            for operation in list(block.operations):
                conv = operation.operation
                if conv.name != CONVOLUTION or not may_be_tiled(conv, foldable):
                    continue
                ways = [way for form in forms if (way := tiled(conv, form)).legal]
                best = chooser.best(conv, ways) if by_cost else next(iter(ways), None)
                if best is not None:
                    replace_by(best, conv, self.precision != "fp32")
            erase_unused(block)
            merge_equal(block)


def may_be_tiled(conv: Op, foldable: set[ir.Value]) -> bool:
    """Whether a convolution is one of 3x3 floats, of all pixels and channels, of known weights."""
    w, lies = conv.operands[1], geometry_of(conv)
    plain = (KERNEL, (1, 1), (1, 1)) == (lies.kernel, lies.strides, lies.dilations)
    w_type = tensor_of(w.type)
    groups = {w_type.shape[0], attribute(conv, "groups") or 1}
    whole = groups == {1} and w_type.element != "i8"
    rows = all(tensor_of(value.type).layout == ND for value in conv.operands)
    return plain and whole and rows and depends_on_constants(w, foldable)


def geometry_of(conv: Op) -> Geometry:
    return geometry({name: attribute(conv, name) for name in LENGTHS})


def tiled(conv: Op, form: WinogradForm) -> Tiled:
    images, _, channels = tensor_of(conv.operands[0].type).shape
    outputs = tensor_of(conv.result.type).shape[2]
    return Tiled.fitted(form, geometry_of(conv), images, channels, outputs)


def replace_by(way: Tiled, conv: Op, rounded: bool) -> None:
    """Computes a convolution by tiles.

    Args:
        rounded: whether the result is rounded to f16 on its way through memory.
    """
    x, w = conv.operands
    with conv.location, ir.InsertionPoint(conv):
        ops = TensorOps()
        made = way.emit(x, value_of(w), ops)
        made = way.in_order(ops.cast(made, HALF) if rounded else made, ops)
        made = ops.cast(made, tensor_of(conv.result.type).element)
    conv.result.replace_all_uses_with(made)
    conv.erase()


@dataclass
class FormChooser:
    """Says what forms cost on a machine; equal convolutions are weighed once."""

    machine: Machine
    cores: int
    _known: dict[Hashable, Tiled | None] = field(default_factory=dict)

    @cached_property
    def _judge(self) -> Judge:
        return Judge(self.machine, self.cores)

    def best(self, conv: Op, ways: Sequence[Tiled]) -> Tiled | None:
        """The form of fewest cycles, None if that is the direct one."""
        followed = any(map(is_elementwise, users_of(conv)))
        after = following(tensor_of(conv.result.type).shape) if followed else []
        shapes = [tensor_of(value.type).shape for value in (conv.operands[0], conv.result)]
        key = (*shapes, geometry_of(conv), len(after))
        if key not in self._known:
            self._known[key] = self.least_of(direct_graph(conv), ways, after)
        return self._known[key]

    def least_of(
        self, direct: Graph, ways: Sequence[Tiled], after: Sequence[Graph] = ()
    ) -> Tiled | None:
        """The same of kernels.

        Args:
            after: those that follow tiles, and a direct one has on its way.
        """
        most = GAIN * WORTH * self.least(direct)
        ways = [way for way in ways if sum(map(self.least, way.graphs)) < most]
        best, cycles = None, GAIN * self.cycles([direct], math.inf) if ways else 0
        for way in ways:
            found = self.cycles([*way.graphs, *after], cycles)
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
        """What a kernel takes at least: a launch, and its multiplications or its bytes: by the L2,
        and those of values that it cannot hold by memory, which reads and writes share."""
        node, values, machine = graph.nodes[0], graph.arrays, self.machine
        macs, cube, gm, l2 = 0, machine.cube, machine.gm, machine.l2
        if node.name == "conv":
            call = Call(tuple(values[:-1]), (values[-1],), node.attributes)
            macs = OPERATORS[node.name].work(call).macs
        read, written = (
            sum(values[i].size_bytes for i in numbers) for numbers in (graph.inputs, graph.outputs)
        )
        sizes = [values[i].size_bytes for i in (*graph.inputs, *graph.outputs)]
        streamed = sum(size for size in sizes if size > l2.bytes)
        busy = max(
            macs / (cube.m * cube.n * cube.k_b16 * self.cores),
            read / (l2.read_bytes_per_cycle * self.cores),
            written / (l2.write_bytes_per_cycle * self.cores),
            streamed / (gm.read_bytes_per_cycle * machine.cores),
        )
        return self._judge.launch + busy

    def _estimated(self, graph: Graph) -> float:
        if graph.nodes[0].name != "conv":
            found = self._judge.cycles(graph, growing=False)
            return math.inf if found is None else max(found, self.least(graph))
        try:
            product = read_group(graph, self.machine).product
            schedule = choose(product, self.machine, self.cores, Wanted())
        except (NoSpace, CompileError):
            return math.inf
        cycles = estimate(product, schedule, self.machine, self.cores)
        return max(self._judge.launch + cycles, self.least(graph))


def direct_graph(conv: Op) -> Graph:
    """A convolution as it is, of factors and a result of f16 in fractals."""
    shapes = [tensor_of(value.type).shape for value in (*conv.operands, conv.result)]
    attributes = {"groups": 1, **{name: list(attribute(conv, name)) for name in LENGTHS}}
    values = [Tensor(shape, HALF, NZ) for shape in shapes]
    return Graph(values, [Node("conv", (0, 1), 2, attributes)], [0, 1], [2])


def following(shape: tuple[int, ...]) -> list[Graph]:
    """What follows tiles in a kernel of its own, and a direct convolution on its way: in f32, as a
    bias is added and an activation computed."""
    values = [Tensor(shape, element) for element in (HALF, "f32", "f32", "f32", HALF)]
    steps = [("cast", (0,)), ("add", (1, 1)), ("relu", (2,)), ("cast", (3,))]
    nodes = [Node(name, read, i + 1) for i, (name, read) in enumerate(steps)]
    return [Graph(values, nodes, [0], [4])]
