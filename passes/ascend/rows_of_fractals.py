"""Rows that are repeated over fractals whose last columns are padding lie in fractals themselves.

before:
    %s = "ascend.broadcast"(%row) {dims = array<i64: 2>} : (tensor<104xf32>)
        -> tensor<1x784x104xf32, #ascend.layout<"nz">>
after:
    %0 = "ascend.reshape"(%row) : (tensor<104xf32>) -> tensor<1x1x104xf32>
    %1 = "ascend.relayout"(%0) : .. -> tensor<1x1x104xf32, #ascend.layout<"nz">>
    %s = "ascend.broadcast"(%1) {dims = array<i64: 0, 1, 2>} : ..

Kernels compute whole fractals, and the row in front of the last one ends before it does; in
fractals zeros are behind it. Rows that are constants are laid out at compile time. So it is done
with rows that groups of a convolution meet, of which each computes whole fractals
(`schedule.followers`), and with those that operators meet which leave padding zero
(`schedule.vector.space`). What products of one matrix take in are rows as they are.
"""

from __future__ import annotations

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.mlir import Op, ir, owner_of
from davinci.operators.tensors import ND, NZ, Tensor
from davinci.passes import builder
from davinci.passes.ascend.layout_support import keeps_zero, spreads_row
from davinci.passes.ascend.tensor_ops import (
    CONVOLUTION,
    TensorOps,
    constant_array,
    definition,
    is_elementwise,
    users_of,
)
from davinci.units import FRACTAL_SIDE

SAMPLES = (0.0, 1.0, -2.5)
"""Numbers of a row by which an operator is tried that reads it beside rows of padding: with each of
them it must make zeros of zeros. Where rows end with fractals, only columns are padding, where the
row has zeros, too."""


def rows_beside_groups(block: ir.Block) -> None:
    """Lays rows in fractals that only what follows convolutions of several groups reads."""
    behind: set[ir.Value] = set()
    for operation in block.operations:
        op = operation.operation
        groups = tensor_of(op.operands[1].type).shape[0] if op.name == CONVOLUTION else 1
        if groups > 1 or (is_elementwise(op) and behind.intersection(op.operands)):
            behind.add(op.results[0])
    for row in rows_with_padding(block):
        if all(user.results[0] in behind for user in users_of(row)):
            lay_in_fractals(row)


def rows_beside_zeros(block: ir.Block) -> None:
    """Lays rows in fractals that only operators read which make zeros of the zeros in the padding
    of what else they read, in that of rows whatever they are."""
    for op in rows_with_padding(block):
        result = op.results[0]
        whole = tensor_of(result.type).shape[-2] % FRACTAL_SIDE == 0
        if all(
            is_elementwise(user) and keeps_zero(user, {result: number})
            for user in users_of(op)
            for number in ((0.0,) if whole else SAMPLES)
        ):
            lay_in_fractals(op)


def rows_with_padding(block: ir.Block) -> list[Op]:
    """Broadcasts of rows over fractals whose last columns are padding, that somebody reads."""
    return [op for operation in block.operations if is_padded_row(op := operation.operation)]


def is_padded_row(op: Op) -> bool:
    """Whether an operation repeats a row over fractals whose last columns are padding, for some
    reader."""
    if op.name != "ascend.broadcast" or not users_of(op) or not spreads_row(op):
        return False
    row, result = tensor_of(op.operands[0].type), tensor_of(op.results[0].type)
    return row.layout == ND and result.layout == NZ and result.shape[-1] % FRACTAL_SIDE > 0


def lay_in_fractals(op: Op) -> None:
    """Has a broadcast read its row in fractals."""
    row, result = op.operands[0], tensor_of(op.results[0].type)
    held = dict(zip(attribute(op, "dims"), tensor_of(row.type).shape, strict=True))
    shape = [held.get(dim, 1) for dim in range(result.rank)]
    with op.location, ir.InsertionPoint(op):
        ops = TensorOps()
        if definition(row) is not None:
            array = constant_array(owner_of(row)).reshape(shape)
            laid = ops.array(array, Tensor(tuple(shape), result.element, NZ))
        else:
            laid = ops.relayout(ops.reshape(row, shape), NZ)
        dims = builder.as_attribute(list(range(result.rank)))
        made = builder.op("ascend.broadcast", [laid], [op.results[0].type], dims=dims)
    op.results[0].replace_all_uses_with(made.result)
    op.erase()
