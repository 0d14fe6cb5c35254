"""Builds the two programs of a product whose first rows are computed in whole rounds of all cores,
and the others with k split between them.

    cube cores      the first rows of C     partial products of the other rows
    vector cores    what follows those      a meeting, and the sums
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from davinci.machine import within_l2
from davinci.mlir import Op, ir
from davinci.passes.ascend_to_cce import LaunchBlocks, Target
from davinci.passes.ascend_to_cce.exchange import mark_meeting
from davinci.passes.ascend_to_cce.products.behind import FollowedPart
from davinci.passes.ascend_to_cce.products.group import build_product
from davinci.passes.ascend_to_cce.products.paired import GmBuffers, PairedPart, build_paired
from davinci.passes.ascend_to_cce.products.product import wanted
from davinci.passes.ascend_to_cce.products.split_k import BuildPart, SplitPart
from davinci.passes.ascend_to_cce.tiles import first_blocks
from davinci.passes.builder import subview
from davinci.schedule.products.choice import choose
from davinci.schedule.products.estimate import shares_of
from davinci.schedule.products.product import ProductSchedule
from davinci.schedule.products.rows import RowAxes
from davinci.schedule.products.stream_k import GroupOfRows, StreamKProduct


def build_stream_k(
    stream: StreamKProduct, gm: GmBuffers, kernel: Op, target: Target, build_part: BuildPart
) -> int:
    """Builds the kernel; returns how many blocks share it.

    Args:
        gm: buffers of the group's inputs and outputs, by number.

    Raises:
        NoSpace: vector cores have no room for a row of what follows.
    """
    target = replace(target, cores=stream.cores)
    part = StreamKPart(stream, target, build_part)
    mark_meeting(build_paired([part], gm, kernel, stream.cores), target)
    return stream.cores


class StreamKPart(PairedPart):
    """The first rows of a product, and the others behind them."""

    def __init__(self, stream: StreamKProduct, target: Target, build_part: BuildPart) -> None:
        self.stream, first, others = stream, stream.first, stream.others
        self.first: PairedPart
        if first.group.behind is not None:
            schedule = schedule_of(first, target)
            self.first = FollowedPart(first.group, first.graph, target, schedule, apart=True)
        else:
            self.first = WholeRounds(first, target)
        own = target
        if stream.in_l2:
            own = replace(target, machine=within_l2(target.machine))
        self.split = SplitPart(
            stream.split, others.group, others.graph, own, build_part, apart=True
        )
        self.kinds = [*self.first.kinds, *self.split.kinds]

    def cube(self, gm: GmBuffers, handed: Sequence[ir.Value]) -> None:
        of_first, of_split = self._parted(handed)
        self.first.cube(self._rows(gm, self.stream.first), of_first)
        self.split.cube(self._rows(gm, self.stream.others), of_split)

    def vector(self, gm: GmBuffers, handed: Sequence[ir.Value]) -> None:
        of_first, of_split = self._parted(handed)
        self.first.vector(self._rows(gm, self.stream.first), of_first)
        self.split.vector(self._rows(gm, self.stream.others), of_split)

    def _parted(self, handed: Sequence[ir.Value]) -> tuple[Sequence[ir.Value], Sequence[ir.Value]]:
        """The arrays of the first rows, and those of the others."""
        count = len(self.first.kinds)
        return handed[:count], handed[count:]

    def _rows(self, gm: GmBuffers, rows: GroupOfRows) -> dict[int, ir.Value]:
        axes = self.stream.axes
        return {number: rows_of(array, number, axes, rows) for number, array in gm.items()}


def rows_of(array: ir.Value, number: int, axes: RowAxes, rows: GroupOfRows) -> ir.Value:
    """What the group of some rows has of a buffer of the whole group.

    Args:
        number: of the value.
        axes: see `row_axes`.
    """
    if number not in axes:
        return array
    shape = list(ir.MemRefType(array.type).shape)
    place = [0] * len(shape)
    place[axes[number]], shape[axes[number]] = rows.start, rows.stop - rows.start
    found: ir.Value = subview(array, place, shape)
    return found


class WholeRounds(PairedPart):
    """The first rows as a product of the cube cores alone."""

    kinds = ()

    def __init__(self, rows: GroupOfRows, target: Target) -> None:
        self.rows, self.target = rows, target

    def cube(self, gm: GmBuffers, handed: Sequence[ir.Value]) -> None:
        target, group = self.target, self.rows.group
        schedule = schedule_of(self.rows, target)
        count = min(target.cores, shares_of(group.product, schedule))
        with first_blocks(count, target.most_blocks(target.cores)) as index:
            own = replace(target, cores=count, blocks=LaunchBlocks(index, count))
            build_product(group, self.rows.graph, gm, own, schedule, {}, apart=True)

    def vector(self, gm: GmBuffers, handed: Sequence[ir.Value]) -> None:
        """Nothing: vector cores go on to what they add up."""


def schedule_of(rows: GroupOfRows, target: Target) -> ProductSchedule:
    """The schedule of a product of some rows on all cores.

    Raises:
        CompileError: none fits.
    """
    return choose(rows.group.product, target.machine, target.cores, wanted(target))
