"""Sums of products and constant rows: policy `fp16` rounds them once on machines with a bias table.

before:
    %p = "ascend.conv"(%x, %w) {..} : (..) -> tensor<1x64x32xf32>
    %s = "ascend.add"(%p, %row) : (..) -> tensor<1x64x32xf32>
kept in f32: both; what reads %s reads this:
    %h = "ascend.cast"(%s) : (tensor<1x64x32xf32>) -> tensor<1x64x32xf16>
    %f = "ascend.cast"(%h) : (tensor<1x64x32xf16>) -> tensor<1x64x32xf32>

The cube adds products in f32 anyway. Where its mads can begin with a row of f32 from a bias table,
sums are rounded once, on their way out of L0C; with f16 beside f16 there were three roundings, and
the addition was left to vector cores. Where the vector unit adds the row, f16 takes half as long.
"""

from __future__ import annotations

from davinci.mlir import Op, ir, owner_of
from davinci.passes.ascend.ascend_fold_constants import alike_rows
from davinci.passes.ascend.layout_support import spreads_row
from davinci.passes.ascend.tensor_ops import (
    HALF,
    ON_CUBE,
    TensorOps,
    defining_op,
    depends_on_constants,
    is_f32,
    read_once,
)


def begun_products(block: ir.Block, foldable: set[ir.Value]) -> set[ir.Value]:
    """Results that stay f32: of products to which a constant row is added, of what makes that row,
    and of the addition, whose readers get it rounded to f16 and widened again.

    Args:
        foldable: values that depend on constants only.
    """
    found = set[ir.Value]()
    for op in [operation.operation for operation in block.operations]:
        if op.name != "ascend.add" or not is_f32(op.results[0]):
            continue
        for product, row in (op.operands, list(op.operands)[::-1]):
            if _is_product(product) and _is_row(row, foldable):
                found |= {product, op.results[0], *_made_for(row)}
                _round_behind(op)
                break
    return found


def _is_product(value: ir.Value) -> bool:
    """Whether a value is a product that nothing but the addition reads."""
    owner = defining_op(value)
    return owner is not None and owner.name in ON_CUBE and read_once(value)


def _is_row(value: ir.Value, foldable: set[ir.Value]) -> bool:
    """Whether a value is one row, known at compile time, for all rows of a matrix: a constant of
    alike rows, or a broadcast of what follows from constants and results that can be computed now
    (`foldable`)."""
    owner = defining_op(value)
    if owner is None:
        return False
    if not spreads_row(owner):
        return alike_rows(owner) is not None
    return depends_on_constants(owner.operands[0], foldable)


def _made_for(value: ir.Value) -> list[ir.Value]:
    """A value that depends on constants only, and all that it comes from."""
    owner = owner_of(value)
    return [value, *(each for operand in owner.operands for each in _made_for(operand))]


def _round_behind(op: Op) -> None:
    """Gives the result of an operation to all its readers rounded to f16 and widened again."""
    with op.location, ir.InsertionPoint.after(op):
        ops = TensorOps()
        half = ops.cast(op.results[0], HALF)
        rounded = ops.cast(half, "f32")
    op.results[0].replace_all_uses_except(rounded, owner_of(half).operation)
