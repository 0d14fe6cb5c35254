"""Products of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.tensor import Tensor

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import Call


@operator("MatMul")
def lower_matmul(node: Call) -> Tensor:
    return ops.matmul(node.take(0), node.take(1))


@operator("Gemm")
def lower_gemm(node: Call) -> Tensor:
    """alpha * op(A) op(B) + beta * C."""
    node.ignore("broadcast")
    a, b, c = node.take(0), node.take(1), node.optional(2)
    alpha, beta = node.attr("alpha"), node.attr("beta")
    a = ops.transpose(a, [1, 0]) if node.attr("transA") else a
    b = ops.transpose(b, [1, 0]) if node.attr("transB") else b
    product = ops.matmul(a, b)
    product = product if alpha == 1 else product * alpha
    if c is None:
        return product
    return product + (c if beta == 1 else c * beta)
