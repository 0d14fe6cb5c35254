"""Builds the kernel of a product whose k is split between cores.

    partial products of parts of k to global memory       shared by the cores
    all cores meet                                         cce.sync_cores
    their sum, and what follows the product               shared by the cores

The kernel has two more arguments: counters and the partial products.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from davinci.dialects.cce import build as cce
from davinci.mlir import arith, ir
from davinci.operators import Tensor
from davinci.operators.tensors import NZ
from davinci.passes.ascend_to_cce import Blocks, Target
from davinci.passes.ascend_to_cce.exchange import LANES, add_arguments
from davinci.passes.ascend_to_cce.products.kernel import Buffers, ProductKernel
from davinci.passes.ascend_to_cce.products.product import wanted
from davinci.passes.ascend_to_cce.tiles import only_blocks, share_blocks
from davinci.passes.builder import alloc, reshaped, restride
from davinci.schedule.graph import Graph
from davinci.schedule.group_plan import GroupPlan
from davinci.schedule.products.choice import choose
from davinci.schedule.products.estimate import shares_of
from davinci.schedule.products.group import ProductGroup
from davinci.schedule.products.product import Operand
from davinci.schedule.products.split_k import SplitProduct
from davinci.units import FRACTAL_SIDE as SIDE

BuildPart = Callable[[GroupPlan, list[Any], Target], Any]
"""Builds what a plan says, of buffers of its graph's inputs and then of its outputs."""


def build_split(
    split: SplitProduct,
    group: ProductGroup,
    graph: Graph,
    gm: Mapping[int, Any],
    kernel: ir.Operation,
    target: Target,
    build_part: BuildPart,
) -> int:
    """Builds the kernel; returns how many blocks share it.

    Args:
        gm: buffers of the group's inputs and outputs, by number.
    """
    machine, cores, product = target.machine, split.cores, split.product
    i32 = ir.IntegerType.get_signless(32)
    shape = [split.parts, product.m, product.n]
    kinds = [ir.MemRefType.get([cores, LANES], i32), ir.MemRefType.get(shape, ir.F32Type.get())]
    lines, partial = add_arguments(kernel, kinds)
    schedule = choose(product, machine, cores, wanted(target))
    factors = [
        parts_of(gm[number], graph.arrays[number], operand, split.parts)
        for number, operand in zip(group.factors, (product.a, product.b), strict=True)
    ]
    buffers = Buffers(factors[0], factors[1], [partial], [])
    count = min(cores, shares_of(product, schedule))
    with only_blocks(0, count) as (_, index):
        own = replace(target, cores=count, blocks=Blocks(index, count))
        share_blocks(ProductKernel(product, schedule, buffers, group.members).parts(), own)
    scratch = alloc([cores + 1, LANES], i32, "UB")
    begun = cce.read_counter(lines, scratch)  # while the last products are computed
    one = arith.ConstantOp(i32, ir.IntegerAttr.get(i32, 1)).result
    cce.sync_cores(lines, arith.AddIOp(begun, one).result, scratch)
    part, plan = split.sums.part, split.sums.plan
    inputs, outputs = [partial, *(gm[n] for n in split.inputs)], [gm[n] for n in graph.outputs]
    buffers_of = [*(inputs[i] for i in part.inputs), *(outputs[i] for i in part.outputs)]
    count = plan.schedule.cores
    with only_blocks(0, count) as (_, index):
        own = replace(target, cores=count, blocks=Blocks(index, count))
        build_part(plan, buffers_of, own)
    return cores


def parts_of(buffer: Any, array: Tensor, operand: Operand, parts: int) -> Any:
    """A factor as a batch of parts of k: [parts][rows][columns], in fractals [parts][columns / 16]
    [rows / 16][16][16]; rows, or columns of fractals, go on through all parts if they lie beside
    each other."""
    *_, tall, wide = array.stored_shape[:-2] if array.layout == NZ else array.stored_shape
    inner = [SIDE, SIDE] if array.layout == NZ else []
    each = SIDE**2 if inner else 1
    if not operand.beside:
        return reshaped(buffer, [parts, tall // parts, wide, *inner])
    own = wide // parts
    strides = [own * each, wide * each, each, *([SIDE, 1] if inner else [])]
    return restride(buffer, [parts, tall, own, *inner], strides)
