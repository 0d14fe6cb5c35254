"""Builds the kernel of a product whose k is split between cores.

    partial products of parts of k to global memory       shared by the cores
    all cores meet                                         cce.sync_cores
    their sum, and what follows the product               shared by the cores

The kernel has two more arguments: counters and the partial products.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from davinci.mlir import Op, ir
from davinci.operators import Tensor
from davinci.passes.ascend_to_cce import Blocks, Target
from davinci.passes.ascend_to_cce.exchange import LANES, add_arguments, meet_once
from davinci.passes.ascend_to_cce.products.kernel import Buffers, ProductKernel
from davinci.passes.ascend_to_cce.products.product import wanted
from davinci.passes.ascend_to_cce.tiles import first_blocks, only_blocks, share_blocks
from davinci.passes.builder import restride
from davinci.schedule.graph import Graph
from davinci.schedule.group_plan import GroupPlan
from davinci.schedule.products.choice import choose
from davinci.schedule.products.estimate import shares_of
from davinci.schedule.products.group import ProductGroup
from davinci.schedule.products.product import Operand, Product
from davinci.schedule.products.split_k import SplitProduct
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div, row_major

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
    machine, cores, parts = target.machine, split.cores, split.parts
    i32 = ir.IntegerType.get_signless(32)
    shape = split.partial_shape
    of_part = shape[1:]
    if split.fractals:
        columns, rows, _ = of_part
        of_part = [columns, rows // SIDE, SIDE, SIDE]
    kinds = [ir.MemRefType.get([cores, LANES], i32), ir.MemRefType.get(shape, ir.F32Type.get())]
    lines, partial = add_arguments(kernel, kinds)
    begin = taken = 0
    for each in split.products:
        product = each.product
        schedule = choose(product, machine, each.cores, wanted(target))
        a, b = (
            parts_of(gm[number], graph.arrays[number], operand, product, begin * parts.size)
            for number, operand in zip(group.factors, (product.a, product.b), strict=True)
        )
        # With all parts behind them: what ends inside a block is not stored over the next part.
        first = begin * math.prod(of_part)
        left = [parts.total - begin, *of_part]
        sums = restride(partial, left, row_major(left), first)
        count = min(each.cores, shares_of(product, schedule))
        with only_blocks(taken, count) as (_, index):
            own = replace(target, cores=count, blocks=Blocks(index, count))
            kernel_of = ProductKernel(product, schedule, Buffers(a, b, [sums], []), group.members)
            share_blocks(kernel_of.parts(), own)
        begin, taken = begin + product.batch, taken + count
    meet_once(lines)
    part, plan = split.sums.part, split.sums.plan
    inputs, outputs = [partial, *(gm[n] for n in split.inputs)], [gm[n] for n in graph.outputs]
    buffers_of = [*(inputs[i] for i in part.inputs), *(outputs[i] for i in part.outputs)]
    count = plan.schedule.cores
    with first_blocks(count, cores) as index:
        own = replace(target, cores=count, blocks=Blocks(index, count))
        build_part(plan, buffers_of, own)
    return cores


def parts_of(
    buffer: ir.Value, array: Tensor, operand: Operand, product: Product, first: int
) -> ir.Value:
    """A factor as a batch of parts of k, `first` elements of k on: [parts][rows][columns], in
    fractals [parts][columns / 16][rows / 16][16][16].

    Args:
        product: of the parts.
    """
    *_, tall, wide = array.stored_shape[:-2] if operand.nz else array.stored_shape
    inner, unit, each = ([SIDE, SIDE], SIDE, SIDE**2) if operand.nz else ([], 1, 1)
    k, first = ceil_div(product.k, unit), first // unit
    # Rows of a stored matrix are its first dimension, of fractals its second.
    shape, step = ([k, wide], wide) if operand.k_rows != operand.nz else ([tall, k], 1)
    strides = [k * step * each, wide * each, each, *([SIDE, 1] if inner else [])]
    return restride(buffer, [product.batch, *shape, *inner], strides, first * step * each)
