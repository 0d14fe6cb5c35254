"""Products and convolutions as onnxruntime's optimizer writes them, with what follows fused in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import MICROSOFT, operator
from davinci.frontends.onnx.operators.fused_activations import (
    activated,
    single_parameters,
    tanh_gelu,
)
from davinci.frontends.onnx.operators.linear import product
from davinci.frontends.onnx.tensor import OnnxTensor

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall


def matrices(x: OnnxTensor, turned: bool, batch_turned: bool) -> OnnxTensor:
    """Matrices of a stack; of a transposed batch they stand along the dimensions 0 and last."""
    if batch_turned and x.rank > 2:
        x = ops.move_axis(x, 0, x.rank - 2)
    if not turned or x.rank < 2:
        return x
    return ops.transpose(x, [*range(x.rank - 2), x.rank - 1, x.rank - 2])


def fused_matmul(node: NodeCall) -> OnnxTensor:
    """alpha * op(A) op(B)."""
    a, b = (
        matrices(
            node.take(i), bool(node.attr(f"trans{x}", 0)), bool(node.attr(f"transBatch{x}", 0))
        )
        for i, x in enumerate("AB")
    )
    made, alpha = product(a, b), node.attr("alpha", 1.0)
    return made if alpha == 1 else made * alpha


@operator("FusedMatMul", "TransposeMatMul", domain=MICROSOFT, inputs="A B")
def lower_fused_matmul(node: NodeCall) -> OnnxTensor:
    return fused_matmul(node)


@operator("FusedMatMulActivation", domain=MICROSOFT, inputs="A B")
def lower_fused_matmul_activation(node: NodeCall) -> OnnxTensor:
    node.ignore("activation_axis")
    return activated(node, fused_matmul(node), single_parameters(node))


@operator("FusedGemm", domain=MICROSOFT, inputs="A B C")
def lower_fused_gemm(node: NodeCall) -> OnnxTensor:
    alpha, beta = node.attr("alpha", 1.0), node.attr("beta", 1.0)
    a, b = (
        matrices(node.take(i), bool(node.attr(f"trans{x}", 0)), False) for i, x in enumerate("AB")
    )
    made, c = product(a, b), node.optional(2)
    made = made if alpha == 1 else made * alpha
    if c is not None and beta:
        made = made + (c if beta == 1 else c * beta)
    return activated(node, made, single_parameters(node))


@operator("GemmFastGelu", domain=MICROSOFT, inputs="X W bias")
def lower_gemm_fast_gelu(node: NodeCall) -> OnnxTensor:
    made, bias = product(node.take(0), node.take(1)), node.optional(2)
    return tanh_gelu(made if bias is None else made + bias)
