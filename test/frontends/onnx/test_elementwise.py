"""Arithmetic, bits and activations against onnxruntime, or ONNX's reference where it has none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from davinci.errors import InputError
from onnx_support import against_onnxruntime, against_reference, model_of, node_model, run

REALS = np.array([-np.inf, -7.5, -1.5, -0.5, -0.0, 0.0, 0.3, 2.5, 100.0, np.inf], np.float32)
MORE = np.linspace(-4, 4, 19, dtype=np.float32).reshape(1, 19)

UNARY = [
    *("Abs", "Neg", "Sign", "Ceil", "Floor", "Round", "Relu", "Softsign", "HardSwish", "Mish"),
    *("Softplus", "Sigmoid", "Tanh", "Exp", "IsNaN", "IsInf", "Erf", "Identity", "Gelu"),
]


def test_unary() -> None:
    nodes = [helper.make_node(operator, ["x"], [operator]) for operator in UNARY]
    against_reference(model_of(nodes, {"x": MORE}, UNARY), {"x": MORE})


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("IsInf", {"detect_negative": 0}),
        ("IsInf", {"detect_positive": 0}),
        ("IsInf", {"detect_positive": 0, "detect_negative": 0}),
        ("LeakyRelu", {"alpha": 0.2}),
        ("ThresholdedRelu", {"alpha": 0.4}),
        ("Celu", {"alpha": 2.0}),
        ("Celu", {"alpha": -2.0}),
        ("Elu", {"alpha": 1.7}),
        ("Selu", {"alpha": 1.2, "gamma": 1.4}),
        ("HardSigmoid", {"alpha": 0.4, "beta": 0.1}),
        ("Shrink", {"lambd": 0.4, "bias": 0.3}),
        ("Gelu", {"approximate": "tanh"}),
    ],
)
def test_activations_of_all_reals(operator: str, attributes: dict[str, Any]) -> None:
    x = MORE if operator == "Gelu" else REALS
    against_reference(*node_model(operator, x, **attributes))


@pytest.mark.parametrize("operator", ["Sign", "Round", "Relu", "LeakyRelu", "IsNaN", "Softplus"])
def test_nan_stays(operator: str) -> None:
    against_reference(*node_model(operator, np.array([1, np.nan, -2], np.float32)))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int32])
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_bit_shift(dtype: Any, direction: str) -> None:
    """Shifts right of unsigned integers bring in zeros, of signed ones the sign."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = np.array([low, high, high - 5, 77, 1], dtype)
    by = np.array([1, 3, 0, np.iinfo(dtype).bits, 7], dtype)
    against_reference(*node_model("BitShift", x, by, direction=direction, opset=28))


@pytest.mark.parametrize("fmod", [0, 1])
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.float32])
def test_mod(dtype: Any, fmod: int) -> None:
    a = np.array([7, 7, -7, -7, 6, -6, 0], np.int8)
    b = np.array([3, -3, 3, -3, 3, 3, 5], np.int8)
    if np.dtype(dtype).kind == "u":
        a, b = abs(a), abs(b)
    against_reference(*node_model("Mod", a.astype(dtype), b.astype(dtype), fmod=fmod))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32])
def test_integers_are_divided_towards_zero(dtype: Any) -> None:
    a = np.array([7, 100, 125, 1], dtype)
    b = np.array([2, 3, 50, 7], dtype)
    signs = np.array([-1, 1, -1, 1], dtype) if np.dtype(dtype).kind == "i" else dtype(1)
    against_onnxruntime(*node_model("Div", a * signs, b))


@pytest.mark.parametrize(
    ("x", "exponent"),
    [
        (np.array([1, 2, 3], np.float32), np.array([4, 5, 6], np.int64)),
        (np.array([1, 2, -3], np.int64), np.array([4.0, 5.0, 3.0], np.float32)),
        (np.array([10, 17, 3], np.int32), np.array([0.5, 0.5, 2.5], np.float32)),
        (np.array([2.5, 4, 0], np.float32), np.array([[[0.5]]], np.float32)),
        (np.array([2.5, -4, 0], np.float32), np.array([[2.0], [3.0]], np.float32)),
        (np.array([2, -4, 0], np.int32), np.array(2, np.int64)),
    ],
)
@pytest.mark.parametrize("known", [[], [1]])
def test_pow_of_mixed_types(x: Any, exponent: Any, known: list[int]) -> None:
    """The exponent may be a constant of higher rank than the base."""
    against_onnxruntime(*node_model("Pow", x, exponent, known=known))


@pytest.mark.parametrize("kind", [np.float32, np.uint8])
@pytest.mark.parametrize("bounds", [(2, 5), (None, 5), (2, None), (None, None), (5, 2)])
def test_clip(kind: Any, bounds: tuple[int | None, int | None]) -> None:
    low, high = (None if value is None else np.array(value, kind) for value in bounds)
    against_onnxruntime(*node_model("Clip", np.arange(8).astype(kind), low, high, opset=13))


@pytest.mark.parametrize("attributes", [{}, {"min": -1.0}, {"max": 6.0, "min": 0.0}])
def test_clip_by_attributes(attributes: dict[str, float]) -> None:
    """Without bounds the largest floats are the bounds: infinity is clipped."""
    against_onnxruntime(*node_model("Clip", REALS, opset=6, **attributes))


@pytest.mark.parametrize("operator", ["Max", "Min", "Sum", "Mean"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_variadic(operator: str, count: int) -> None:
    shapes = [(3, 1), (1, 4), (4,), ()]
    operands = [np.full(shape, i * 1.5, np.float32) for i, shape in enumerate(shapes[:count])]
    against_onnxruntime(*node_model(operator, *operands))


@pytest.mark.parametrize("operator", ["Max", "Min"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.uint64, np.int8, np.int64])
def test_extrema_of_integers(operator: str, dtype: Any) -> None:
    limits = np.iinfo(dtype)
    a = np.array([limits.min, limits.max, 5], dtype)
    against_onnxruntime(*node_model(operator, a, a[::-1].copy(), opset=13))


@pytest.mark.parametrize("shape", [(), (1,), (2, 1), (2, 3), (1, 1, 1)])
def test_where_with_a_condition_that_broadcasts(shape: tuple[int, ...]) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    condition = np.resize([True, False, False], shape)
    against_onnxruntime(*node_model("Where", condition, x, x - 10))


@pytest.mark.parametrize(
    ("x", "slope"), [((2, 3, 4), (3, 1)), ((2, 3), (1,)), ((3, 2), (2,)), ((2, 2), (1, 2))]
)
def test_prelu(x: tuple[int, ...], slope: tuple[int, ...]) -> None:
    values = np.linspace(-2, 3, int(np.prod(x)), dtype=np.float32).reshape(x)
    slopes = np.linspace(0.1, 0.5, int(np.prod(slope)), dtype=np.float32).reshape(slope)
    against_onnxruntime(*node_model("PRelu", values, slopes))


def test_element_types_are_held_against_the_operator() -> None:
    model, inputs = node_model("Add", np.zeros(3, np.float32), np.zeros(3, np.float32))
    model.graph.input[1].type.tensor_type.elem_type = 7
    with pytest.raises(InputError, match=r"input 1 \(B\) is tensor\(int64\).*tensor\(float\)"):
        run(model, inputs)
    model, inputs = node_model("Sqrt", np.zeros(3, np.float32))
    model.graph.input[0].type.tensor_type.elem_type = 7
    with pytest.raises(InputError, match=r"input 0 \(X\) is tensor\(int64\)"):
        run(model, inputs)
