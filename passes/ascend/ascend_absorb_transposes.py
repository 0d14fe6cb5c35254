"""ascend-absorb-transposes: products take transposed operands as they are.

before:
    %s = "ascend.reshape"(%k) : (tensor<1x128x768xf16>) -> tensor<1x128x12x64xf16>
    %t = "ascend.transpose"(%s) {permutation = array<i64: 0, 2, 3, 1>}
        : (tensor<1x128x12x64xf16>) -> tensor<1x12x64x128xf16>
    %b = "ascend.reshape"(%t) : (tensor<1x12x64x128xf16>) -> tensor<12x64x128xf16>
    %c = "ascend.batch_matmul"(%q, %b) : (..) -> tensor<12x128x128xf32>
after:
    %s = "ascend.reshape"(%k) : (tensor<1x128x768xf16>) -> tensor<128x12x64xf16>
    %t = "ascend.transpose"(%s) {permutation = array<i64: 1, 0, 2>}
        : (tensor<128x12x64xf16>) -> tensor<12x128x64xf16>
    %c = "ascend.batch_matmul"(%q, %t) {transpose_b} : (..) -> tensor<12x128x128xf32>

Where elements that lie side by side are rows of an operand, rows and columns are exchanged, so that
less has to be moved, often nothing. Transposes of constants are left to `ascend-fold-constants`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from davinci.dialects.ascend_types import tensor_of
from davinci.mlir import ir
from davinci.operators.products import TRANSPOSE_A, TRANSPOSE_B
from davinci.passes.ascend.ascend_fold_constants import mark_foldable
from davinci.passes.ascend.rearrangement import rearrangement, traces
from davinci.passes.ascend.tensor_ops import (
    PRODUCTS,
    TensorOps,
    definition,
    erase_unused,
    tensor_functions,
)
from davinci.passes.pipeline.base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class AscendAbsorbTransposesPass(Pass):
    """Give products transposed operands as they are."""

    NAME = "ascend-absorb-transposes"

    def run(self, op: Any) -> None:
        for function in tensor_functions(op):
            block = function.regions[0].blocks[0]
            foldable = mark_foldable(block)
            for operation in list(block.operations):
                product = operation.operation
                if product.name in PRODUCTS:
                    for number, flag in enumerate((TRANSPOSE_A, TRANSPOSE_B)):
                        operand = product.operands[number]
                        if operand not in foldable and definition(operand) is None:
                            absorb(product, number, flag)
            erase_unused(block)


def absorb(product: Any, number: int, flag: str) -> None:
    """Exchanges rows and columns of an operand whose rows are neighbours where it comes from."""
    operand = product.operands[number]
    source, (*batch, rows, columns) = traces(operand)[-1]
    if source == operand or not rows or rows[-1].stride != 1:
        return
    *outer, m, n = tensor_of(operand.type).shape
    with product.location, ir.InsertionPoint(product):
        made = rearrangement([*batch, columns, rows]).emit(source, [*outer, n, m], TensorOps())
        product.operands[number] = made
        if flag in product.attributes:
            del product.attributes[flag]
        else:
            product.attributes[flag] = ir.UnitAttr.get()
