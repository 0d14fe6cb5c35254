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
less has to be moved, often nothing. What is done to each element in between (a scale, a rounding)
is done to the operand as it is. Transposes of constants are left to `ascend-fold-constants`.
Transposes of results are products of exchanged factors (`transposed_results`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import python_value
from davinci.mlir import Op, ir
from davinci.operators import OPERATORS
from davinci.operators.layouts import Factors, factors, steps
from davinci.operators.products import TRANSPOSE_A, TRANSPOSE_B
from davinci.operators.tensors import ND
from davinci.passes.analysis.rewrite_counts import note
from davinci.passes.ascend.ascend_fold_constants import mark_foldable
from davinci.passes.ascend.rearrangement import REARRANGED, rearrangement, traced
from davinci.passes.ascend.tensor_ops import (
    PRODUCTS,
    TensorOps,
    defining_op,
    depends_on_constants,
    erase_unused,
    full_value,
    is_f32,
    read_once,
    tensor_functions,
)
from davinci.passes.ascend.transposed_results import exchange_factors
from davinci.passes.pipeline.base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class AscendAbsorbTransposesPass(Pass):
    """Give products transposed operands as they are."""

    NAME = "ascend-absorb-transposes"

    def run(self, op: Op) -> None:
        count = 0
        for function in tensor_functions(op):
            block = function.regions[0].blocks[0]
            foldable = mark_foldable(block)
            for operation in list(block.operations):
                product = operation.operation
                if product.name in PRODUCTS and not is_f32(product.operands[0]):
                    for number, flag in enumerate((TRANSPOSE_A, TRANSPOSE_B)):
                        operand = product.operands[number]
                        if not depends_on_constants(operand, foldable):
                            count += absorb(product, number, flag)
            erase_unused(block)
            count += exchange_factors(block)
            erase_unused(block)
        note(op, "absorb-transposes", count)


def absorb(product: Op, number: int, flag: str) -> bool:
    """Exchanges rows and columns of an operand whose rows are neighbours where it comes from;
    whether they are."""
    operand = product.operands[number]
    source, (*batch, rows, columns), done = origin(operand)
    if source == operand or not rows or rows[-1].stride != 1:
        return False
    *outer, m, n = tensor_of(operand.type).shape
    with product.location, ir.InsertionPoint(product):
        ops = TensorOps()
        made = rearrangement([*batch, columns, rows]).emit(source, [*outer, n, m], ops)
        for op in reversed(done):
            made = repeated(op, made, ops)
        product.operands[number] = made
        if flag in product.attributes:
            del product.attributes[flag]
        else:
            product.attributes[flag] = ir.UnitAttr.get()
    return True


def origin(value: ir.Value) -> tuple[ir.Value, Factors, list[Op]]:
    """What `value` is a rearrangement of, where its elements lie in rows there, and operators that
    do something to each of them on the way, the last one first, if nobody else needs the results.
    """
    source, alone = value, True
    chain: list[Op] = []
    done: list[Op] = []
    rows = replace(tensor_of(value.type), layout=ND)
    found = [(value, factors(rows.shape, steps(rows)), 0)]
    while (op := defining_op(source)) is not None:
        alone = alone and read_once(source)
        if op.name in REARRANGED:
            chain.append(op)
            source = op.operands[0]
            lies = traced(source, reversed(chain))
            if lies is not None:
                found.append((source, lies, len(done)))
        elif alone and (array := only_array(op)) is not None:
            done.append(op)
            source = array
        else:
            break
    source, lies, count = found[-1]
    return source, lies, done[:count]


def only_array(op: Op) -> ir.Value | None:
    """The operand of an elementwise operator that is an array; None if not just one is."""
    record = OPERATORS.get(op.name.removeprefix("ascend."))
    arrays = [v for v in op.operands if full_value(v) is None]
    return arrays[0] if record and record.elementwise and len(arrays) == 1 else None


def repeated(op: Op, array: ir.Value, ops: TensorOps) -> ir.Value:
    """The same operator on another array."""
    shape = tensor_of(array.type).shape
    numbers = [(v, full_value(v)) for v in op.operands]
    operands = [
        array if number is None else ops.full(shape, tensor_of(v.type).element, number[()])
        for v, number in numbers
    ]
    attributes = {key: python_value(op.attributes[key]) for key in op.attributes}
    result = replace(tensor_of(op.results[0].type), shape=tuple(shape))
    with op.location:
        return ops.emit(op.name.removeprefix("ascend."), operands, result, **attributes)
