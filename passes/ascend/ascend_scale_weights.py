"""ascend-scale-weights: what is done to all rows alike behind a product is done to its weights.

before:
    %0 = "ascend.conv"(%x, %w) {..} : (..) -> tensor<1x3136x64xf32>
    %1 = "ascend.add"(%0, %b) : (..)                          a batch normalisation:
    %2 = "ascend.mul"(%1, %s) : (..)                          one number for each channel
    %3 = "ascend.add"(%2, %t) : (..)
    %4 = "ascend.matmul"(%a, %v) : (tensor<64x32xf32>, tensor<32x512xf32>) -> ..
    %5 = "ascend.matmul"(%4, %u) : (tensor<64x512xf32>, tensor<512x32xf32>) -> ..
after:
    %0 = "ascend.conv"(%x, %w * %s) {..} : (..) -> tensor<1x3136x64xf32>
    %3 = "ascend.add"(%0, %b * %s + %t) : (..)
    %5 = "ascend.matmul"(%a, %v @ %u) : (tensor<64x32xf32>, tensor<32x32xf32>) -> ..

`scale-weights` gives factors of columns to constant weights, unless a column would leave the range
in which f16 has all its digits. `merge-linear-layers` makes one product of two with nothing but a
constant bias between them, where that needs no more multiplications: low ranks stay. Both change
how results are rounded, by no more than rounding weights to f16 does, and are left out with
`precision=fp32`; with fp16 weights each sum loses one rounding, that of the value in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.elements import Array
from davinci.mlir import Op, ir
from davinci.operators.products import TRANSPOSE_A, TRANSPOSE_B
from davinci.passes import builder
from davinci.passes.analysis.origins import fuse
from davinci.passes.analysis.rewrite_counts import note
from davinci.passes.ascend import rescale
from davinci.passes.ascend.ascend_fold_constants import mark_foldable, value_of
from davinci.passes.ascend.known_numbers import BROADCAST, RESHAPE
from davinci.passes.ascend.tensor_ops import (
    CONVOLUTION,
    ON_CUBE,
    TensorOps,
    defining_op,
    definition,
    erase_unused,
    is_f32,
    read_once,
    readers_of,
    tensor_functions,
)
from davinci.passes.pipeline.base import Pass, option, register_pass
from davinci.passes.pipeline.pipelines import PRECISIONS, REWRITES_HELP
from davinci.passes.pipeline.rewrites import chosen, expected
from davinci.stand_ins import has_stand_in, stand_in, stands_in

MATMUL = "ascend.matmul"

SUMS = ("ascend.add", "ascend.sub")


@register_pass
@dataclass(frozen=True)
class AscendScaleWeightsPass(Pass):
    """Give constant weights what is done to the columns of a product."""

    NAME = "ascend-scale-weights"

    precision: str = option("mixed", "fp32 leaves all as it is", PRECISIONS)
    rewrites: str = option("all", REWRITES_HELP, expected=expected)

    def run(self, op: Op) -> None:
        names, counts = chosen(self.rewrites), Counter[str]()
        if self.precision == "fp32":
            return
        for function in tensor_functions(op):
            block = function.regions[0].blocks[0]
            weights = Weights(block)
            for operation in list(block.operations):
                found = operation.operation
                if found.name == "ascend.mul" and "scale-weights" in names:
                    counts["scale-weights"] += weights.scale(found)
                elif found.name == MATMUL and "merge-linear-layers" in names:
                    counts["merge-linear-layers"] += weights.merge(found)
            erase_unused(block)
        for name, count in counts.items():
            note(op, name, count)


class Weights:
    """The constant weights of the products of a block."""

    def __init__(self, block: ir.Block) -> None:
        self._known = mark_foldable(block)

    def array(self, value: ir.Value) -> Array | None:
        """The elements of a value that is known at compile time, else None."""
        if value not in self._known and definition(value) is None:
            return None
        return value_of(value)

    def columns(self, value: ir.Value) -> Array | None:
        """One number for each column, of a known value whose rows are all alike; else None."""
        owner, count = defining_op(value), tensor_of(value.type).shape[-1]
        repeated = owner if owner is not None and owner.name == BROADCAST else None
        if repeated is not None and attribute(repeated, "dims") == [tensor_of(value.type).rank - 1]:
            found = self.array(repeated.operands[0])
            return None if found is None else np.broadcast_to(found, (count,))
        found = self.array(value)
        if found is None or not found.size or stands_in(found):
            return None
        rows = found.reshape(-1, count)
        return rows[0] if (rows == rows[0]).all() else None

    def product_of(self, value: ir.Value) -> ir.Operation | None:
        """The product of f32 with constant weights that makes a value, which nothing else needs."""
        op = defining_op(value)
        if op is None or op.name not in ON_CUBE or not read_once(value):
            return None
        known = op.operands[1] in self._known or definition(op.operands[1]) is not None
        return op.operation if known and is_f32(value) and is_f32(op.operands[1]) else None

    def scale(self, mul: Op) -> bool:
        """Gives a factor of columns to the weights behind which it stands, with or without a bias
        in between; whether it can."""
        for value, factors in (mul.operands, list(mul.operands)[::-1]):
            bias, name = None, "add"
            sum_ = defining_op(value)
            product = self.product_of(value)
            if product is None and sum_ is not None and sum_.name in SUMS and read_once(value):
                product, bias = self.product_of(sum_.operands[0]), sum_.operands[1]
                name = sum_.name.removeprefix("ascend.")
            scales = self.columns(factors) if product is not None else None
            offsets = self.columns(bias) if bias is not None and scales is not None else None
            if scales is None or (bias is not None and offsets is None):
                continue
            weights = self._scaled(product, scales) if product is not None else None
            if product is None or weights is None:
                continue
            with mul.location, ir.InsertionPoint(mul):
                ops = TensorOps()
                made = repeated(product, [product.operands[0], constant(weights, ops)])
                if offsets is not None:
                    made = ops.binary(name, made, row(offsets * scales, made, ops))
            fuse(made.owner, [product.location])
            mul.results[0].replace_all_uses_with(made)
            return True
        return False

    def _scaled(self, product: Op, scales: Array) -> Array | None:
        """The weights of a product times a number for each column; None if f16 has fewer digits
        for these."""
        weights = self.array(product.operands[1])
        if weights is None or stands_in(weights):
            return weights
        outputs = weights.ndim - (2 if TRANSPOSE_B in product.attributes else 1)
        if product.name == CONVOLUTION:
            groups, _, columns = weights.shape
            each = np.pad(scales, (0, groups * columns - scales.size))
            made = weights * each.reshape(groups, 1, columns)
        else:
            shape = [1] * weights.ndim
            shape[outputs] = -1
            made = weights * scales.reshape(shape)
        kept = [0, outputs] if weights.ndim == 3 else [outputs]
        alike = (made == 0).sum() == (weights == 0).sum() or bool((scales == 0).any())
        fits = np.isfinite(made).all() and rescale.exponents(made, kept) is None
        return made.astype(np.float32) if fits and alike else None

    def merge(self, second: Op) -> bool:
        """Makes one product of two; whether that is possible and less work."""
        value, shapes = without_reshapes(second.operands[0])
        sum_ = defining_op(value)
        bias = None
        first = self.product_of(value)
        if first is None and sum_ is not None and sum_.name == "ascend.add" and read_once(value):
            bias = self.columns(sum_.operands[1])
            inner, more = without_reshapes(sum_.operands[0])
            first = self.product_of(inner) if bias is not None else None
            shapes += more
        if first is None or first.name != MATMUL or TRANSPOSE_A in second.attributes:
            return False
        left, right = self.matrix(first), self.matrix(second)
        if left is None or right is None or any(last != left.shape[1] for last in shapes):
            return False
        (k, h), n = left.shape, right.shape[1]
        if k * n > k * h + h * n or TRANSPOSE_A in first.attributes:
            return False
        made = product_of_known(left, right)
        if rescale.exponents(made, [1]) is not None or not np.isfinite(made).all():
            return False
        with second.location, ir.InsertionPoint(second):
            ops = TensorOps()
            weights = constant(made, ops)
            operands = [first.operands[0], weights]
            product = builder.op(MATMUL, operands, [second.results[0].type])
            fuse(product, [first.location])
            value = product.result
            result: ir.Value = second.results[0]
            if bias is not None:
                offsets = product_of_known(bias[None], right)[0]
                result, known = self._biased(result)
                value = ops.binary("add", value, row(offsets + known, value, ops))
        result.replace_all_uses_with(value)
        return True

    def _biased(self, result: ir.Value) -> tuple[ir.Value, Array]:
        """A result with the constant bias that is all that is added to it next, and that bias;
        itself and 0 if there is none."""
        readers = readers_of(result)
        if len(readers) == 1 and readers[0].name == "ascend.add":
            first, second = readers[0].operands
            found = self.columns(second if first == result else first)
            if found is not None and first != second:
                return readers[0].results[0], found
        return result, np.zeros((), np.float32)

    def matrix(self, product: Op) -> Array | None:
        """The constant weights of a product as [k, n]."""
        if not is_f32(product.operands[1]) or not is_f32(product.results[0]):
            return None
        found = self.array(product.operands[1])
        return found.T if found is not None and TRANSPOSE_B in product.attributes else found


def product_of_known(left: Array, right: Array) -> Array:
    """left @ right in f32, added in f64; what stands in for it if one of them stands in."""
    shape = (left.shape[0], right.shape[1])
    if (stands_in(left) or stands_in(right)) and has_stand_in(shape, np.float32):
        return stand_in(shape, np.float32)
    return (left.astype(np.float64) @ right.astype(np.float64)).astype(np.float32)


def without_reshapes(value: ir.Value) -> tuple[ir.Value, list[int]]:
    """What a value is a reshape of, if nothing else needs it, and the columns of the shapes
    between."""
    columns = []
    while (op := defining_op(value)) is not None and op.name == RESHAPE and read_once(value):
        columns.append(tensor_of(value.type).shape[-1] if tensor_of(value.type).rank else 0)
        value = op.operands[0]
    return value, columns


def repeated(product: Op, operands: Sequence[ir.Value]) -> ir.Value:
    """The same product of other operands."""
    attributes = {key: product.attributes[key] for key in product.attributes}
    return builder.op(product.name, operands, [product.results[0].type], **attributes).result


def constant(array: Array, ops: TensorOps) -> ir.Value:
    """A constant of f32."""
    return ops.constant(array if stands_in(array) else np.ascontiguousarray(array), "f32")


def row(numbers: Array, like: ir.Value, ops: TensorOps) -> ir.Value:
    """One number for each column, repeated to the shape of a value."""
    shape = tensor_of(like.type).shape
    return ops.broadcast(constant(numbers, ops), shape, [len(shape) - 1])
