"""Whole rows of matrices between GM and UB, as the runs that they are in GM.

A run begins at a multiple of 16 rows, so it is whole blocks unless it ends with its matrix. Then it
ends with the array, whose last block is padded, or, if there are several matrices or theirs begins
inside a block, its last block, which is no whole one, goes element by element.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from davinci.dialects.cce import build as cce
from davinci.isa.core import DTYPES
from davinci.mlir import arith, ir, memref
from davinci.passes.ascend_to_cce.vector.program import element_type
from davinci.passes.ascend_to_cce.vector.row_statistics import build_steps
from davinci.passes.builder import (
    IndexLike,
    add,
    alloc,
    as_value,
    for_loop,
    mul,
    restride,
    subview,
    viewed,
)
from davinci.schedule.vector.steps import BufferSteps
from davinci.units import BLOCK_BYTES


def fill_zeros(buffer: ir.Value) -> None:
    element = ir.MemRefType(buffer.type).element_type
    zero = 0.0 if isinstance(element, ir.FloatType) else 0
    cce.vector_dup(arith.ConstantOp(element, zero).result, buffer)


@dataclass(frozen=True)
class DenseRun:
    """`rows` rows of a matrix in GM, [batch][rows][columns], from (batch, row) on."""

    gm: ir.Value
    batch: IndexLike
    row: IndexLike
    rows: int

    @property
    def count(self) -> int:
        """Elements."""
        return self.rows * int(ir.MemRefType(self.gm.type).shape[2])

    @property
    def whole(self) -> int:
        """How many of the run's elements one copy moves, with or without padding."""
        kind = ir.MemRefType(self.gm.type)
        block = BLOCK_BYTES * 8 // int(kind.element_type.width)
        padded = kind.shape[0] == 1 and kind.get_strides_and_offset()[1] % block == 0
        return self.count if padded else self.count // block * block

    def array(self) -> tuple[ir.Value, IndexLike]:
        """The array in GM as one line of elements, and the index at which the run begins in it."""
        kind = ir.MemRefType(self.gm.type)
        shape, (_, offset) = kind.shape, kind.get_strides_and_offset()
        first = mul(add(mul(self.batch, shape[1]), self.row), shape[2])
        return restride(self.gm, [math.prod(shape)], [1], offset), first


def load_run(run: DenseRun, held: ir.Value) -> None:
    """GM to the first elements of `held`, [elements] in UB, all of which is written."""
    array, first = run.array()
    (size,) = ir.MemRefType(held.type).shape
    block = BLOCK_BYTES * 8 // int(ir.MemRefType(held.type).element_type.width)
    written = -(-run.whole // block) * block
    if written < size:
        fill_zeros(restride(held, [size - written], [1], written))
    if run.whole:
        source = subview(array, [first], [run.whole])
        cce.copy(source, subview(held, [0], [run.whole]), round_up=run.whole % block != 0)
    if run.whole < run.count:
        with for_loop(run.whole, run.count) as i:
            value = memref.LoadOp(array, [as_value(add(first, i))]).result
            memref.StoreOp(value, held, [i])


def store_run(held: ir.Value, run: DenseRun) -> None:
    """The first elements of `held` to GM."""
    array, first = run.array()
    block = BLOCK_BYTES * 8 // int(ir.MemRefType(held.type).element_type.width)
    if run.whole:
        place = subview(array, [first], [run.whole])
        cce.copy(subview(held, [0], [run.whole]), place, round_up=run.whole % block != 0)
    if run.whole < run.count:
        with for_loop(run.whole, run.count) as i:
            memref.StoreOp(memref.LoadOp(held, [i]).result, array, [as_value(add(first, i))])


def scratch_of(sizes: Mapping[str, int]) -> dict[str, ir.Value]:
    """Buffers in UB of so many bytes, by name."""
    byte = ir.IntegerType.get_signless(8)
    return {name: alloc([size], byte, "UB") for name, size in sizes.items()}


def has_room(work: BufferSteps, scratch: Mapping[str, ir.Value]) -> bool:
    """Whether there are scratch buffers that are large enough for steps of `dense_rows`."""
    size = DTYPES[work.dtype].itemsize
    return all(
        name in scratch and ir.MemRefType(scratch[name].type).shape[0] >= count * size
        for name, count in work.scratch.items()
    )


def build_dense(
    work: BufferSteps, buffers: Mapping[str, ir.Value], scratch: Mapping[str, ir.Value]
) -> None:
    """Builds steps of `dense_rows`; those of `scratch` are bytes."""
    element = element_type(work.dtype)
    held = {name: viewed(scratch[name], [count], element) for name, count in work.scratch.items()}
    build_steps(work, held | dict(buffers))
