"""Products, convolutions and activations of onnxruntime's optimizer, against onnxruntime."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from onnx import helper

from davinci.errors import CompileError
from davinci.frontends.onnx.operators.byte_products import unpacked
from onnx_support import agree, means, node_model, run

node_of = functools.partial(node_model, domain="com.microsoft")


def random(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize(
    ("op_type", "operands", "attributes"),
    [
        ("Gelu", [(3, 8)], {}),
        ("BiasGelu", [(2, 3, 8), (8,)], {}),
        ("FastGelu", [(2, 3, 8)], {}),
        ("FastGelu", [(2, 3, 8), (8,)], {}),
        ("QuickGelu", [(3, 8)], {}),
        ("QuickGelu", [(3, 8)], {"alpha": 1.0}),
        ("ScaledSiLU", [(3, 8)], {"alpha": 0.5}),
        ("GatedAdd", [(2, 3, 8), (2, 3, 8), (2, 3, 1)], {}),
        ("FusedMatMul", [(2, 3, 4), (2, 4, 5)], {"alpha": 0.25}),
        ("FusedMatMul", [(2, 4, 3), (2, 5, 4)], {"transA": 1, "transB": 1}),
        ("FusedMatMul", [(3, 2, 4), (2, 4, 5)], {"transBatchA": 1}),
        ("FusedMatMul", [(2, 3, 4), (4, 2, 5)], {"transBatchB": 1}),
        ("TransposeMatMul", [(4, 3), (4, 5)], {"transA": 1}),
        ("FusedGemm", [(3, 4), (5, 4), (5,)], {"transB": 1, "beta": 0.5, "activation": "Relu"}),
        ("FusedGemm", [(3, 4), (4, 5)], {"activation": "LeakyRelu", "activation_alpha": 0.2}),
        ("FusedConv", [(1, 3, 6, 6), (4, 3, 3, 3), (4,)], {"activation": "Relu"}),
        (
            "FusedConv",
            [(1, 3, 6, 6), (4, 3, 3, 3)],
            {"activation": "Clip", "activation_params": [-0.5, 0.5]},
        ),
        (
            "FusedConv",
            [(1, 4, 6, 6), (4, 2, 3, 3), (4,)],
            {"group": 2, "activation": "HardSigmoid", "activation_params": [0.3, 0.4]},
        ),
        (
            "FusedConv",
            [(1, 3, 5, 5), (4, 3, 3, 3), (4,), (1, 4, 5, 5)],
            {"pads": [1] * 4, "activation": "Relu"},
        ),
    ],
)
def test_against_onnxruntime(op_type: str, operands: list[Any], attributes: dict[str, Any]) -> None:
    means(*node_of(op_type, *(random(*shape) for shape in operands), **attributes))


def test_unknown_activations_are_refused_by_name() -> None:
    model, inputs = node_of("FusedGemm", random(3, 4), random(4, 5), activation="Erf")
    with pytest.raises(CompileError, match="activation='Erf' is not supported"):
        run(model, inputs)


def test_what_onnxruntime_has_on_gpus_only() -> None:
    x, bias, skip = random(2, 3, 8), random(8), random(2, 3, 8) + 1
    agree(*node_of("BiasAdd", x, bias, skip), {"y": x + bias + skip})
    right = (x + bias)[..., 4:].astype(np.float64)
    gelu = 0.5 * right * (1 + np.tanh(np.sqrt(2 / np.pi) * (right + 0.044715 * right**3)))
    wanted = ((x + bias)[..., :4] * gelu).astype(np.float32)
    agree(*node_of("BiasSplitGelu", x, bias), {"y": wanted})


@pytest.mark.parametrize(
    ("bias", "inner", "axis"), [((2, 1, 1, 8), 1, 3), ((2, 8), 1, 3), ((3, 4, 8), 0, 2)]
)
def test_softmax_of_a_sum(bias: tuple[int, ...], inner: int, axis: int) -> None:
    """Inputs of two, one or no dimensions in front of those that the bias is repeated along."""
    x, b = random(2, 3, 4, 8), random(*bias)
    total = x + (b.reshape(2, 1, 1, 8) if inner else b)
    weights = np.exp(total.astype(np.float64).reshape(*x.shape[:axis], -1))
    wanted = (weights / weights.sum(-1, keepdims=True)).reshape(x.shape).astype(np.float32)
    model, inputs = node_of("BiasSoftmax", x, b, axis=axis, is_inner_broadcast=inner)
    agree(model, inputs, {"y": wanted})


def test_products_that_onnxruntime_has_on_gpus_only() -> None:
    a, b, bias = random(3, 4), random(4, 5), random(5)
    wanted = np.maximum(0.5 * (a @ b), 0)
    relu = {"activation": "Relu", "alpha": 0.5}
    agree(*node_of("FusedMatMulActivation", a, b, **relu), {"y": wanted})
    x = (a @ b + bias).astype(np.float64)
    gelu = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    agree(*node_of("GemmFastGelu", a, b, bias), {"y": gelu.astype(np.float32)})


@pytest.mark.parametrize("op_type", ["NhwcConv", "NhwcFusedConv"])
def test_convolutions_of_channels_last(op_type: str) -> None:
    x, w, bias = random(1, 6, 5, 3), random(4, 3, 3, 3), random(4)
    wanted = run(*node_model("Conv", x.transpose(0, 3, 1, 2), w, bias))["y"]
    agree(*node_of(op_type, x, w, bias), {"y": wanted.transpose(0, 2, 3, 1)})


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", ["none", "packed"])
def test_weights_of_few_bits(bits: int, zeros: str) -> None:
    """A last block that the depth does not fill."""
    depth, columns, block = 40, 6, 16
    rng, blocks = np.random.default_rng(bits), 3
    packed = rng.integers(0, 256, (columns, blocks, block * bits // 8), dtype=np.uint8)
    scales = (rng.random((columns, blocks)) * 0.2).astype(np.float32)
    points = rng.integers(0, 256, (columns, -(-blocks * bits // 8)), dtype=np.uint8)
    model, inputs = node_of(
        "MatMulNBits",
        *(random(2, 3, depth), packed, scales, points if zeros == "packed" else None),
        known=[1, 2] + [3] * (zeros == "packed"),
        **{"K": depth, "N": columns, "bits": bits, "block_size": block},
    )
    means(model, inputs)


def test_numbers_of_few_bits_count_from_the_low_ones() -> None:
    found = unpacked(np.array([[0x21, 0x43]], np.uint8), 4, 3)
    np.testing.assert_array_equal(found, [[1, 2, 3]])


def test_computed_weights_of_few_bits_are_refused_by_name() -> None:
    operands = random(2, 16), np.zeros((4, 1, 8), np.uint8), np.ones((4, 1), np.float32)
    model, inputs = node_of("MatMulNBits", *operands, K=16, N=4, bits=4, block_size=16)
    with pytest.raises(CompileError, match=r"input 1 \(B\) is computed while the network runs"):
        run(model, inputs)


BYTES = np.random.default_rng(1).integers(0, 256, (2, 4, 6, 8), dtype=np.uint8)
SCALES = np.float32(0.05), np.uint8(120)
TO = np.float32(0.04), np.uint8(100)
COLUMN_SCALES = (np.arange(1, 6) * 0.01).astype(np.float32)


@pytest.mark.parametrize(
    ("op_type", "operands", "attributes"),
    [
        ("QLinearAdd", [BYTES, *SCALES, BYTES[:1] // 2, *TO, np.float32(0.1), np.uint8(90)], {}),
        ("QLinearMul", [BYTES, *SCALES, BYTES[:1] // 2, *TO, np.float32(0.1), np.uint8(90)], {}),
        ("QLinearSigmoid", [BYTES, *SCALES, np.float32(1 / 256), np.uint8(0)], {}),
        ("QLinearLeakyRelu", [BYTES, *SCALES, *TO], {"alpha": 0.1}),
        (
            "QLinearSoftmax",
            [BYTES, *SCALES, np.float32(1 / 256), np.uint8(0)],
            {"opset": 13, "axis": -1},
        ),
        (
            "QLinearSoftmax",
            [BYTES, *SCALES, np.float32(1 / 256), np.uint8(0)],
            {"opset": 12, "axis": 2},
        ),
        ("QLinearGlobalAveragePool", [BYTES, *SCALES, *TO], {}),
        ("QLinearGlobalAveragePool", [BYTES, *SCALES, *TO], {"channels_last": 1}),
        ("QLinearAveragePool", [BYTES, *SCALES, *TO], {"kernel_shape": [3, 3], "pads": [1] * 4}),
        ("QLinearAveragePool", [BYTES, *SCALES, *TO], {"kernel_shape": [2, 2], "channels_last": 1}),
        ("NhwcMaxPool", [BYTES], {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}),
        ("QLinearConcat", [*TO, BYTES, *SCALES, BYTES // 3, *TO], {"axis": 1}),
        ("QLinearWhere", [BYTES > 99, BYTES, *SCALES, BYTES // 2, *TO, *TO], {}),
    ],
)
def test_bytes(op_type: str, operands: list[Any], attributes: dict[str, Any]) -> None:
    """Halves may be rounded to the neighbour of onnxruntime's byte."""
    known = [i for i, x in enumerate(operands) if x.ndim == 0]
    more = {key: value for key, value in attributes.items() if key != "opset"}
    model, inputs = node_of(op_type, *operands, known=known, kind=np.uint8, **more)
    if "opset" in attributes:
        attribute = helper.make_attribute("opset", attributes["opset"])
        model.graph.node[0].attribute.append(attribute)
    means(model, inputs, rtol=1 / 100)


