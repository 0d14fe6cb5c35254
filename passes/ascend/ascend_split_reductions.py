"""ascend-split-reductions: cores share reductions that leave few values for each of them.

before:
    %m = "ascend.reduce"(%x) {kind = "add", dims = array<i64: 1>}
        : (tensor<5x1048576xf32>) -> tensor<5xf32>
after, for 8 cores:
    %s = "ascend.reshape"(%x) : (tensor<5x1048576xf32>) -> tensor<5x8x131072xf32>
    %p = "ascend.reduce"(%s) {kind = "add", dims = array<i64: 2>} : (..) -> tensor<5x8xf32>
    %q = "ascend.reshape"(%p) {ascend.begins} : (tensor<5x8xf32>) -> tensor<5x8xf32>
    %m = "ascend.reduce"(%q) {kind = "add", dims = array<i64: 1>} : (..) -> tensor<5xf32>

Cores that share what one value comes from can meet in one kernel, where their number is a multiple
of the values'. Else a reduced dimension is split in equal parts, a kernel reduces each, and another
one, which begins at a reshape that says so, what they leave, where the two with their launches take
clearly less time than one.
Rows in front of a short innermost dimension are added several at a time, which are whole blocks of
32 bytes, and then each other, if nothing else reads what they are computed of:

    512x80x14 over 1:    512x20x(4x14) over 1, which leaves 512x4x14, over 1

f16 that accumulates in f32 does so in both. Where all readers of an elementwise operator are split
alike, its operands are parted in its place: what then reads an array does so in the same parts, and
can be one kernel. Sums of exponentials, as of softmax, are joined with the maxima of their parts
(`sums_of_exponentials`); phases of one launch cost less than kernels with a launch each
(`launches`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from davinci import machine as machines
from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.mlir import Op, ir
from davinci.operators import Tensor
from davinci.operators.reduce import REDUCTIONS
from davinci.operators.tensors import ND
from davinci.operators.vector_program import DTYPE_OF
from davinci.passes import builder
from davinci.passes.analysis.rewrite_counts import note
from davinci.passes.ascend.sums_of_exponentials import PAYS, WAVES, Chip, begun, part_exponentials
from davinci.passes.ascend.tensor_ops import (
    TensorOps,
    defining_op,
    is_elementwise,
    merged_reshape,
    readers_of,
    tensor_functions,
    users_of,
)
from davinci.passes.pipeline.base import Pass, option, register_pass
from davinci.passes.pipeline.pipelines import LAUNCHES, MANY
from davinci.schedule.graph import Graph, Node
from davinci.schedule.meetings import can_meet
from davinci.schedule.vector.row_places import block_lanes


@register_pass
@dataclass(frozen=True)
class AscendSplitReductionsPass(Pass):
    """Share reductions to few values among the cores."""

    NAME = "ascend-split-reductions"

    machine: str = option("ascend910", "machine file that gives sizes and limits")
    cores: int = option(0, "most blocks a kernel may use; 0: all cores of the machine")
    launches: str = option(MANY, "one launch in phases where that pays, or many", LAUNCHES)

    def run(self, op: Op) -> None:
        loaded = machines.load(self.machine)
        machine, cores = machines.for_vector(loaded), machines.vector_cores_for(loaded, self.cores)
        if cores == 1:
            return
        joined = self.launches != MANY and can_meet(machine)
        chip = Chip(machine, cores, joined)
        count = 0
        for function in tensor_functions(op):
            block = function.regions[0].blocks[0]
            found = [part_exponentials(op, chip) for op in reductions_of(block)]
            found += [split(op, chip) for op in reductions_of(block)]
            parted = [value for value in found if value is not None]
            part_operands(block, parted)
            count += len(parted)
        note(op, "split-reductions", count)


def reductions_of(block: ir.Block) -> list[Op]:
    """The reductions of a block, in order."""
    return [op.operation for op in block.operations if op.operation.name == "ascend.reduce"]


@dataclass(frozen=True)
class Split:
    """A reduction in two steps.

    Attributes:
        parted: the operand, with a dimension split in parts and what is left of each.
        partial: a value for each part.
        dims: that the first step reduces.
        left: dimensions of `partial` that the second one reduces.
    """

    parted: Tensor
    partial: Tensor
    dims: tuple[int, ...]
    left: tuple[int, ...]


def part_operands(block: ir.Block, parted: Sequence[ir.Value]) -> None:
    """Moves the reshapes that were made in front of the elementwise operators that they part, where
    nothing reads these in another shape, and makes one of those that are equal.

    Args:
        parted: results of the reshapes.
    """
    made = set(parted)
    for operation in reversed(list(block.operations)):
        op = operation.operation
        if not is_elementwise(op):
            continue
        reshapes = list(dict.fromkeys(users_of(op)))
        if any(reader.name != "ascend.reshape" for reader in reshapes):
            continue
        values = [reshape.results[0] for reshape in reshapes]
        kinds = {value.type for value in values}
        if len(kinds) != 1 or made.isdisjoint(values):
            continue
        (kind,) = kinds
        shape = tensor_of(kind).shape
        with op.location, ir.InsertionPoint(op):
            own = {value: TensorOps().reshape(value, shape) for value in dict.fromkeys(op.operands)}
        builder.replace_operands(op, own)
        made |= set(own.values())
        op.results[0].set_type(kind)
        for reshape, value in zip(reshapes, values, strict=True):
            value.replace_all_uses_with(op.results[0])
            reshape.erase()
    first: dict[tuple[ir.Value, ir.Type], Op] = {}
    for operation in list(block.operations):
        if operation.operation.name == "ascend.reshape":
            merged_reshape(operation.operation, first)


def split(op: Op, chip: Chip) -> ir.Value | None:
    """Replaces a reduction by the two that take least time, if that is clearly less (`PAYS`); the
    parted operand if it did."""
    source, result = tensor_of(op.operands[0].type), tensor_of(op.result.type)
    if source.layout != ND or 0 in source.shape:
        return None
    kind, dims = attribute(op, "kind"), tuple(attribute(op, "dims"))
    block = block_lanes(DTYPE_OF[source.element])
    source = replace(source, element=REDUCTIONS[kind].accumulator(source.element))
    found = list(ways(source, dims, chip.cores)) if result.count < WAVES * chip.cores else []
    if read_alone(op.operands[0], op):
        found += ways_of_blocks(source, dims, block)
    if not found:
        return None
    whole = chip.cycles(graph_of_reduction(source, result.shape, kind, dims), meets=True)
    if whole is None:
        return None
    chip = chip.of_phases(2)
    best, least = None, whole * PAYS
    for way in found:
        cycles = cycles_of(way, result.shape, kind, chip)
        if cycles is not None and cycles < least:
            best, least = way, cycles
    if best is None:
        return None
    ops = TensorOps()
    with op.location, ir.InsertionPoint(op):
        wide = ops.cast(op.operands[0], source.element)
        parted: ir.Value = ops.reshape(wide, best.parted.shape)
        partial = ops.emit("reduce", [parted], best.partial, kind=kind, dims=best.dims)
        partial = begun(ops, partial, best.partial)
        made = Tensor(result.shape, source.element)
        total = ops.emit("reduce", [partial], made, kind=kind, dims=best.left)
        op.result.replace_all_uses_with(ops.cast(total, result.element))
    op.erase()
    return parted


def ways(source: Tensor, dims: tuple[int, ...], cores: int) -> Iterator[Split]:
    """The ways to part a reduced dimension so that most cores have work; of several that are
    reduced the first step takes all, or only parts of one, so that it adds whole rows of lanes."""
    for dim in dims:
        size = source.shape[dim]
        counts = [n for n in range(2, min(size, WAVES * cores) + 1) if size % n == 0]
        others = [d + (d > dim) for d in dims if d != dim]
        for count in counts[-WAVES:]:
            yield way_of(source, dim, count, (dim + 1, *others), (dim,))
        if others:
            for count in (1, *(n for n in counts if n <= cores)):
                yield way_of(source, dim, count, (dim + 1,), (dim, *others))


def ways_of_blocks(source: Tensor, dims: tuple[int, ...], block: int) -> Iterator[Split]:
    """The ways to add rows in front of lanes that are no whole blocks so many at a time that they
    are, or twice as many, and then these."""
    dim = dims[-1]
    together = block // math.gcd(math.prod(source.shape[dim + 1 :]), block)
    if len(dims) > 1 or together == 1:
        return
    for rows in (together, 2 * together):
        count = source.shape[dim] // rows
        if count > 1 and source.shape[dim] % rows == 0:
            yield way_of(source, dim, count, (dim,), (dim + 1,))


def read_alone(value: ir.Value, reader: Op) -> bool:
    """Whether nothing else reads a value, or what it is computed of element by element: else one
    kernel may do both."""
    producer = defining_op(value)
    if producer is not None and not producer.operands:
        return True
    if any(other != reader for other in readers_of(value)):
        return False
    if producer is None or not is_elementwise(producer.operation):
        return True
    return all(read_alone(operand, producer.operation) for operand in producer.operands)


def way_of(
    source: Tensor, dim: int, count: int, taken: Sequence[int], left: Sequence[int]
) -> Split:
    """A dimension in so many parts; of the dimensions then, the first step reduces those `taken`,
    the second those `left`."""
    shape = (*source.shape[:dim], count, source.shape[dim] // count, *source.shape[dim + 1 :])
    kept = [i for i in range(len(shape)) if i not in taken]
    partial = replace(source, shape=tuple(shape[i] for i in kept))
    places = tuple(sorted(kept.index(d) for d in left))
    return Split(replace(source, shape=shape), partial, tuple(sorted(taken)), places)


def cycles_of(way: Split, result: tuple[int, ...], kind: str, chip: Chip) -> float | None:
    """Estimated cycles of both steps with their launches, None of what no kernel can do."""
    first = graph_of_reduction(way.parted, way.partial.shape, kind, way.dims)
    second = graph_of_reduction(way.partial, result, kind, way.left)
    return chip.cycles(first, second)


def graph_of_reduction(
    source: Tensor, result: tuple[int, ...], kind: str, dims: tuple[int, ...]
) -> Graph:
    node = Node("reduce", (0,), 1, {"kind": kind, "dims": dims})
    return Graph([source, replace(source, shape=result)], [node], [0], [1])
