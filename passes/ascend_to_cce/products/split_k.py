"""Builds the kernel of a product whose k is split between cores.

    partial products of parts of k to global memory       shared by the cores
    all cores meet                                         cce.sync_cores
    their sum, and what follows the product               shared by the cores

The kernel has two more arguments: counters and the partial products. Where cube and vector cores
are apart, the former tell the latter, which meet and add, in a program of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from davinci.dialects.cce import build as cce
from davinci.mlir import Op, ir
from davinci.passes.ascend_to_cce import LaunchBlocks, Target
from davinci.passes.ascend_to_cce.exchange import LANES, add_arguments, mark_meeting, meet_once
from davinci.passes.ascend_to_cce.products.group import factor_in
from davinci.passes.ascend_to_cce.products.kernel import ProductArrays, ProductKernel
from davinci.passes.ascend_to_cce.products.paired import GmBuffers, PairedPart, build_paired
from davinci.passes.ascend_to_cce.products.product import wanted
from davinci.passes.ascend_to_cce.tiles import first_blocks, only_blocks, share_blocks
from davinci.passes.builder import add, as_value, mul, offset_of, restride
from davinci.schedule.graph import Graph
from davinci.schedule.group_plan import GroupPlan
from davinci.schedule.products.choice import choose
from davinci.schedule.products.estimate import shares_of
from davinci.schedule.products.group import ProductGroup
from davinci.schedule.products.product import Product, ProductOperand
from davinci.schedule.products.split_k import SplitProduct
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div, row_major

MADE = 1
"""The flag by which a cube core tells its vector cores that its partial products are there."""

BuildPart = Callable[[GroupPlan, list[ir.Value], Target], Any]
"""Builds what a plan says, of buffers of its graph's inputs and then of its outputs."""


def build_split(
    split: SplitProduct,
    group: ProductGroup,
    graph: Graph,
    gm: Mapping[int, ir.Value],
    kernel: Op,
    target: Target,
    build_part: BuildPart,
) -> int:
    """Builds the kernel; returns how many blocks share it.

    Args:
        gm: buffers of the group's inputs and outputs, by number.
    """
    if target.adders is not None:
        part = SplitPart(split, group, graph, target, build_part)
        mark_meeting(build_paired([part], gm, kernel, split.cores), target)
        return split.cores
    lines, partial = add_arguments(kernel, handed_of(split))
    build_partial(split, group, graph, gm, partial, target)
    meet_once(lines)
    build_sums(split, graph, gm, partial, target, build_part)
    return split.cores


def handed_of(split: SplitProduct) -> list[ir.MemRefType]:
    """The types of the counters of the cores that add, and of the partial products."""
    return [
        ir.MemRefType.get([split.adders, LANES], ir.IntegerType.get_signless(32)),
        ir.MemRefType.get(split.partial_shape, ir.Type.parse(split.element)),
    ]


class SplitPart(PairedPart):
    """A product whose k is split, on cube cores that have vector cores beside them.

    Args:
        apart: whether other parts of the kernel multiply as well, see `ProductKernel.keep_apart`.
    """

    def __init__(
        self,
        split: SplitProduct,
        group: ProductGroup,
        graph: Graph,
        target: Target,
        build_part: BuildPart,
        apart: bool = False,
    ) -> None:
        self.split, self.group, self.graph, self.target = split, group, graph, target
        self.build_part, self.apart = build_part, apart
        self.kinds = handed_of(split)

    def cube(self, gm: GmBuffers, handed: Sequence[ir.Value]) -> None:
        _, partial = handed
        build_partial(self.split, self.group, self.graph, gm, partial, self.target, self.apart)
        cce.set_core_flag(pipe="FIX", flag=MADE)

    def vector(self, gm: GmBuffers, handed: Sequence[ir.Value]) -> None:
        lines, partial = handed
        split, adders = self.split, self.target.adders
        assert adders is not None, "cores that are not apart"
        cce.wait_core_flag(flag=MADE)
        meet_once(lines)
        own = replace(self.target, machine=adders)
        lanes = split.adders // split.cores
        number = as_value(add(mul(cce.get_block_idx(), lanes), cce.get_sub_block_idx()))
        build_sums(split, self.graph, gm, partial, own, self.build_part, number)


def build_partial(
    split: SplitProduct,
    group: ProductGroup,
    graph: Graph,
    gm: Mapping[int, ir.Value],
    partial: ir.Value,
    target: Target,
    apart: bool = False,
) -> None:
    """Builds the partial products, shared by the cores.

    Args:
        partial: the array of all of them.
        apart: as of `SplitPart`.
    """
    machine, parts = target.machine, split.parts
    of_part = split.partial_shape[1:]
    if split.fractals:
        columns, rows, _ = of_part
        of_part = [columns, rows // SIDE, SIDE, SIDE]
    begin = taken = 0
    for each in split.products:
        product = each.product
        schedule = choose(product, machine, each.cores, wanted(target))
        a, b = (
            parts_of(factor_in(gm, graph, product, number, 1), operand, product, begin * parts.size)
            for number, operand in zip(group.factors, (product.a, product.b), strict=True)
        )
        # With all parts behind them: what ends inside a block is not stored over the next part.
        first = begin * math.prod(of_part)
        left = [parts.total - begin, *of_part]
        sums = restride(partial, left, row_major(left), first)
        count = min(each.cores, shares_of(product, schedule))
        with only_blocks(taken, count) as (_, index):
            own = replace(target, cores=count, blocks=LaunchBlocks(index, count))
            kernel_of = ProductKernel(
                product, schedule, ProductArrays(a, b, [sums], []), group.members
            )
            if apart:
                kernel_of.keep_apart()
            share_blocks(kernel_of.parts(), own)
        begin, taken = begin + product.batch, taken + count


def build_sums(
    split: SplitProduct,
    graph: Graph,
    gm: Mapping[int, ir.Value],
    partial: ir.Value,
    target: Target,
    build_part: BuildPart,
    block: ir.Value | None = None,
) -> None:
    """Builds the sum of the partial products and what follows it, shared by the cores that add.

    Args:
        block: the number of such a core, if they are not those that run the kernel.
    """
    part, plan = split.sums.part, split.sums.plan
    inputs, outputs = [partial, *(gm[n] for n in split.inputs)], [gm[n] for n in graph.outputs]
    buffers_of = [*(inputs[i] for i in part.inputs), *(outputs[i] for i in part.outputs)]
    count = plan.schedule.cores
    with first_blocks(count, target.most_blocks(split.adders), block) as index:
        build_part(
            plan, buffers_of, replace(target, cores=count, blocks=LaunchBlocks(index, count))
        )


def parts_of(matrix: ir.Value, operand: ProductOperand, product: Product, first: int) -> ir.Value:
    """A factor as a batch of parts of k, `first` elements of k on: [parts][rows][columns], in
    fractals [parts][columns / 16][rows / 16][16][16].

    Args:
        matrix: all of it, a batch of one.
        product: of the parts.
    """
    tall, wide = ir.MemRefType(matrix.type).shape[1:3]
    inner, unit, each = ([SIDE, SIDE], SIDE, SIDE**2) if operand.nz else ([], 1, 1)
    k, first = ceil_div(product.k, unit), first // unit
    # Rows of a stored matrix are its first dimension, of fractals its second.
    shape, step = ([k, wide], wide) if operand.k_rows != operand.nz else ([tall, k], 1)
    strides = [k * step * each, wide * each, each, *([SIDE, 1] if inner else [])]
    begin = offset_of(matrix) + first * step * each
    return restride(matrix, [product.batch, *shape, *inner], strides, begin)