def test_mean_of_bytes() -> None:
    """onnxruntime has a schema of it, but nothing that computes it."""
    operands = [BYTES, *SCALES, *TO]
    settings = {"axes": [1, -1], "keepdims": 0}
    model, inputs = node_of(
        "QLinearReduceMean", *operands, known=range(1, 5), kind=np.uint8, **settings
    )
    floats = (BYTES.astype(np.float64) - SCALES[1]) * SCALES[0]
    wanted = floats.mean((1, 3)) / TO[0] + TO[1]
    found = run(model, inputs)["y"]
    assert found.dtype == np.uint8
    # Half a step of rounding, and what is lost where sums are f16.
    np.testing.assert_allclose(found, wanted, rtol=0, atol=0.6)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("op_type", ["MatMulIntegerToFloat", "DynamicQuantizeMatMul"])
def test_products_of_bytes_as_floats(op_type: str, bias: bool) -> None:
    rng = np.random.default_rng(2)
    b, zero = rng.integers(-128, 128, (8, 5), dtype=np.int8), np.arange(5, dtype=np.int8)
    added = random(5) if bias else None
    operands: list[Any] = [random(3, 8), b, COLUMN_SCALES, zero, added]
    if op_type == "MatMulIntegerToFloat":
        a = rng.integers(0, 256, (3, 8), dtype=np.uint8)
        operands = [a, b, np.float32(0.02), COLUMN_SCALES, np.uint8(7), zero, added]
    known = [i for i in range(1, len(operands)) if operands[i] is not None]
    means(*node_of(op_type, *operands, known=known))


