"""Sums of exponentials over rows that are longer than there are rows, in parts: softmax and
logarithms of sums.

before:
    m = max(x)                      of each row
    s = sum(exp(x - c))             c is made of m
after:
    n = max(x_p), t = sum(exp(x_p - n))          of each part p of a row
    m = max(n), s = sum(t exp(n - c))            over the parts

Both reductions of a part are one kernel that reads it once, and all cores share the parts. What is
subtracted in a part is the finite number next to n: a part that is all minus infinity leaves 0, one
with an infinite number what the whole row would. Of a row without equal parts, as of 50,257, the
rest behind them is joined with what they leave, each element as a part of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.machine import Machine
from davinci.mlir import Op, ir
from davinci.operators import Tensor
from davinci.operators.tensors import ND
from davinci.passes.analysis.group_graph import graph_of
from davinci.passes.ascend.grouping import BEGINS
from davinci.passes.ascend.tensor_ops import (
    CARRIED,
    ON_CUBE,
    TensorOps,
    defining_op,
    is_elementwise,
    is_f32,
    readers_of,
    users_of,
)
from davinci.schedule.graph import Graph
from davinci.schedule.kernel_cores import cores_of
from davinci.schedule.meetings import LaunchPrice
from davinci.schedule.vector.space import NoSpace
from davinci.units import REPEAT_BLOCKS, REPEAT_BYTES

LARGEST = float(np.finfo(np.float32).max)

WAVES = 4
"""Parts for each core, at most."""

PAYS = 0.9
"""What several kernels may take of the estimate of one: theirs are less sure."""

LANES = tuple(REPEAT_BYTES // 4 >> i for i in range(REPEAT_BLOCKS.bit_length()))
"""Numbers that a part may leave: a repeat, or at least a block."""

WAYS = 8
"""Numbers of parts that are weighed, at most."""


@dataclass(frozen=True)
class ExponentialSum:
    """A sum of exponentials of rows less a number for each row.

    Attributes:
        largest: the reduction that finds the largest number of each row.
        subtracted: the broadcast of what is subtracted.
        difference, exponential, total: the other operators.
        dim: the dimension that is reduced.
    """

    largest: Op
    subtracted: Op
    difference: Op
    exponential: Op
    total: Op
    dim: int

    @property
    def rows(self) -> ir.Value:
        rows: ir.Value = self.difference.operands[0]
        return rows

    def between(self) -> list[Op]:
        """What makes the subtracted numbers of the largest ones, in order."""
        found: list[Op] = []
        _gather(self.subtracted.operands[0], self.largest, found)
        return found

    def readers(self) -> list[Op]:
        """Elementwise operators that read exponentials or differences beside the sum, and what
        makes their other operands of the sum, in order."""
        values = (self.exponential.results[0], self.difference.results[0])
        own = (self.exponential, self.total)
        last = [op for v in values for op in users_of(v.owner) if op not in own]
        found: list[Op] = []
        for op in dict.fromkeys(last):
            for operand in op.operands:
                if operand not in values:
                    _gather(operand, self.total, found)
            found.append(op)
        return found


def _gather(value: ir.Value, start: Op, found: list[Op]) -> bool:
    """Collects the operators on the way from `start` to a value; whether it depends on it."""
    owner = defining_op(value)
    if owner is None:
        return False
    op = owner.operation
    if op == start or op in found:
        return True
    if op.name not in CARRIED and not is_elementwise(op):
        return False
    depends = [_gather(operand, start, found) for operand in op.operands]
    if any(depends):
        found.append(op)
        return True
    return False


def sum_at(op: Op) -> ExponentialSum | None:
    """The sum of exponentials that a reduction ends."""
    dims = attribute(op, "dims")
    exponential = defining_op(op.operands[0])
    if attribute(op, "kind") != "add" or len(dims) != 1 or exponential is None:
        return None
    difference = defining_op(exponential.operands[0]) if exponential.name == "ascend.exp" else None
    if difference is None or difference.name != "ascend.sub":
        return None
    rows, subtracted = difference.operands[0], defining_op(difference.operands[1])
    if subtracted is None or subtracted.name != "ascend.broadcast" or not is_f32(rows):
        return None
    (dim,) = dims
    narrow, where = tensor_of(subtracted.operands[0].type), attribute(subtracted, "dims")
    alike = [r for r in map(_reduction, readers_of(rows)) if r == ("max", [dim])]
    if tensor_of(rows.type).layout != ND or not alike:
        return None
    if dim in where and narrow.shape[list(where).index(dim)] != 1:
        return None
    largest = next(r for r in readers_of(rows) if _reduction(r) == ("max", [dim]))
    return ExponentialSum(
        largest.operation,
        subtracted.operation,
        difference.operation,
        exponential.operation,
        op,
        dim,
    )


def _reduction(op: Op) -> tuple[str, list[int]] | None:
    """Kind and dimensions of a reduction."""
    if op.name != "ascend.reduce":
        return None
    return attribute(op, "kind"), list(attribute(op, "dims"))


@dataclass(frozen=True)
class Chip:
    """The machine that kernels are weighed for.

    Attributes:
        cores: that a kernel may have.
        joined: whether kernels that follow each other are phases of one launch.
        phases: of such a launch.
    """

    machine: Machine
    cores: int
    joined: bool
    phases: int = 1

    def of_phases(self, phases: int) -> Chip:
        """The chip on which a kernel is one of so many phases of a launch."""
        return replace(self, phases=phases)

    def cycles(self, *graphs: Graph, meets: bool = False) -> float | None:
        """Estimated cycles of kernels that follow each other, each on as many cores as pay, with
        their launches; or with their part of one, which is for the cores of all of its phases. None
        if none can hold one of the groups.

        Args:
            meets: whether cores of a kernel may meet.
        """
        joined = self.joined and self.phases > 1
        price = LaunchPrice(self.machine, self.phases if joined else 1)
        try:
            found = [
                cores_of(graph, self.machine, self.cores, price=price, meets=meets)
                for graph in graphs
            ]
        except NoSpace:
            return None
        most = max(each.cores for each in found)
        more = sum(price.cycles(most) - price.cycles(each.cores) for each in found)
        return sum(each.total for each in found) + (more if joined else 0.0)


class ExponentialParts:
    """The operators that a sum of exponentials is made of in parts, built in front of it.

    Args:
        found: the sum.
        count: parts of a row.
        lanes: numbers that a part leaves in place of one, side by side in memory: cores store them
            as whole blocks, and nothing is folded across lanes but what joins the parts.
    """

    def __init__(self, found: ExponentialSum, count: int, lanes: int) -> None:
        self._found = found
        dim, source = found.dim, tensor_of(found.rows.type)
        outside, behind = source.shape[:dim], source.shape[dim + 1 :]
        size = source.shape[dim] // (count * lanes)
        whole = size * count * lanes
        beside = (lanes,) if lanes > 1 else ()
        joined = (*outside, count * lanes, *behind)
        self._first, self._second = TensorOps(), TensorOps()
        with found.largest.location, ir.InsertionPoint(found.largest):
            ops = self._first
            shape = (*outside, count, size, *beside, *behind)
            self.rows = ops.reshape(cut(ops, found.rows, dim, 0, whole), shape)
            self._views = list(ops.built)
            partial = replace(source, shape=(*outside, count, *beside, *behind))
            kept = [i for i in range(len(shape)) if i != dim + 1]
            self._parts = ops.emit("reduce", [self.rows], partial, kind="max", dims=(dim + 1,))
            less = ops.binary(
                "sub", self.rows, ops.broadcast(finite(ops, self._parts), shape, kept)
            )
            self._sums = ops.reduce(ops.unary("exp", less), "add", [dim + 1])
        with found.largest.location, ir.InsertionPoint(found.largest):
            ops = self._second
            parts = begun(ops, self._parts, replace(source, shape=joined))
            result, most, rest = tensor_of(found.largest.results[0].type), parts, None
            if whole < source.shape[dim]:
                rest = last(ops, found.rows, dim, joined, source.shape[dim] - whole)
                most = ops.binary("max", parts, rest)
            self._largest = ops.emit("reduce", [most], result, kind="max", dims=(dim,))
        with found.total.location, ir.InsertionPoint(found.subtracted):
            narrow = found.subtracted.operands[0]
            number = ops.broadcast(narrow, joined, attribute(found.subtracted, "dims"))
            scale = ops.unary("exp", ops.binary("sub", parts, number))
            sums = begun(ops, self._sums, replace(source, shape=joined))
            scaled = ops.binary("mul", sums, scale)
            if rest is not None:
                more = ops.unary("exp", ops.binary("sub", rest, number))
                scaled = ops.binary("add", scaled, more)
            result = tensor_of(found.total.results[0].type)
            self._total = ops.emit("reduce", [scaled], result, kind="add", dims=(dim,))

    def cycles(self, chip: Chip) -> float | None:
        """Estimated cycles of what is done to the parts and of what joins them, with launches."""
        built = [op for op in self._first.built if op not in self._views]
        kernels = (
            (built, [self._parts, self._sums]),
            (self._second.built, [self._largest, self._total]),
        )
        return chip.cycles(*(graph_of(_computing(ops), values)[0] for ops, values in kernels))

    def take_place(self) -> None:
        """Replaces the reductions by those of the parts."""
        found = self._found
        found.largest.results[0].replace_all_uses_with(self._largest)
        found.total.results[0].replace_all_uses_with(self._total)
        for op in (found.total, found.exponential, found.difference, found.subtracted):
            if not readers_of(op.results[0]):
                op.erase()
        found.largest.erase()

    def erase(self) -> None:
        for op in reversed([*self._first.built, *self._second.built]):
            op.erase()


def cut(ops: TensorOps, rows: ir.Value, dim: int, start: int, limit: int) -> ir.Value:
    """The elements of rows from `start` to `limit` along a dimension."""
    starts, limits = [0] * tensor_of(rows.type).rank, list(tensor_of(rows.type).shape)
    starts[dim], limits[dim] = start, limit
    part: ir.Value = ops.cut(rows, starts, limits)
    return part


def last(ops: TensorOps, rows: ir.Value, dim: int, shape: tuple[int, ...], count: int) -> ir.Value:
    """As many last elements of rows as an array of a shape has along a dimension: the `count` last
    ones as they are, minus infinity for those in front of them."""
    length, width = tensor_of(rows.type).shape[dim], shape[dim]
    limits = np.where(np.arange(width) < width - count, -np.inf, np.inf).astype(np.float32)
    most = ops.broadcast(ops.array(limits, Tensor((width,), "f32")), shape, [dim])
    part: ir.Value = ops.binary("min", cut(ops, rows, dim, length - width, length), most)
    return part


def begun(ops: TensorOps, value: ir.Value, result: Tensor) -> ir.Value:
    """What parts left, where another kernel begins: in one with what joins them, a core would do
    all parts of a row."""
    here: ir.Value = ops.emit("reshape", [value], result, **{BEGINS: True})
    return here


def _computing(ops: Sequence[Op]) -> list[Op]:
    """Operators without numbers and constants."""
    return [op for op in ops if op.name not in ("ascend.full", "ascend.constant")]


def finite(ops: TensorOps, value: ir.Value) -> ir.Value:
    """Numbers, of infinite ones the nearest that is not."""
    found = tensor_of(value.type)
    for name, number in (("max", -LARGEST), ("min", LARGEST)):
        value = ops.binary(name, value, ops.full(found.shape, found.element, number))
    return value


def ways(source: Tensor, dim: int, rows: int, cores: int) -> Iterator[tuple[int, int]]:
    """Numbers of equal parts of a row with which all cores have work, each with the numbers that a
    part leaves: whole blocks of the innermost dimension. If there are none, numbers of parts that
    leave a rest of the row, which is less than each core's share."""
    size = source.shape[dim]
    least, most = max(2, -(-cores // rows)), max(2, WAVES * cores // rows)
    fit = [n for n in range(least, most + 1) if size % n == 0]
    inner = dim < len(source.shape) - 1
    for count in fit[:WAYS]:
        lanes = (n for n in LANES if not inner and size // count % n == 0)
        yield count, next(lanes, 1)
    if inner or any(size % (n * LANES[-1]) == 0 for n in fit):
        return
    for count in range(least, most + 1, least):
        for numbers in (LANES[0], LANES[-1]):
            if size // (count * numbers) > 1:
                yield count, numbers


def part_exponentials(op: Op, chip: Chip) -> ir.Value | None:
    """Parts a sum of exponentials and the maxima that it needs, where that takes less time than one
    kernel, whose cores meet; the parted rows if it did."""
    found = sum_at(op)
    if found is None:
        return None
    source, result = tensor_of(found.rows.type), tensor_of(op.results[0].type)
    middle = [*found.between(), found.subtracted, found.difference, found.exponential]
    last = [reader for reader in found.readers() if reader not in middle]
    returned = not all(reader.results for reader in last)
    if returned or 0 in source.shape or result.count >= chip.cores:
        return None
    if any(map(_feeds_product, last)):
        return None
    whole = weighed([found.largest, *middle, op, *last], chip, meets=True)
    # What is done to parts, what joins them, and what needs the sum.
    chip = chip.of_phases(3 if last else 2)
    behind: float | None = 0.0
    if last:
        own = [found.subtracted, found.difference, found.exponential, *last]
        behind = weighed(own, chip, without=op)
    if whole is None or behind is None:
        return None
    best, least = None, whole * PAYS
    for count, lanes in ways(source, found.dim, result.count, chip.cores):
        parts = ExponentialParts(found, count, lanes)
        cycles = parts.cycles(chip)
        if cycles is None or cycles + behind >= least:
            parts.erase()
            continue
        if best is not None:
            best.erase()
        best, least = parts, cycles + behind
    if best is None:
        return None
    best.take_place()
    rows: ir.Value = best.rows
    return rows


def _feeds_product(op: Op) -> bool:
    """Whether a product reads the exponentials: what is between products may be one kernel with
    them, see `attention`."""
    if op.name in ON_CUBE:
        return True
    through = op.name in CARRIED or is_elementwise(op)
    return through and any(map(_feeds_product, users_of(op)))


def weighed(
    ops: Sequence[Op], chip: Chip, without: Op | None = None, meets: bool = False
) -> float | None:
    """Estimated cycles of one kernel with its launch, None if none can hold these operators.

    Args:
        without: a reader of what they make that will be gone.
        meets: as of `Chip.cycles`.
    """
    members = {*ops, without}
    outputs = [
        op.results[0]
        for op in ops
        if not members.issuperset(readers_of(op.results[0])) or op == ops[-1]
    ]
    return chip.cycles(graph_of(_computing(ops), outputs)[0], meets=meets)
