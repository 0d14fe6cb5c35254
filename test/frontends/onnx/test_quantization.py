"""Casts, quantized numbers and their products against onnxruntime and ONNX's reference."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import davinci
from davinci.errors import InputError
from onnx_support import against_onnxruntime, against_reference, model_of, node_model, run
from pairs import all_pairs, in_turn

RNG = np.random.default_rng(5)
TYPES = [np.float16, np.float32, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32]
TYPES += [np.int64, np.uint64, np.bool_]
NUMBERS = {np.dtype(t): n for t, n in zip(TYPES, (10, 1, 3, 2, 5, 4, 6, 12, 7, 13, 9), strict=True)}


def integers(dtype: Any, *shape: int) -> Any:
    limits = np.iinfo(dtype)
    return np.asarray(RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True))


@pytest.mark.parametrize("target", TYPES)
def test_cast(target: Any) -> None:
    """Values that both types have, and for integers those of which bits are lost."""
    kind, inputs = np.dtype(target).kind, {}
    for source in TYPES:
        x = np.array([0, 1, 2, 3.7, 100, 0.4]).astype(source)
        if np.dtype(source).kind in "iu" and kind in "iub":
            x = np.concatenate([x, integers(source, 8)])
        elif np.dtype(source).kind in "if" and kind in "if":
            x = np.concatenate([x, -x])
        inputs[f"x_{np.dtype(source)}"] = x
    to = NUMBERS[np.dtype(target)]
    nodes = [helper.make_node("Cast", [name], [f"y{name}"], to=to) for name in inputs]
    against_reference(model_of(nodes, inputs, [f"y{name}" for name in inputs]), inputs)


NARROW = [
    *(ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2fnuz),
    *(ml_dtypes.float4_e2m1fn, ml_dtypes.int4, ml_dtypes.uint2),
]


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("target", NARROW)
def test_cast_to_narrow_types(target: Any, saturate: int) -> None:
    """And back; what is too large saturates or not, integers keep their low bits."""
    x = np.array([0, 0.4, -1.5, 2.75, 100, -700, 1e6], np.float32)
    x = x[:5] if np.dtype(target).name in ("int4", "uint2") else x
    to = helper.np_dtype_to_tensor_dtype(np.dtype(target))
    options = {"saturate": saturate} if "float8" in np.dtype(target).name else {}
    nodes = [
        helper.make_node("Cast", ["x"], ["h"], to=to, **options),
        helper.make_node("Cast", ["h"], ["y"], to=TensorProto.FLOAT),
    ]
    inputs = {"x": x}
    against_reference(model_of(nodes, inputs, opset=25), inputs)


@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
@pytest.mark.parametrize("saturate", [0, 1])
def test_cast_to_powers_of_two(mode: str, saturate: int) -> None:
    x = np.array([1, 1.4, 1.5, 1.6, 3, 1e-30, 3e38, np.inf, np.nan], np.float32)
    options = {"round_mode": mode, "saturate": saturate}
    nodes = [
        helper.make_node("Cast", ["x"], ["h"], to=TensorProto.FLOAT8E8M0, **options),
        helper.make_node("Cast", ["h"], ["y"], to=TensorProto.FLOAT),
    ]
    against_reference(model_of(nodes, {"x": x}, opset=25), {"x": x})


@pytest.mark.parametrize("target", [np.float16, np.int32, np.bool_])
def test_cast_like(target: Any) -> None:
    x = np.array([0, 1.5, -2.5, 100], np.float32)
    against_reference(*node_model("CastLike", x, np.zeros(1, target)))


@pytest.mark.parametrize(
    ("source", "target"),
    [(np.float32, TensorProto.INT32), (np.uint8, TensorProto.INT8), (np.int32, TensorProto.FLOAT)],
)
def test_bit_cast(source: Any, target: int) -> None:
    x = np.array([0, 1, 100, 77], source)
    against_reference(*node_model("BitCast", x, to=target, opset=26))


SCALES: list[tuple[Any, Any, dict[str, Any]]] = [
    (np.float32(0.1), np.uint8(7), {}),
    (np.float32(0.1), np.int8(-7), {}),
    (np.float32(0.001), np.int16(-7), {}),
    (np.float32(0.1), None, {}),
    (np.array([0.1, 0.2, 0.05], np.float32), np.array([3, 0, 200], np.uint8), {"axis": 1}),
    (np.array([0.1, 0.2], np.float32), np.array([3, -1], np.int8), {"axis": 0}),
    (np.array([0.1, 0.2], np.float32), np.array([3, -1], np.int8), {"axis": -3}),
]


@pytest.mark.parametrize(("scale", "zero", "attributes"), SCALES)
def test_quantize(scale: Any, zero: Any, attributes: dict[str, Any]) -> None:
    x = (RNG.standard_normal((2, 3, 10)) * 20).astype(np.float32)
    x.flat[:2] = 1e9, -1e9
    zero = None if zero is None else np.asarray(zero)
    against_onnxruntime(*node_model("QuantizeLinear", x, scale, zero, **attributes))


def test_halves_are_rounded_to_even() -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5], np.float32)
    against_onnxruntime(*node_model("QuantizeLinear", x, np.float32(1), np.int8(0)))


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("block", [2, 4])
def test_blocks(axis: int, block: int) -> None:
    """A last block may be shorter."""
    x = (RNG.standard_normal((2, 3, 10)) * 20).astype(np.float32)
    shape = [2, 3, 10]
    shape[axis] = -(-shape[axis] // block)
    scale = RNG.uniform(0.1, 0.3, shape).astype(np.float32)
    zero = RNG.integers(0, 20, shape).astype(np.uint8)
    options = {"axis": axis, "block_size": block}
    against_reference(*node_model("QuantizeLinear", x, scale, zero, **options))
    q = integers(np.uint8, 2, 3, 10)
    against_reference(*node_model("DequantizeLinear", q, scale, zero, **options))


def test_type_of_the_result_by_attribute() -> None:
    x = np.array([-300, 0.4, 300], np.float32)
    options = {"output_dtype": TensorProto.INT16}
    against_reference(*node_model("QuantizeLinear", x, np.float32(0.1), **options))
    q = np.array([1, 2, 3], np.int8)
    options = {"output_dtype": TensorProto.FLOAT16}
    against_reference(*node_model("DequantizeLinear", q, np.float32(0.5), opset=23, **options))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.uint16])
def test_dequantize(dtype: Any) -> None:
    x, zero = integers(dtype, 2, 3, 5), integers(dtype, 3)
    scale = np.array([0.1, 0.2, 0.05], np.float32)
    against_onnxruntime(*node_model("DequantizeLinear", x, scale, zero, axis=1))


def test_one_scale_of_a_vector() -> None:
    """The default axis, 1, is none of its axes; one scale has none."""
    x, scale = np.array([-7, 3, 70], np.int8), np.float32(0.5)
    against_onnxruntime(*node_model("DequantizeLinear", x, scale, np.int8(2)))
    against_onnxruntime(*node_model("QuantizeLinear", x.astype(np.float32), scale))


def test_dequantize_i32() -> None:
    x = np.array([-70000, 3, 70000], np.int32)
    against_onnxruntime(*node_model("DequantizeLinear", x, np.float32(0.5)))


@pytest.mark.parametrize("x", [[-3, 0, 5.5], [1, 2], [-4, -1], [0, 0], [0, 2, -3, -2.5, 1.34, 0.5]])
def test_dynamic_quantize(x: list[float]) -> None:
    """The last: -2.5 / scale is just above -127.5, and -127.5 if it is multiplied by 1 / scale."""
    model = node_model("DynamicQuantizeLinear", np.array(x, np.float32), outputs=3)
    against_onnxruntime(*model)


def test_scales_that_do_not_fit() -> None:
    x, scale = np.zeros((2, 3), np.int8), np.ones(4, np.float32)
    with pytest.raises(InputError, match=r"scale or zero point of shape \[4\] for \[2, 3\]"):
        run(*node_model("DequantizeLinear", x, scale))


SHAPES = [((4, 3), (3, 5)), ((2, 4, 3), (3, 5)), ((2, 4, 3), (2, 3, 5)), ((3,), (3, 5))]
SHAPES += [((4, 3), (3,)), ((20, 40), (40, 24)), ((1, 4, 3), (2, 3, 5))]


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_integer_products(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    operands = [integers(np.uint8, *a), integers(np.int8, *b), np.uint8(200), np.int8(-3)]
    against_reference(*node_model("MatMulInteger", *operands))


@pytest.mark.parametrize(
    ("types", "zeros", "known"),
    all_pairs(
        [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)],
        [False, True],
        [True, False],
    ),
)
def test_types_of_integer_products(types: tuple[Any, Any], zeros: bool, known: bool) -> None:
    operands = [integers(types[0], 4, 3), integers(types[1], 3, 5)]
    operands += [integers(types[0]), integers(types[1])] if zeros else []
    constants = range(1, len(operands)) if known else []
    against_reference(*node_model("MatMulInteger", *operands, known=list(constants)))


def test_zero_points_of_rows_and_columns() -> None:
    a, b = integers(np.uint8, 4, 6), integers(np.int8, 6, 3)
    rows, columns = integers(np.uint8, 4), integers(np.int8, 3)
    found = run(*node_model("MatMulInteger", a, b, rows, columns))["y"]
    wanted = (a.astype(int) - rows[:, None]) @ (b.astype(int) - columns)
    np.testing.assert_array_equal(found, wanted)


def test_the_product_itself_runs_on_the_cube() -> None:
    operands = [integers(np.int8, 32, 64), integers(np.uint8, 64, 32), np.int8(7), np.uint8(9)]
    model, inputs = node_model("MatMulInteger", *operands, known=[1, 2, 3])
    executable = davinci.compile(model, cores=2)
    executable.run(inputs)
    units = {kernel["unit"] for kernel in executable.profile["kernels"]}
    assert "cube" in units and "scalar" not in units


@pytest.mark.parametrize("types", [(np.uint8, np.uint8), (np.int8, np.int8)])
def test_quantized_products(types: tuple[Any, Any]) -> None:
    a, b = integers(types[0], 2, 4, 8), integers(types[1], 8, 5)
    a_zero, b_zero, y_zero = types[0](3), types[1](4), types[0](9)
    scales = np.float32([0.02, 0.03, 0.2])
    operands = (a, scales[0], a_zero, b, scales[1], b_zero, scales[2], y_zero)
    against_onnxruntime(*node_model("QLinearMatMul", *operands))


CONVOLUTIONS: list[dict[str, Any]] = [
    {},
    {"pads": [1, 2, 0, 1]},
    {"strides": [2, 2], "auto_pad": "SAME_UPPER"},
    {"dilations": [2, 1]},
]


@pytest.mark.parametrize(("attributes", "zeros"), in_turn(CONVOLUTIONS, [[], [7, 3]]))
def test_integer_convolutions(attributes: dict[str, Any], zeros: list[int]) -> None:
    """What lies around the input has the value of its zero point."""
    x, w = integers(np.uint8, 1, 3, 6, 6), integers(np.uint8, 4, 3, 3, 3)
    operands = (x, w, *map(np.uint8, zeros))
    against_onnxruntime(*node_model("ConvInteger", *operands, **attributes))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("each", [False, True])
def test_quantized_convolutions(groups: int, each: bool) -> None:
    x, w = integers(np.uint8, 1, 4, 6, 6), integers(np.int8, 6, 4 // groups, 3, 3)
    bias = RNG.integers(-500, 500, 6).astype(np.int32)
    w_scale = RNG.uniform(0.001, 0.01, 6 if each else ()).astype(np.float32)
    w_zero = np.zeros(6 if each else (), np.int8)
    scales = (np.float32(0.02), np.uint8(100)), (np.float32(0.03), np.uint8(120))
    operands = (x, *scales[0], w, w_scale, w_zero, *scales[1], bias)
    model = node_model("QLinearConv", *operands, group=groups, pads=[1, 1, 1, 1])
    against_onnxruntime(*model)