@pytest.mark.parametrize("step", [True, False], ids=["bytes", "floats"])
def test_quantized_gemm(step: bool) -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.integers(0, 256, shape, dtype=np.uint8) for shape in ((3, 8), (5, 8)))
    c = rng.integers(-900, 900, 5).astype(np.int32)
    ends = [np.float32(2.0), np.uint8(128)] if step else []
    operands = [a, np.float32(0.02), np.uint8(9), b, np.float32(0.03), np.uint8(99), c, *ends]
    kind = np.uint8 if step else np.float32
    model, inputs = node_of("QGemm", *operands, known=range(1, len(operands)), kind=kind, transB=1)
    means(model, inputs, rtol=1 / 100)


def test_convolution_of_bytes_with_channels_last() -> None:
    w = np.random.default_rng(4).integers(-99, 99, (4, 8, 3, 3)).astype(np.int8)
    operands = [BYTES, *SCALES, w, np.float32(0.01), np.int8(0), np.float32(0.5), np.uint8(120)]
    model, inputs = node_of(
        "QLinearConv", *operands, known=range(1, 8), kind=np.uint8, channels_last=1
    )
    means(model, inputs, rtol=1 / 100)


def test_quantize_and_back() -> None:
    means(*node_of("QuantizeLinear", random(3, 8), *TO, known=[1, 2], kind=np.uint8), rtol=1 / 100)
    means(*node_of("DequantizeLinear", BYTES, *TO, known=[1, 2]))
