"""Products and convolutions of bytes against onnxruntime, to the last bit, on simulated code."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import davinci
from davinci.reference import check
from onnx_support import model_of
from random_quantized import WAYS, Draw


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 35, 41, 42, 43])
def test_random_layer(seed: int) -> None:
    """35 has weights that are all the same, without fusion."""
    Draw(seed).layer().check(**WAYS[seed % len(WAYS)])


def test_random_layer_of_given_scales() -> None:
    """Scales that the graph is given are known when it runs."""
    Draw(7, given=True).layer().check(**WAYS[1])


def kernels_of(model: onnx.ModelProto, inputs: dict[str, Any], neighbours: float = 0) -> Any:
    """The kernels of a model whose results are onnxruntime's, or, so large a share of them, the
    integers beside those."""
    executable = davinci.compile(model)
    (found,) = executable.run(inputs).values()
    (wanted,) = check.reference_onnx(model, inputs).values()
    if neighbours:
        apart = np.abs(found.astype(int) - wanted.astype(int))
        assert apart.max() <= 1
        assert apart.mean() <= neighbours
    else:
        np.testing.assert_array_equal(found, wanted)
    return executable.profile["kernels"]


@pytest.mark.parametrize("known", [True, False], ids=["known", "computed"])
def test_sums_beyond_f32(known: bool) -> None:
    """Of more channels than f32 holds the sums of, a convolution of computed weights is a sum of
    several; of known ones it is one of bytes."""
    weights = np.full((3, 160, 3, 3), -127, np.int8)
    inputs: dict[str, Any] = {"x": np.full((1, 160, 4, 5), -128, np.int8)}
    constants = {"w": weights} if known else {}
    inputs |= {} if known else {"w": weights}
    node = helper.make_node("ConvInteger", ["x", "w"], ["y"])
    model = model_of([node], inputs, constants=constants)
    kernels = kernels_of(model, inputs)
    assert not any(kernel["unit"] == "scalar" for kernel in kernels)
    assert sum("conv" in kernel["op"] for kernel in kernels) == (1 if known else 2)


def test_no_scalars() -> None:
    """Unsigned bytes come and go on the vector unit."""
    x = np.arange(512, dtype=np.uint8).reshape(1, 8, 8, 8)
    scalars: dict[str, Any] = {"xs": np.float32(0.1), "xz": np.uint8(7), "ws": np.float32(0.2)}
    scalars |= {"wz": np.int8(0), "ys": np.float32(3.5), "yz": np.uint8(90)}
    weights = (np.arange(16 * 8 * 9) % 251 - 125).astype(np.int8).reshape(16, 8, 3, 3)
    names = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"]
    node = helper.make_node("QLinearConv", names, ["y"], pads=[1, 1, 1, 1])
    model = model_of([node], {"x": x}, constants=scalars | {"w": weights})
    kernels = kernels_of(model, {"x": x})
    assert {kernel["unit"] for kernel in kernels} == {"cube", "vector"}


def dequantized(name: str, value: Any, scale: Any, zero: Any, constants: dict[str, Any]) -> Any:
    """The node that makes floats of bytes, known ones or a graph's value."""
    constants |= {f"{name}_scale": scale, f"{name}_zero": zero}
    if value is not None:
        constants[name] = value
    names = [name, f"{name}_scale", f"{name}_zero"]
    return helper.make_node("DequantizeLinear", names, [f"{name}_float"], axis=0)


