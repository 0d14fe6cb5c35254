"""Transposed results of products are products of the transposed factors, exchanged.

before:
    %c = "ascend.matmul"(%a, %w) : (tensor<384x196xf16>, tensor<196x128xf16>) -> tensor<384x128xf32>
    %b = "ascend.broadcast"(%row) {dims = array<i64: 1>} : (tensor<128xf32>) -> tensor<384x128xf32>
    %d = "ascend.add"(%c, %b)
    %t = "ascend.transpose"(%d) {permutation = array<i64: 1, 0>} -> tensor<128x384xf32>
after:
    %v = "ascend.constant"() : () -> tensor<128x196xf16>                 %w, turned
    %c = "ascend.matmul"(%v, %a) {transpose_b} : .. -> tensor<128x384xf32>
    %b = "ascend.broadcast"(%row) {dims = array<i64: 0>} : (tensor<128xf32>) -> tensor<128x384xf32>
    %t = "ascend.add"(%c, %b)

What lies between the product and the transpose must be elementwise, read by nobody else, and
combine the result with numbers and with what is repeated along one side. Dimensions may be split or
be 1: a transpose is one of the result if it brings the parts of its columns in front of those of
its rows. Where what follows is transposed again, or goes into windows of images, the transpose
stays, for later passes bring the two together.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute, python_value
from davinci.mlir import Op, ir
from davinci.operators.products import TRANSPOSE_A, TRANSPOSE_B
from davinci.operators.tensors import Tensor
from davinci.passes.ascend.ascend_fold_constants import mark_foldable
from davinci.passes.ascend.tensor_ops import (
    OF_WINDOWS,
    PRODUCTS,
    TensorOps,
    defining_op,
    depends_on_constants,
    full_value,
    is_elementwise,
    read_once,
    readers_of,
)

RESHAPE, BROADCAST, TRANSPOSE = "ascend.reshape", "ascend.broadcast", "ascend.transpose"

ENDS = frozenset({*PRODUCTS, "ascend.reduce"})
"""Behind which nothing is left of the order in which an operand lies."""


def exchange_factors(block: ir.Block) -> int:
    """Replaces transposes of results by products of exchanged factors; how many."""
    foldable, count = mark_foldable(block), 0
    for op in [operation.operation for operation in block.operations]:
        if op.name != TRANSPOSE or depends_on_constants(op.operands[0], foldable):
            continue
        found = TransposedResult.of(op)
        if found is not None and not is_turned_again(op.results[0]):
            found.emit(op, foldable)
            count += 1
    return count


@dataclass(frozen=True)
class TransposedResult:
    """A transpose of what a product makes.

    Attributes:
        product: of one pair of matrices.
        steps: elementwise operators between it and the transpose, in their order.
    """

    product: Op
    steps: tuple[Op, ...]

    @staticmethod
    def of(transpose: Op) -> TransposedResult | None:
        """None if it is no transpose of a result, or if others need what lies in between."""
        value, steps = transpose.operands[0], list[Op]()
        while read_once(value) and (op := defining_op(value)) is not None:
            if op.name in PRODUCTS:
                m, n = tensor_of(value.type).shape[-2:]
                alone = tensor_of(value.type).count == m * n
                legal = (
                    alone
                    and turns(transpose, m, n)
                    and all(combines_matrix(x, m, n) for x in steps)
                )
                return TransposedResult(op, tuple(reversed(steps))) if legal else None
            carried = value if op.name == RESHAPE else None
            if is_elementwise(op):
                arrays = [operand for operand in op.operands if not is_beside(operand)]
                carried = arrays[0] if len(arrays) == 1 else None
                steps.append(op)
            if carried is None:
                return None
            value = op.operands[0] if op.name == RESHAPE else carried
        return None

    def emit(self, transpose: Op, foldable: Collection[ir.Value]) -> None:
        """Replaces the transpose by the exchanged product and the same steps.

        Args:
            foldable: values that are computed at compile time.
        """
        result = tensor_of(transpose.results[0].type)
        with transpose.location, ir.InsertionPoint(transpose):
            ops = TensorOps()
            made = self._exchanged(ops, foldable)
            for step in self.steps:
                made = self._repeated(step, made, ops)
            made = ops.reshape(made, result.shape)
        transpose.results[0].replace_all_uses_with(made)

    def _exchanged(self, ops: TensorOps, foldable: Collection[ir.Value]) -> ir.Value:
        """[n, m] = B' A'."""
        found = tensor_of(self.product.results[0].type)
        a, b = (ops.reshape(v, tensor_of(v.type).shape[-2:]) for v in self.product.operands)
        turned_a, turned_b = (x in self.product.attributes for x in (TRANSPOSE_A, TRANSPOSE_B))
        flags = {}
        if not turned_b and depends_on_constants(self.product.operands[1], foldable):
            b = ops.transpose(b, [1, 0])
        elif not turned_b:
            flags[TRANSPOSE_A] = True
        if not turned_a:
            flags[TRANSPOSE_B] = True
        kind = Tensor((found.shape[-1], found.shape[-2]), found.element)
        with self.product.location:
            return ops.emit("matmul", [b, a], kind, **flags)

    @staticmethod
    def _repeated(step: Op, made: ir.Value, ops: TensorOps) -> ir.Value:
        """A step on the transposed result."""
        shape, rank = tensor_of(made.type).shape, tensor_of(step.results[0].type).rank
        operands = []
        for operand in step.operands:
            element, number = tensor_of(operand.type).element, full_value(operand)
            owner = defining_op(operand)
            if number is not None:
                operands.append(ops.full(shape, element, number[()]))
            elif owner is not None and owner.name == BROADCAST:
                source = owner.operands[0]
                dims = [rank - 1 - dim for dim in attribute(owner, "dims") if dim >= rank - 2]
                side = ops.reshape(source, [tensor_of(source.type).count])
                operands.append(ops.broadcast(side, shape, dims))
            else:
                operands.append(made)
        attributes = {key: python_value(step.attributes[key]) for key in step.attributes}
        kind = replace(tensor_of(step.results[0].type), shape=tuple(shape))
        with step.location:
            return ops.emit(step.name.removeprefix("ascend."), operands, kind, **attributes)


def is_turned_again(value: ir.Value) -> bool:
    """Whether a value, or what is made of it but by products and reductions, is transposed, or goes
    into windows of images."""
    seen: set[Op] = set()
    left = list(readers_of(value))
    while left:
        op = left.pop()
        if op in seen:
            continue
        seen.add(op)
        if op.name == TRANSPOSE or op.name in OF_WINDOWS:
            return True
        if op.name not in ENDS:
            left += [reader for result in op.results for reader in readers_of(result)]
    return False


def turns(transpose: Op, m: int, n: int) -> bool:
    """Whether a transpose of what lies as [m, n] makes it lie as [n, m]."""
    shape = tensor_of(transpose.operands[0].type).shape
    order = [dim for dim in attribute(transpose, "permutation") if shape[dim] > 1]
    if m == 1 or n == 1 or not order or order[-1] == max(order):
        return False
    first = order.index(min(order))
    rotated = order == sorted(order)[len(order) - first :] + sorted(order)[: len(order) - first]
    return rotated and math.prod(shape[dim] for dim in order[:first]) == n


def combines_matrix(step: Op, m: int, n: int) -> bool:
    """Whether an elementwise step can as well be applied to a transposed matrix [m, n]: its result
    has that shape, perhaps with ones in front, or what it combines the matrix with (`is_beside`)
    is one number each."""
    shape = tensor_of(step.results[0].type).shape
    numbers = all(full_value(v) is not None for v in step.operands if is_beside(v))
    return numbers or (shape[-2:] == (m, n) and math.prod(shape) == m * n)


def is_beside(value: ir.Value) -> bool:
    """Whether a value is one number, or numbers that are repeated along rows or along columns."""
    if full_value(value) is not None:
        return True
    owner, rank = defining_op(value), tensor_of(value.type).rank
    if owner is None or owner.name != BROADCAST or not owner.operands or rank < 2:
        return False
    source, shape = tensor_of(owner.operands[0].type), tensor_of(value.type).shape
    inner = [dim for dim in attribute(owner, "dims") if dim >= rank - 2]
    return len(inner) == 1 and source.count == shape[inner[0]]
