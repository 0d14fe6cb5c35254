"""Builds the kernel of a group around one product."""

from __future__ import annotations

from davinci.mlir import ir
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.product import wanted, write_zeros
from davinci.passes.ascend_to_cce.product_kernel import Buffers, ProductKernel
from davinci.passes.ascend_to_cce.tiles import share_blocks
from davinci.passes.builder import reshaped
from davinci.schedule.graph import Graph
from davinci.schedule.product import ProductSchedule
from davinci.schedule.product_choice import choose
from davinci.schedule.product_group import ProductGroup


def build_product_group(
    group: ProductGroup, graph: Graph, gm: dict[int, ir.Value], target: Target
) -> tuple[ProductSchedule | None, int]:
    """The schedule of a group, none of an empty product, and how many blocks can share its work.

    Args:
        gm: buffers of the group's inputs and outputs, by number.

    Raises:
        CompileError: no schedule fits.
    """
    product = group.product
    if not (product.batch and product.m and product.k and product.n):
        return None, max(write_zeros(gm[number], target) for number in group.outputs)
    schedule = choose(product, target.machine, target.cores, wanted(target))

    def matrices(number: int) -> ir.Value:
        shape = list(graph.arrays[number].stored_shape)
        kept = shape[-4:] if graph.arrays[number].layout else shape[-2:]
        made: ir.Value = reshaped(gm[number], [product.batch, *kept])
        return made

    extras = []
    for number, extra in zip(group.extras, product.end.extras, strict=True):
        if extra.row:
            batch = product.batch if extra.batch else 1
            extras.append(reshaped(gm[number], [batch, product.n]))
        else:
            extras.append(matrices(number))
    a, b = (matrices(number) for number in group.factors)
    buffers = Buffers(a, b, [matrices(number) for number in group.outputs], extras)
    kernel = ProductKernel(product, schedule, buffers)
    return schedule, share_blocks(kernel.parts(), target)
