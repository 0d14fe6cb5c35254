"""Products whose right factor repeats along the batch, as keys that several heads share.

before:
    %1 = "ascend.broadcast"(%k) {dims = array<i64: 0, 1, 2, 3>}
        : (tensor<2x1x512x64xf16>) -> tensor<2x4x512x64xf16>
    %2 = "ascend.reshape"(%1) : (tensor<2x4x512x64xf16>) -> tensor<8x512x64xf16>
    %3 = "ascend.batch_matmul"(%q, %2) {transpose_b} : (tensor<8x1x64xf16>, ..)
        -> tensor<8x1x512xf32>
after:
    %1 = "ascend.reshape"(%q) : (tensor<8x1x64xf16>) -> tensor<2x4x64xf16>
    %2 = "ascend.reshape"(%k) : (tensor<2x1x512x64xf16>) -> tensor<2x512x64xf16>
    %3 = "ascend.batch_matmul"(%1, %2) {transpose_b} : (..) -> tensor<2x4x512xf32>
    %4 = "ascend.reshape"(%3) : (tensor<2x4x512xf32>) -> tensor<8x1x512xf32>

The rows that meet one right factor are rows of one product. As long as they are one fractal that
takes no longer than one of them, and nothing is repeated.
"""

from __future__ import annotations

import math
from dataclasses import replace

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.mlir import Op, ir
from davinci.operators.products import TRANSPOSE_A
from davinci.passes.ascend.tensor_ops import TensorOps, defining_op
from davinci.units import FRACTAL_SIDE as SIDE


def join_rows(product: Op) -> bool:
    """Has rows that meet the same right factor be those of one product; whether there are any."""
    if product.name != "ascend.batch_matmul" or TRANSPOSE_A in product.attributes:
        return False
    a, b = product.operands
    batch, m, k = tensor_of(a.type).shape
    found = repeated(b)
    if found is None:
        return False
    source, times = found
    if times < 2 or times * m > SIDE:
        return False
    result = tensor_of(product.results[0].type)
    with product.location, ir.InsertionPoint(product):
        ops = TensorOps()
        left = ops.reshape(a, [batch // times, times * m, k])
        right = ops.reshape(source, [batch // times, *tensor_of(b.type).shape[-2:]])
        attributes = {key: product.attributes[key] for key in product.attributes}
        shape = (batch // times, times * m, result.shape[-1])
        made = ops.emit("batch_matmul", [left, right], replace(result, shape=shape), **attributes)
        product.results[0].replace_all_uses_with(ops.reshape(made, result.shape))
    return True


def repeated(value: ir.Value) -> tuple[ir.Value, int] | None:
    """What a batch of matrices repeats, each so many times one after the other; None if it does
    not."""
    matrices = tensor_of(value.type).shape[-2:]
    owner = defining_op(value)
    while owner is not None and owner.name == "ascend.reshape":
        owner = defining_op(owner.operands[0])
    if owner is None or owner.name != "ascend.broadcast":
        return None
    source, dims = owner.operands[0], list(attribute(owner, "dims"))
    sizes = dict(zip(dims, tensor_of(source.type).shape, strict=True))
    whole = tensor_of(owner.results[0].type).shape
    rank = len(whole)
    if whole[-2:] != matrices or dims != sorted(dims):
        return None
    repeats = [whole[d] if sizes.get(d, 1) != whole[d] else 1 for d in range(rank)]
    outer = [d for d in range(rank - 2) if whole[d] > 1]
    apart = [d for d in outer if repeats[d] == 1]
    if any(n > 1 for n in repeats[-2:]) or outer[: len(apart)] != apart:
        return None
    return source, math.prod(repeats)
