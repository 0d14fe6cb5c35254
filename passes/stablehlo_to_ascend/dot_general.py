"""Conversion of `stablehlo.dot_general` to matmul or batch_matmul on row-major matrices.

    lhs [batch.., m.., k..] x rhs [batch.., k.., n..] -> [batch.., m.., n..]

Dimensions are brought into this order by transposes and merged by reshapes. A right side that is
the same for the whole batch (a weight) makes one large matmul of it. Products of integers are those
of `integer_products.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.mlir import Op, ir, stablehlo
from davinci.operators.products import FACTORS, product_name
from davinci.operators.tensors import Tensor
from davinci.passes.ascend.tensor_ops import (
    TensorOps,
    defining_op,
)
from davinci.passes.stablehlo_to_ascend import conversion
from davinci.passes.stablehlo_to_ascend.integer_products import integer_product
from davinci.passes.stablehlo_to_ascend.small_products import small_products

INTEGERS = ("i8", "ui8", "i16", "i32", "i64")


@conversion("dot_general")
def convert_dot_general(op: Op, ops: TensorOps) -> Sequence[ir.Value] | None:
    """A matmul or batch_matmul with what brings its operands to rows; None if the cube cannot."""
    lhs, rhs = op.operands
    a, b = tensor_of(lhs.type), tensor_of(rhs.type)
    result = tensor_of(op.results[0].type)
    integers = all(t.element in INTEGERS for t in (a, b, result))
    if not integers and (a.element not in FACTORS or a.element != b.element):
        return None
    if not integers and result.element not in (a.element, {"f16": "f32"}.get(a.element)):
        return None
    if 0 in (a.count, b.count):
        return [ops.full(result.shape, result.element, 0)]
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    batch_a, batch_b = (
        list(numbers.lhs_batching_dimensions),
        list(numbers.rhs_batching_dimensions),
    )
    inner_a, inner_b = (
        list(numbers.lhs_contracting_dimensions),
        list(numbers.rhs_contracting_dimensions),
    )
    rows = [i for i in range(a.rank) if i not in batch_a + inner_a]
    columns = [i for i in range(b.rank) if i not in batch_b + inner_b]
    batch, m, k, n = (
        math.prod(t.shape[i] for i in dims)
        for t, dims in ((a, batch_a), (a, rows), (a, inner_a), (b, columns))
    )
    weight = unbatched(rhs, batch_b) if batch > 1 else None
    left = ops.transpose(lhs, [*batch_a, *rows, *inner_a])
    if weight is not None:
        source, dims = weight
        right = ops.transpose(source, [dims.index(i) for i in [*inner_b, *columns]])
        m, batch = batch * m, 1
    else:
        right = ops.transpose(rhs, [*batch_b, *inner_b, *columns])
    outer = [] if batch == 1 else [batch]
    left, right = ops.reshape(left, [*outer, m, k]), ops.reshape(right, [*outer, k, n])
    shape = (*outer, m, n)
    if integers:
        product = integer_product(left, right, Tensor(shape, result.element), ops)
    else:
        made = Tensor(shape, result.element)
        small = small_products(left, right, made, ops) if outer else None
        product = small or ops.emit(product_name(len(shape)), [left, right], made)
    return [ops.reshape(product, result.shape)]


def unbatched(value: ir.Value, batch: list[int]) -> tuple[ir.Value, list[int]] | None:
    """What `value` repeats along all `batch` dimensions, with the dimension each of its own is."""
    owner = defining_op(value)
    if owner is None or owner.name != "ascend.broadcast":
        return None
    source, dims = owner.operands[0], attribute(owner, "dims")
    shape, whole = tensor_of(source.type).shape, tensor_of(value.type).shape
    if any(shape[i] != 1 for i, d in enumerate(dims) if d in batch):
        return None
    if any(shape[i] != whole[d] for i, d in enumerate(dims) if d not in batch):
        return None
    kept = [d for d in dims if d not in batch]
    if len(kept) != len(whole) - len(batch):
        return None
    if len(kept) != len(dims):
        return None
    return source, kept
