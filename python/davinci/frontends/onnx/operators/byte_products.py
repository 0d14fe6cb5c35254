"""Products of onnxruntime whose factors are bytes or of fewer bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import MICROSOFT, operator
from davinci.frontends.onnx.operators.linear import product
from davinci.frontends.onnx.operators.quantization import dynamically_quantized, quantized
from davinci.frontends.onnx.operators.quantized_products import collapsed, integer_matmul
from davinci.frontends.onnx.tensor import Array, BadNode, OnnxTensor, constant, convert

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall

WIDTHS = (2, 4, 8)
"""Bits of a weight that onnxruntime's tools write."""


def scaled(
    made: OnnxTensor, a_scale: OnnxTensor, b_scale: OnnxTensor, bias: OnnxTensor | None
) -> OnnxTensor:
    """Sums of products of bytes as floats, with a bias."""
    found = convert(made, np.float32) * (collapsed(a_scale) * collapsed(b_scale))
    return found if bias is None else found + bias


@operator(
    "MatMulIntegerToFloat",
    domain=MICROSOFT,
    inputs="A B a_scale b_scale a_zero_point b_zero_point bias",
)
def lower_matmul_integer_to_float(node: NodeCall) -> OnnxTensor:
    made = integer_matmul(node.take(0), node.take(1), node.optional(4), node.optional(5))
    return scaled(made, node.take(2), node.take(3), node.optional(6))


@operator("DynamicQuantizeMatMul", domain=MICROSOFT, inputs="A B b_scale b_zero_point bias")
def lower_dynamic_quantize_matmul(node: NodeCall) -> OnnxTensor:
    """The first factor becomes uint8 with the scale that holds all of it."""
    a, scale, zero = dynamically_quantized(node.take(0))
    made = integer_matmul(a, node.take(1), zero, node.optional(3))
    return scaled(made, scale, node.take(2), node.optional(4))


@operator(
    "QGemm",
    domain=MICROSOFT,
    inputs="A a_scale a_zero_point B b_scale b_zero_point C y_scale y_zero_point",
)
def lower_quantized_gemm(node: NodeCall) -> OnnxTensor:
    """alpha * op(A) op(B) + C, where C counts steps of the sums; bytes if their scale is given."""
    a, b = node.take(0), node.take(3)
    a = ops.transpose(a, [1, 0]) if node.attr("transA", 0) else a
    b = ops.transpose(b, [1, 0]) if node.attr("transB", 0) else b
    made, c = integer_matmul(a, b, node.optional(2), node.optional(5)), node.optional(6)
    made = made if c is None else made + c
    alpha, step = node.attr("alpha", 1.0), node.optional(7)
    found = scaled(made, node.take(1), node.take(4), None)
    found = found if alpha == 1 else found * alpha
    if step is None:
        return found
    zero = node.take(8)
    return quantized(found, collapsed(step), collapsed(zero), zero.dtype)


def unpacked(packed: Array, bits: int, count: int) -> Array:
    """The first `count` numbers of `bits` bits in the bytes of each row, from the low bits on."""
    flat = np.unpackbits(np.ascontiguousarray(packed), axis=-1, bitorder="little")
    whole = flat.shape[-1] // bits
    numbers = flat[..., : whole * bits].reshape(*packed.shape[:-1], whole, bits)
    return (numbers @ (1 << np.arange(bits, dtype=np.uint8)))[..., :count].astype(np.uint8)


@operator("MatMulNBits", domain=MICROSOFT, inputs="A B scales zero_points g_idx bias")
def lower_matmul_of_few_bits(node: NodeCall) -> OnnxTensor:
    """A times weights of few bits, with a scale and a zero point for each block of a column.

    The weights become floats here, so that products of them are as those of any others.
    """
    a, bias, bits = node.take(0), node.optional(5), node.attr("bits", 4)
    if bits not in WIDTHS:
        node.refuse(f"attribute 'bits' of {bits} is not supported", "2, 4 or 8")
    if node.attr("weight_prepacked", 0):
        node.refuse("attribute 'weight_prepacked' is not supported", "0, weights as ONNX has them")
    node.ignore("accuracy_level")
    depth, columns, block = node.attr("K"), node.attr("N"), node.attr("block_size")
    packed, scales, zeros = node.constant(1), node.constant(2), node.known(3)
    blocks = -(-depth // block)
    if packed.size != columns * blocks * block * bits // 8 or scales.size != columns * blocks:
        raise BadNode(
            f"weights {list(packed.shape)} and scales {list(scales.shape)}",
            f"{columns} columns of {blocks} blocks of {block} numbers",
        )
    numbers = unpacked(packed.reshape(columns, blocks, -1), bits, block).astype(np.float32)
    shift = zero_points(zeros, columns, blocks, bits)
    whole = (numbers - shift[..., None]) * scales.astype(np.float32).reshape(columns, blocks, 1)
    whole = whole.reshape(columns, blocks * block)[:, :depth]
    if (groups := node.known(4)) is not None and not np.array_equal(
        groups, np.arange(depth) // block
    ):
        node.refuse("input 4 (g_idx) is not supported", "columns in the order of their blocks")
    weights = constant(np.ascontiguousarray(whole.T).astype(a.dtype), name="weights")
    made = product(a, weights)
    return made if bias is None else made + bias


def zero_points(given: Array | None, columns: int, blocks: int, bits: int) -> Array:
    """The zero point of each block, [columns, blocks]: given packed as weights are, or as floats;
    where it is left out, the middle of the range."""
    if given is None:
        return np.full((columns, blocks), 1 << (bits - 1), np.float32)
    if given.dtype != np.uint8:
        return given.astype(np.float32).reshape(columns, blocks)
    return unpacked(given.reshape(columns, -1), bits, blocks).astype(np.float32)
