"""Builds the kernel of a product whose factors are laid out in fractals first.

    blocks of factors in rows to fractals in global memory       shared by the cores
    all cores meet                                               cce.sync_cores
    the product of the factors as they are then                  shared by the cores

The kernel has further arguments: counters, and each factor that is laid out.

Where vector cores stand beside cube cores, they lay B out, meet, and tell the cube cores:

    the product of the first rows of A and of B as it is         shared by the cube cores
    a wait for the vector cores                                  cce.wait_core_flag
    the product of all other rows and of B as it is then         shared by the cube cores
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from davinci.dialects.cce import build as cce
from davinci.mlir import Op, ir
from davinci.passes.ascend_to_cce import LaunchBlocks, Target
from davinci.passes.ascend_to_cce.exchange import LANES, add_arguments, mark_meeting, meet_once
from davinci.passes.ascend_to_cce.products.dense_runs import scratch_of
from davinci.passes.ascend_to_cce.products.group import build_product, extras_of, matrices_in
from davinci.passes.ascend_to_cce.products.kernel import ProductArrays, ProductKernel
from davinci.passes.ascend_to_cce.products.paired import GmBuffers, PairedPart, build_paired
from davinci.passes.ascend_to_cce.products.product import wanted
from davinci.passes.ascend_to_cce.products.rows import MatrixRows, RowRing, RowsToFractals
from davinci.passes.ascend_to_cce.serving import serving
from davinci.passes.ascend_to_cce.tiles import (
    AlikeWork,
    TileSegment,
    first_blocks,
    only_blocks,
    segments,
    share_blocks,
    unflatten,
    with_slots,
)
from davinci.passes.builder import IndexLike, add, as_value, mul, subview
from davinci.schedule.graph import Graph
from davinci.schedule.products.choice import choose
from davinci.schedule.products.estimate import shares_of
from davinci.schedule.products.footprint import staging_bytes
from davinci.schedule.products.group import ProductGroup
from davinci.schedule.products.laid_out import (
    SLOTS,
    FactorLayout,
    LaidOutProduct,
    layout_scratch,
    matrices_of,
    pieces_of,
    staged_in_ub,
    stored_fractals,
)
from davinci.schedule.products.product import Product
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div

LAID_OUT = 1
"""The flag by which vector cores tell their cube core that B is laid out."""


def build_laid_out(
    laid_out: LaidOutProduct,
    group: ProductGroup,
    graph: Graph,
    gm: Mapping[int, ir.Value],
    kernel: Op,
    target: Target,
) -> int:
    """Builds the kernel; returns how many blocks share it.

    Args:
        gm: buffers of the group's inputs and outputs, by number.
    """
    machine, cores, product = target.machine, laid_out.cores, group.product
    i32, f16 = ir.IntegerType.get_signless(32), ir.F16Type.get()
    kinds = [ir.MemRefType.get([cores, LANES], i32)]
    for layout in laid_out.layouts:
        rows, columns = stored_fractals(product, layout.factor)
        shape = [matrices_of(product, layout.factor), columns, rows, SIDE, SIDE]
        kinds.append(ir.MemRefType.get(shape, f16))
    lines, *arrays = add_arguments(kernel, kinds)
    own, factors = replace(target, cores=cores), {}
    for layout, array in zip(laid_out.layouts, arrays, strict=True):
        place = "ab".index(layout.factor)
        number = group.factors[place]
        rows_of = matrices_in(gm, graph, number, matrices_of(product, layout.factor))
        with serving(*group.members[1 + place]):
            FactorBuilder(product, layout, rows_of, array).build(own)
        factors[layout.factor] = array
    meet_once(lines)
    schedule = choose(laid_out.product, machine, cores, wanted(target))
    count = min(cores, shares_of(laid_out.product, schedule))
    with only_blocks(0, count) as (_, index):
        own = replace(target, cores=count, blocks=LaunchBlocks(index, count))
        behind = replace(group, product=laid_out.product)
        build_product(behind, graph, gm, own, schedule, factors)
    return cores


def build_beside(
    laid_out: LaidOutProduct,
    group: ProductGroup,
    graph: Graph,
    gm: Mapping[int, ir.Value],
    kernel: Op,
    target: Target,
) -> int:
    """Builds the kernel of a product whose B vector cores lay out, and their program; returns how
    many blocks share it.

    Args:
        gm: as of `build_laid_out`.
    """
    other = build_paired([LaidOutPart(laid_out, group, graph, target)], gm, kernel, laid_out.cores)
    mark_meeting(other, target)
    return laid_out.cores


class LaidOutPart(PairedPart):
    """A product whose B vector cores lay out before cube cores multiply by it, or while these
    multiply their first rows."""

    def __init__(
        self, laid_out: LaidOutProduct, group: ProductGroup, graph: Graph, target: Target
    ) -> None:
        self.laid_out, self.group, self.graph, self.target = laid_out, group, graph, target
        (self.layout,) = laid_out.layouts
        self.product = staged_in_ub(group.product)
        rows, columns = stored_fractals(self.product, self.layout.factor)
        i32, f16 = ir.IntegerType.get_signless(32), ir.F16Type.get()
        self.kinds = [
            ir.MemRefType.get([laid_out.layers, LANES], i32),
            ir.MemRefType.get([1, columns, rows, SIDE, SIDE], f16),
        ]

    def cube(self, gm: GmBuffers, handed: Sequence[ir.Value]) -> None:
        _, made = handed
        group, target, cores = self.group, self.target, self.laid_out.cores
        a, b = (matrices_in(gm, self.graph, number, 1) for number in group.factors)
        c = matrices_in(gm, self.graph, group.outputs[0], 1)
        extras = extras_of(group, self.graph, gm)
        product, first = self.laid_out.product, self.laid_out.first
        parts: list[tuple[Product, ir.Value, int]] = [(product, made, 0)]
        if first is not None:
            parts = [(first, b, 0), (product, made, first.m)]
        for part, factor, start in parts:
            if part is product:
                cce.wait_core_flag(flag=LAID_OUT)
            schedule = choose(part, target.machine, cores, wanted(target))
            count = min(cores, shares_of(part, schedule))
            with first_blocks(count, target.most_blocks(cores)) as index:
                arrays = ProductArrays(
                    rows_in(a, int(part.a.k_rows), start, part.m),
                    factor,
                    [rows_in(c, 0, start, part.m)],
                    extras,
                )
                own = replace(target, cores=count, blocks=LaunchBlocks(index, count))
                multiplies = ProductKernel(part, schedule, arrays, group.members)
                multiplies.keep_apart()
                share_blocks(multiplies.parts(), own)

    def vector(self, gm: GmBuffers, handed: Sequence[ir.Value]) -> None:
        lines, made = handed
        layers, adders = self.laid_out.layers, self.target.adders
        assert adders is not None, "cores that are not apart"
        each = layers // self.laid_out.cores
        number = as_value(add(mul(cce.get_block_idx(), each), cce.get_sub_block_idx()))
        own = replace(self.target, machine=adders, cores=layers)
        rows_of_b = matrices_in(gm, self.graph, self.group.factors[1], 1)
        with first_blocks(layers, own.most_blocks(layers), number) as index:
            shared = replace(own, blocks=LaunchBlocks(index, layers))
            with serving(*self.group.members[2]):
                FactorBuilder(self.product, self.layout, rows_of_b, made).build(shared)
        meet_once(lines)
        cce.set_core_flag(pipe="MTE3", flag=LAID_OUT)


def rows_in(array: ir.Value, axis: int, start: int, rows: int) -> ir.Value:
    """Some rows of a matrix [1][..][..], along its first or second axis."""
    shape = list(ir.MemRefType(array.type).shape)
    place, shape[1 + axis] = [0, 0, 0], rows
    place[1 + axis] = start
    found: ir.Value = subview(array, place, shape)
    return found


class FactorBuilder:
    """Builds blocks of a factor on their way from rows to fractals.

    Args:
        gm: [matrices][rows][columns].
        made: [matrices][columns / 16][rows / 16][16][16].
    """

    def __init__(
        self, product: Product, layout: FactorLayout, gm: ir.Value, made: ir.Value
    ) -> None:
        self.layout, self.gm, self.made = layout, gm, made
        self.matrices = matrices_of(product, layout.factor)
        self.shape = product.stored_rows(layout.factor), product.stored_columns(layout.factor)
        pieces = pieces_of(product, layout.factor, layout.rows, layout.columns, layout.dense)
        self.sizes = staging_bytes(product.operand(layout.factor), pieces)
        self.scratch = scratch_of(layout_scratch(product, layout.factor, pieces))

    def build(self, target: Target) -> None:
        """Builds all blocks, shared by the cores of the target."""
        tall, wide = self.layout.rows * SIDE, self.layout.columns * SIDE
        parts = [
            self._part(rows, columns)
            for rows in segments(self.shape[0], tall)
            for columns in segments(self.shape[1], wide)
        ]
        # All cores meet behind them, so a single block is not all of the kernel.
        several = sum(part.count for part in parts) > 1
        share_blocks(parts, target, alone=several, unroll=2 * SLOTS)

    def _part(self, rows: TileSegment, columns: TileSegment) -> AlikeWork:
        """Blocks of one size."""
        counts = self.matrices, rows.count, columns.count
        last = rows.first + rows.count * rows.size == self.shape[0]

        def build(index: IndexLike) -> None:
            batch, i, j = unflatten(index, counts)
            row, column = rows.start(i), columns.start(j)
            piece = MatrixRows(batch, row, column, rows.size, columns.size, last)
            fractals = self._to_fractals().made_of(piece)
            size = [1, ceil_div(columns.size, SIDE), ceil_div(rows.size, SIDE), SIDE, SIDE]
            across, down = (
                add(segment.first // SIDE, mul(at, segment.size // SIDE))
                for segment, at in ((columns, j), (rows, i))
            )
            at = [batch, across, down, 0, 0]
            cce.copy(fractals, subview(self.made, at, size, drop=[0]))

        return AlikeWork(math.prod(counts), build)

    def _to_fractals(self) -> RowsToFractals:
        """Buffers of a block, of which there are several where blocks take turns."""
        inbox, made = (RowRing(1, size) for size in self.sizes)
        for ring in (inbox, made):
            with_slots(ring.buffers[0], SLOTS)
        parting = self.scratch if self.layout.dense else None
        return RowsToFractals(self.gm, inbox, made, parting=parting, ends=self.scratch)
