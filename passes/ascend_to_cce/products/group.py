"""Builds the kernel of a group around one product."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from davinci.mlir import Op, ir, memref
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.products.kernel import ProductArrays, ProductKernel
from davinci.passes.ascend_to_cce.products.product import wanted, write_zeros
from davinci.passes.ascend_to_cce.tiles import share_blocks
from davinci.passes.builder import reshaped, restride, viewed
from davinci.passes.programs import with_constants
from davinci.schedule.graph import Graph
from davinci.schedule.products.choice import choose
from davinci.schedule.products.dense_rows import WORD_BYTES
from davinci.schedule.products.group import ProductGroup
from davinci.schedule.products.legality import require_legal
from davinci.schedule.products.product import Product, ProductSchedule
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import row_major


def build_product_group(
    group: ProductGroup,
    graph: Graph,
    gm: dict[int, ir.Value],
    target: Target,
    given: ProductSchedule | None = None,
    diagonal: ir.Value | None = None,
) -> tuple[ProductSchedule | None, int]:
    """The schedule of a group, none of an empty product, and how many blocks can share its work.

    Args:
        gm: buffers of the group's inputs and outputs, by number.
        given: the schedule, if somebody has decided it.
        diagonal: see `ProductArrays`.

    Raises:
        CompileError: no schedule fits.
        NoSpace: the given one does not.
    """
    product = group.product
    if not (product.batch and product.m and product.k and product.n):
        return None, max(write_zeros(gm[number], target) for number in group.outputs)
    if given is not None:
        require_legal(product, given, target.machine)
    schedule = given or choose(product, target.machine, target.cores, wanted(target))
    return schedule, build_product(group, graph, gm, target, schedule, {}, diagonal)


def build_product(
    group: ProductGroup,
    graph: Graph,
    gm: Mapping[int, ir.Value],
    target: Target,
    schedule: ProductSchedule,
    factors: Mapping[str, ir.Value],
    diagonal: ir.Value | None = None,
    apart: bool = False,
) -> int:
    """Builds a product and what follows it; returns how many blocks can share its work.

    Args:
        gm: buffers of the group's inputs and outputs, by number.
        factors: of "a" and "b" those that do not lie in a buffer of the group, as batches.
        diagonal: see `ProductArrays`.
        apart: whether other products of the kernel follow, see `ProductKernel.keep_apart`.
    """
    product = group.product
    a = factors.get("a") or factor_in(gm, graph, product, group.factors[0], product.batch)
    batch = product.matrices or product.batch
    b = factors.get("b") or factor_in(gm, graph, product, group.factors[1], batch)
    if product.work is not None:
        extras = [gm[number] for number in group.extras]
        outputs = [gm[number] for number in group.outputs]
    else:
        outputs = [matrices_in(gm, graph, number, product.batch) for number in group.outputs]
        extras = extras_of(group, graph, gm)
    buffers = ProductArrays(a, b, outputs, extras, diagonal)
    kernel = ProductKernel(product, schedule, buffers, group.members)
    if apart:
        kernel.keep_apart()
    return share_blocks(kernel.parts(), target)


def diagonal_of(product: Product, kernel: Op) -> ir.Value | None:
    """A fractal of ones on a diagonal in GM, as a further argument of a kernel, if the cube adds a
    matrix on cores that cannot make one."""
    if not (product.direct and product.end.matrices):
        return None
    (made,) = with_constants(kernel, [np.eye(SIDE, dtype=np.float16)])
    return made


def extras_of(group: ProductGroup, graph: Graph, gm: Mapping[int, ir.Value]) -> list[ir.Value]:
    """The buffers of what a product is combined with: rows as [rows][columns of C], those that lie
    in fractals as [rows][fractals of columns of C][16].

    Args:
        gm: buffers of the group's inputs, by number.
    """
    product, extras = group.product, []
    for number, extra in zip(group.extras, product.end.extras, strict=True):
        if extra.digits or extra.words:
            extras.append(gm[number])
        elif extra.fractals:
            columns, *fractal = graph.arrays[number].stored_shape[-4:]
            each, apart = product.fractals.n, math.prod(fractal)
            shape, strides = [columns // each, each, SIDE], [each * apart, apart, 1]
            extras.append(restride(gm[number], shape, strides))
        elif extra.row:
            # Each image has its own, or each of the matrices of weights, which images share.
            rows = graph.arrays[number].count // product.n if extra.batch else 1
            extras.append(reshaped(gm[number], [rows, product.n]))
        else:
            extras.append(matrices_in(gm, graph, number, product.batch))
    return extras


def matrices_in(gm: Mapping[int, ir.Value], graph: Graph, number: int, batch: int) -> ir.Value:
    """The buffer of a value as a batch; in fractals groups of columns are matrices."""
    shape = graph.arrays[number].stored_shape
    tail = shape[-3:] if graph.arrays[number].layout else shape[-1:]
    first = math.prod(shape[: -len(tail)]) // batch
    made: ir.Value = reshaped(gm[number], [batch, first, *tail])
    apart = list(ir.MemRefType(gm[number].type).get_strides_and_offset()[0])
    assert made == gm[number] or apart == list(row_major(shape)), "images that lie apart"
    return made


def factor_in(
    gm: Mapping[int, ir.Value], graph: Graph, product: Product, number: int, batch: int
) -> ir.Value:
    """The buffer of A or B as a batch, in the words that it moves in, or f32."""
    if product.factor != "s8":
        return matrices_in(gm, graph, number, batch)
    shape = graph.arrays[number].stored_shape
    *tail, lanes = shape[-3:] if graph.arrays[number].layout else shape[-1:]
    first = math.prod(shape[: -len(tail) - 1]) // batch
    return reshaped(words_of(gm[number]), [batch, first, *tail, lanes // WORD_BYTES])


def words_of(array: ir.Value) -> ir.Value:
    """A buffer of bytes as one of words of 16 bits, two bytes each."""
    kind = ir.MemRefType(array.type)
    count = math.prod(kind.shape)
    flat = ir.MemRefType.get([count], kind.element_type)
    joined = memref.CollapseShapeOp(flat, array, [list(range(kind.rank))]).result
    return viewed(joined, [count // WORD_BYTES], ir.F16Type.get())