@pytest.mark.parametrize("operator", ["Conv", "Gemm", "MatMul"])
def test_dequantized_operands(operator: str) -> None:
    """Products of floats that were bytes are products of bytes; quantized again they are
    onnxruntime's to the last bit, but of convolutions, of which those of few channels are products
    of f16, some are beside."""
    rng = np.random.default_rng(3)
    x_shape, w_shape = [3, 70], [20, 70]
    attributes: dict[str, Any] = {"transB": 1} if operator == "Gemm" else {}
    if operator == "Conv":
        x_shape, w_shape, attributes = [1, 8, 9, 7], [20, 8, 3, 3], {"pads": [1, 0, 1, 2]}
    if operator == "MatMul":
        w_shape = [70, 20]
    x = rng.integers(0, 256, x_shape).astype(np.uint8)
    w = rng.integers(-127, 128, w_shape).astype(np.int8)
    count = 1 if operator == "MatMul" else 20
    scales = np.float32(rng.uniform(0.001, 0.01, count)).reshape([] if count == 1 else [count])
    constants: dict[str, Any] = {"s": np.float32(0.11), "z": np.uint8(100)}
    nodes = [
        dequantized("x", None, np.float32(0.03), np.uint8(131), constants),
        dequantized("w", w, scales, np.zeros(scales.shape, np.int8), constants),
        helper.make_node(operator, ["x_float", "w_float"], ["c"], **attributes),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "s", "z"], ["y"]),
    ]
    model = model_of(nodes, {"x": x}, constants=constants)
    kernels = kernels_of(model, {"x": x}, 0.05 if operator == "Conv" else 0)
    assert {kernel["unit"] for kernel in kernels} == {"cube", "vector"}


@pytest.mark.parametrize("sizes", [(1, 32, 1), (17, 96, 33), (40, 4224, 31)], ids=str)
def test_bytes_reach_the_cube(sizes: tuple[int, int, int]) -> None:
    """With a known right side; sums beyond what f32 holds are exact, too."""
    m, k, n = sizes
    inputs: dict[str, Any] = {"x": np.full((m, k), -128, np.int8)}
    weights = np.random.default_rng(2).integers(-128, -125, (k, n)).astype(np.int8)
    node = helper.make_node("MatMulInteger", ["x", "w"], ["y"])
    kernels = kernels_of(model_of([node], inputs, constants={"w": weights}), inputs)
    assert [kernel["op"] for kernel in kernels if kernel["unit"] == "cube"] == ["matmul"]


@pytest.mark.parametrize("zero", [np.int8(-128), np.uint8(77)], ids=repr)
def test_bytes_stay_in_fractals(zero: Any) -> None:
    """Between convolutions, whose padding is the byte of the zero point; 35 pixels end inside a
    fractal."""
    rng, kind = np.random.default_rng(4), type(zero)
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    inputs: dict[str, Any] = {
        "x": rng.integers(low, high, (1, 32, 5, 7), endpoint=True).astype(kind)
    }
    constants: dict[str, Any] = {"z": zero, "s": np.float32(0.02), "t": np.float32(0.3)}
    nodes = []
    for layer, (source, result) in enumerate([("x", "h"), ("h", "y")]):
        weights = rng.integers(-127, 128, (32, 32, 3, 3))
        scales = np.float32(rng.uniform(0.001, 0.01, len(weights)))
        own = {"w": weights.astype(np.int8), "v": scales, "u": np.zeros(len(weights), np.int8)}
        constants |= {f"{name}{layer}": value for name, value in own.items()}
        names = [source, "s", "z", *(f"{name}{layer}" for name in "wvu"), "t", "z"]
        nodes.append(helper.make_node("QLinearConv", names, [result], pads=[1, 1, 1, 1]))
    kernels = kernels_of(model_of(nodes, inputs, constants=constants), inputs)
    names = [kernel["op"] for kernel in kernels if kernel["unit"] == "cube"]
    assert len(names) == 2 and "conv_sub_mul_quantize" in names
    assert len(kernels) <= 8  # one changes the layout of the input, one that of the result


def test_computed_scales() -> None:
    """The factor of scales that the graph is given is rounded once, in a kernel of its own: with
    x_scale = y_scale it is w_scale, a power of two, and many sums lie halfway between integers."""
    rng, names = np.random.default_rng(5), ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"]
    inputs: dict[str, Any] = {"x": rng.integers(-20, 20, (32, 16)).astype(np.int8)}
    inputs["w"] = rng.integers(-20, 20, (16, 32)).astype(np.int8)
    inputs |= {name: np.zeros((), np.int8) for name in ("xz", "yz")} | {"wz": np.zeros(32, np.int8)}
    inputs["ws"] = (2.0 ** -rng.integers(1, 7, 32)).astype(np.float32)
    inputs |= dict.fromkeys(("xs", "ys"), np.asarray(0.42, np.float32))
    model = model_of([helper.make_node("QLinearMatMul", names, ["y"])], inputs)
    kernels_of(model, {name: inputs[name] for name in names})
