"""A small network for each rewrite of the catalogue: what is exported, before it is replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from davinci.tables import Table
from davinci.zoo.graph import OnnxGraph

ROWS, COLUMNS = 512, 1024
IMAGE = (1, 64, 56, 56)

Build = Callable[[OnnxGraph, str], str]
NETWORKS: Table[str, tuple[tuple[int, ...], Build]] = Table("a small network")
"""The shape of the input and the function that adds the nodes, by the name of the rewrite."""


def network(name: str, *shape: int) -> Callable[[Build], Build]:
    """Registers a network of one input x for a rewrite."""

    def register(build: Build) -> Build:
        NETWORKS.register(name)((shape or (ROWS, COLUMNS), build))
        return build

    return register


EVERY_SECOND_ROW = f"""
func.func @main(%x: tensor<{ROWS}x{COLUMNS}xf32>) -> tensor<{ROWS // 2}x{COLUMNS}xf32> {{
  %i = stablehlo.constant dense<{list(range(0, ROWS, 2))}> : tensor<{ROWS // 2}xi64>
  %r = "stablehlo.gather"(%x, %i) {{slice_sizes = array<i64: 1, {COLUMNS}>, dimension_numbers =
    #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0],
    index_vector_dim = 1>}} : (tensor<{ROWS}x{COLUMNS}xf32>, tensor<{ROWS // 2}xi64>)
    -> tensor<{ROWS // 2}x{COLUMNS}xf32>
  %y = stablehlo.exponential %r : tensor<{ROWS // 2}x{COLUMNS}xf32>
  return %y : tensor<{ROWS // 2}x{COLUMNS}xf32>
}}
"""
"""As JAX writes x[0:ROWS:2] by a list of indices; our importer of ONNX makes a slice of such."""

RELATIVE_POSITIONS = f"""
func.func @main(%x: tensor<{ROWS}x{COLUMNS}xf32>, %p: tensor<{COLUMNS}x{COLUMNS}xf32>)
    -> tensor<{ROWS}x{ROWS}xf32> {{
  %s = stablehlo.dot_general %x, %p, contracting_dims = [1] x [0]
    : (tensor<{ROWS}x{COLUMNS}xf32>, tensor<{COLUMNS}x{COLUMNS}xf32>)
    -> tensor<{ROWS}x{COLUMNS}xf32>
  %i = stablehlo.iota dim = 0 : tensor<{ROWS}x{ROWS}xi32>
  %j = stablehlo.iota dim = 1 : tensor<{ROWS}x{ROWS}xi32>
  %d = stablehlo.subtract %i, %j : tensor<{ROWS}x{ROWS}xi32>
  %c = stablehlo.constant dense<{COLUMNS // 2}> : tensor<{ROWS}x{ROWS}xi32>
  %k = stablehlo.add %d, %c : tensor<{ROWS}x{ROWS}xi32>
  %at = stablehlo.reshape %k : (tensor<{ROWS}x{ROWS}xi32>) -> tensor<{ROWS}x{ROWS}x1xi32>
  %r = "stablehlo.gather"(%s, %at) {{slice_sizes = array<i64: 1, 1>, dimension_numbers =
    #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0],
    start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>}}
    : (tensor<{ROWS}x{COLUMNS}xf32>, tensor<{ROWS}x{ROWS}x1xi32>) -> tensor<{ROWS}x{ROWS}xf32>
  return %r : tensor<{ROWS}x{ROWS}xf32>
}}
"""
"""Scores of relative positions, which attention of DeBERTa gathers along rows."""

TEXTS = {"gather-to-slice": EVERY_SECOND_ROW, "gather-to-runs": RELATIVE_POSITIONS}
"""Networks as StableHLO, by the name of the rewrite."""


def built(name: str) -> onnx.ModelProto | str:
    """The network for a rewrite, as ONNX or StableHLO."""
    if name in TEXTS:
        return TEXTS[name]
    shape, build = NETWORKS[name]
    g = OnnxGraph(name, seed=0)
    result = build(g, g.input("x", TensorProto.FLOAT, shape))
    inferred = g.node("Identity", result)
    g.outputs.append(onnx.helper.make_tensor_value_info(inferred, TensorProto.FLOAT, None))
    return g.model()


def numbers(g: OnnxGraph, *values: int) -> str:
    return g.constant(np.array(values, np.int64))


def cut(g: OnnxGraph, x: str, axis: int, start: int, end: int) -> str:
    return g.node("Slice", x, *(numbers(g, value) for value in (start, end, axis)))


def linear(g: OnnxGraph, x: str, rows: int, columns: int, name: str = "w") -> str:
    return g.node("MatMul", x, g.weight(name, rows, columns))


def conv(g: OnnxGraph, x: str, name: str, channels: int, kernel: int, **attributes: Any) -> str:
    shape = (channels, IMAGE[1], kernel, kernel)
    return g.node("Conv", x, g.weight(name, *shape), **attributes)


def batch_norm(g: OnnxGraph, x: str, name: str, channels: int) -> str:
    means = {"scale": 1.0, "bias": 0.0, "mean": 0.1, "variance": 1.0}
    values = [g.weight(f"{name}_{key}", channels, mean=mean) for key, mean in means.items()]
    return g.node("BatchNormalization", x, *values)


def reduced(g: OnnxGraph, operator: str, x: str, axis: int) -> str:
    return (
        g.node(operator, x, numbers(g, axis), keepdims=1)
        if operator == "ReduceSum"
        else g.node(operator, x, axes=[axis], keepdims=1)
    )


@network("slice-elementwise")
def last_row_of_activation(g: OnnxGraph, x: str) -> str:
    return cut(g, g.node("Tanh", linear(g, x, COLUMNS, COLUMNS)), 0, ROWS - 1, ROWS)


@network("slice-broadcast")
def last_row_beside_means(g: OnnxGraph, x: str) -> str:
    """The rows of a product beside their means, which are broadcast to all columns."""
    y = linear(g, x, COLUMNS, COLUMNS)
    return cut(g, g.node("Sub", y, reduced(g, "ReduceMean", y, 1)), 0, ROWS - 1, ROWS)


@network("slice-reduction")
def last_row_of_norm(g: OnnxGraph, x: str) -> str:
    return cut(g, reduced(g, "ReduceSum", linear(g, x, COLUMNS, COLUMNS), 1), 0, ROWS - 1, ROWS)


@network("slice-product")
def last_row_of_product(g: OnnxGraph, x: str) -> str:
    return cut(g, linear(g, x, COLUMNS, COLUMNS), 0, ROWS - 1, ROWS)


@network("slice-convolution", *IMAGE)
def crop_of_convolution(g: OnnxGraph, x: str) -> str:
    made = conv(g, x, "w", 64, 3, pads=[1] * 4)
    return cut(g, cut(g, made, 2, 16, 32), 3, 16, 32)


@network("slice-movement")
def last_column_of_transpose(g: OnnxGraph, x: str) -> str:
    return g.node("Exp", cut(g, g.node("Transpose", x, perm=[1, 0]), 0, COLUMNS - 8, COLUMNS))


@network("slice-gather", 64, COLUMNS)
def last_row_of_embedding(g: OnnxGraph, x: str) -> str:
    table = g.weight("table", 1000, COLUMNS)
    indices = g.node("Cast", g.node("ReduceMax", x, axes=[1], keepdims=0), to=TensorProto.INT64)
    return cut(g, g.node("Gather", table, indices), 0, 63, 64)


@network("gelu")
def gelu(g: OnnxGraph, x: str) -> str:
    erf = g.node("Erf", g.node("Div", x, g.scalar(2**0.5)))
    product = g.node("Mul", x, g.node("Add", erf, g.scalar(1.0)))
    return g.node("Mul", product, g.scalar(0.5))


@network("quantize")
def quantize(g: OnnxGraph, x: str) -> str:
    scale, zero = g.scalar(0.02), g.constant(np.int8(3))
    made = g.node("QuantizeLinear", g.node("Tanh", x), scale, zero)
    return g.node("DequantizeLinear", made, scale, zero)


@network("score-scales", 8, 256, 64)
def scaled_attention(g: OnnxGraph, x: str) -> str:
    """Attention with half of the scale on either factor of the scores, as PyTorch exports it."""
    q = g.node("Mul", linear(g, x, 64, 64, "q"), g.scalar(64**-0.25))
    k = g.node("Transpose", linear(g, x, 64, 64, "k"), perm=[0, 2, 1])
    scores = g.node("MatMul", q, g.node("Mul", k, g.scalar(64**-0.25)))
    return g.node("MatMul", g.node("Softmax", scores, axis=-1), linear(g, x, 64, 64, "v"))


@network("drop-identities")
def identities(g: OnnxGraph, x: str) -> str:
    y = g.node("Add", g.node("Mul", x, g.scalar(1.0)), g.scalar(0.0))
    return g.node("Relu", g.node("Relu", g.node("Neg", g.node("Neg", y))))


@network("floored-remainders")
def floored_remainder(g: OnnxGraph, x: str) -> str:
    whole = g.node("Cast", x, to=TensorProto.INT32)
    rest = g.node("Mod", whole, g.constant(np.array(3, np.int32)))
    return g.node("Cast", rest, to=TensorProto.FLOAT)


@network("fold-scales", *IMAGE)
def normalisation_spelled(g: OnnxGraph, x: str) -> str:
    """A batch normalisation as four operators: BN to scale."""
    shape = (1, IMAGE[1], 1, 1)
    mean, deviation, gain, bias = (
        g.weight(name, *shape, mean=value)
        for name, value in (("mean", 0.0), ("deviation", 1.0), ("gain", 1.0), ("bias", 0.0))
    )
    y = g.node("Div", g.node("Sub", x, mean), deviation)
    return g.node("Relu", g.node("Add", g.node("Mul", y, gain), bias))


@network("divisions-to-products")
def division(g: OnnxGraph, x: str) -> str:
    """hard-swish as it is exported."""
    gate = g.node("Clip", g.node("Add", x, g.scalar(3.0)), g.scalar(0.0), g.scalar(6.0))
    return g.node("Mul", x, g.node("Div", gate, g.scalar(6.0)))


@network("reciprocal-roots")
def root(g: OnnxGraph, x: str) -> str:
    """An activation, x / sqrt(1 + x^2)."""
    return g.node("Div", x, g.node("Sqrt", g.node("Add", g.node("Mul", x, x), g.scalar(1.0))))


@network("powers")
def power(g: OnnxGraph, x: str) -> str:
    return g.node("Pow", g.node("Abs", x), g.scalar(1.5))


@network("tanh-to-logistic")
def gate(g: OnnxGraph, x: str) -> str:
    """GELU by tanh, as networks of images and text have it."""
    cube = g.node("Mul", g.node("Mul", x, x), g.node("Mul", x, g.scalar(0.044715)))
    tangent = g.node("Tanh", g.node("Mul", g.node("Add", x, cube), g.scalar(0.79788456)))
    half = g.node("Mul", x, g.scalar(0.5))
    return g.node("Mul", half, g.node("Add", tangent, g.scalar(1.0)))


@network("scale-weights", *IMAGE)
def batch_norms(g: OnnxGraph, x: str) -> str:
    """Convolutions with batch normalisations behind them."""
    for i in range(4):
        y = conv(g, x, f"w{i}", 64, 3, pads=[1] * 4)
        x = g.node("Relu", batch_norm(g, y, f"bn{i}", 64))
    return x


@network("merge-linear-layers")
def linear_layers(g: OnnxGraph, x: str) -> str:
    y = g.node("Add", linear(g, x, COLUMNS, COLUMNS, "v"), g.weight("b", COLUMNS))
    return linear(g, y, COLUMNS, COLUMNS)


@network("drop-casts")
def flags(g: OnnxGraph, x: str) -> str:
    flag = g.node("Cast", g.node("Greater", x, g.scalar(0.0)), to=TensorProto.INT64)
    return g.node("Where", g.node("Cast", flag, to=TensorProto.BOOL), x, g.scalar(0.0))


@network("merge-slices")
def joined_parts(g: OnnxGraph, x: str) -> str:
    parts = [cut(g, x, 1, i, i + 256) for i in range(0, COLUMNS, 256)]
    return g.node("Exp", g.node("Concat", *parts, axis=1))


@network("common-subexpressions")
def sums_in_both_orders(g: OnnxGraph, x: str) -> str:
    a, b = g.node("Exp", x), g.node("Tanh", x)
    first, second = g.node("Add", a, b), g.node("Sub", b, g.node("Neg", a))
    return g.node("Mul", g.node("Tanh", first), g.node("Tanh", second))


@network("fold-constants")
def known_weights(g: OnnxGraph, x: str) -> str:
    turned = g.node("Transpose", g.weight("w", COLUMNS, COLUMNS), perm=[1, 0])
    return g.node("MatMul", x, g.node("Mul", turned, g.scalar(0.5)))


@network("fold-pads", *IMAGE)
def padded_images(g: OnnxGraph, x: str) -> str:
    """As networks of frameworks with "same" padding are converted."""
    for i in range(2):
        x = g.node("Pad", x, numbers(g, 0, 0, 1, 1, 0, 0, 1, 1))
        x = g.node("Relu", conv(g, x, f"w{i}", 64, 3))
    return x


@network("pixels-to-channels", 1, 3, 480, 640)
def blur(g: OnnxGraph, x: str) -> str:
    """A Gaussian filter of 5x5 of three planes, as a depthwise convolution."""
    taps = np.array([1, 4, 6, 4, 1], np.float32) / 16
    weights = np.broadcast_to(np.outer(taps, taps), (3, 1, 5, 5))
    return g.node("Conv", x, g.constant(np.ascontiguousarray(weights)), group=3, pads=[2] * 4)


@network("drop-guards", 8, 128, 64)
def guarded_attention(g: OnnxGraph, x: str) -> str:
    """Attention with a causal mask, as PyTorch exports it."""
    mask = np.triu(np.full((128, 128), -np.inf, np.float32), 1)
    scores = g.node("MatMul", x, g.node("Transpose", x, perm=[0, 2, 1]))
    p = g.node("Softmax", g.node("Add", scores, g.constant(mask)), axis=-1)
    p = g.node("Where", g.node("IsNaN", p), g.scalar(0.0), p)
    return g.node("MatMul", p, x)


@network("cancel-transposes", 8, ROWS, 128)
def channels_last(g: OnnxGraph, x: str) -> str:
    """As networks of channels-last frameworks are converted."""
    y = g.node("Transpose", g.node("Tanh", x), perm=[0, 2, 1])
    return g.node("Exp", g.node("Transpose", g.node("Relu", y), perm=[0, 2, 1]))


@network("absorb-transposes", 8, 256, 64)
def scores(g: OnnxGraph, x: str) -> str:
    return g.node("MatMul", x, g.node("Transpose", x, perm=[0, 2, 1]))


@network("sink-rearrangements", *IMAGE)
def convolutions(g: OnnxGraph, x: str) -> str:
    for i in range(3):
        x = g.node("Relu", conv(g, x, f"w{i}", 64, 3, pads=[1] * 4))
    return x


@network("merge-products", 128, 768)
def projections(g: OnnxGraph, x: str) -> str:
    q, k, v = (linear(g, x, 768, 768, name) for name in "qkv")
    return g.node("Concat", g.node("Tanh", q), g.node("Relu", k), v, axis=0)


@network("split-reductions", 40, 1 << 16)
def long_sums(g: OnnxGraph, x: str) -> str:
    return reduced(g, "ReduceSum", x, 1)


@network("split-moves", 12, 56, 96, 7)
def turned_round(g: OnnxGraph, x: str) -> str:
    """Dimensions in another order, of which no two neighbours stay together."""
    return g.node("Transpose", x, perm=[2, 1, 0, 3])


@network("loop-kernels", 32, 16, 128)
def gru(g: OnnxGraph, x: str) -> str:
    """32 steps of a GRU of 128 states, 16 sequences."""
    w, r = g.weight("w", 1, 384, 128), g.weight("r", 1, 384, 128)
    return g.parts("GRU", x, w, r, count=2, hidden_size=128)[0]


@network("attention", 12, 128, 64)
def self_attention(g: OnnxGraph, x: str) -> str:
    """Self-attention of 12 heads over 128 rows."""
    keys = g.node("Transpose", x, perm=[0, 2, 1])
    return g.node("MatMul", g.node("Softmax", g.node("MatMul", x, keys), axis=2), x)


@network("product-epilogues")
def product_with_bias(g: OnnxGraph, x: str) -> str:
    """MatMul + bias."""
    y = linear(g, x, COLUMNS, COLUMNS)
    return g.node("Relu", g.node("Add", y, g.weight("b", COLUMNS)))


@network("sums-by-cube", 16, 64, 28, 28)
def gated_images(g: OnnxGraph, x: str) -> str:
    """A convolution of what another one made, times its averages."""
    y = g.node("Relu", conv(g, x, "w", 64, 1))
    return g.node("Mul", conv(g, y, "v", 64, 1), g.node("GlobalAveragePool", y))
