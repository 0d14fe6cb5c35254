"""Masks, windows, transforms, determinants and optimizer steps against ONNX's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from onnx_support import (
    against_onnxruntime,
    against_reference,
    node_model,
    reference,
    run,
)
from pairs import all_pairs

RNG = np.random.default_rng(8)


@pytest.mark.parametrize(
    ("dtype", "axis"),
    [(np.int64, 0), (np.int64, 1), (np.int32, -1), (np.uint8, 0), (np.float32, 1)],
)
def test_one_hot(axis: int, dtype: Any) -> None:
    """Negative indices count from the end; what is beyond has no place."""
    indices = np.array([[0, 2, 3], [-1, -4, 7]])
    indices = abs(indices) if np.dtype(dtype).kind == "u" else indices
    values = np.array([0.5, 3.0], np.float32)
    operands = (indices.astype(dtype), np.int64(4), values)
    against_reference(*node_model("OneHot", *operands, known=[1], axis=axis))


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [None, -2, 0, 1, 9])
@pytest.mark.parametrize("known", [True, False])
def test_trilu(upper: int, k: int | None, known: bool) -> None:
    x = RNG.standard_normal((2, 3, 5)).astype(np.float32)
    operands = [x] if k is None else [x, np.array(k)]
    constants = [1] if known and k is not None else []
    against_onnxruntime(*node_model("Trilu", *operands, known=constants, upper=upper))


@pytest.mark.parametrize("attributes", [{}, {"k": 1}, {"k": -2, "dtype": 7}])
def test_eye_like(attributes: dict[str, int]) -> None:
    against_onnxruntime(*node_model("EyeLike", np.zeros((3, 5), np.float32), **attributes))


@pytest.mark.parametrize(
    ("operator", "operands"),
    [
        ("HannWindow", [5000]),
        ("HammingWindow", [10]),
        ("BlackmanWindow", [10]),
        ("Range", [0, 10000, 2]),
    ],
)
def test_computed(operator: str, operands: list[int]) -> None:
    """Also where the result is too large to be one of the numbers that shapes are made of."""
    values = [np.int64(value) for value in operands]
    model, _ = node_model(operator, *values, known=range(len(values)))
    zero = np.zeros((), np.int64 if operator == "Range" else np.float32)
    model.graph.input.append(
        helper.make_tensor_value_info("z", 7 if operator == "Range" else 1, [])
    )
    model.graph.node[0].output[0] = "h"
    model.graph.node.append(helper.make_node("Add", ["h", "z"], ["y"]))
    against_reference(model, {"z": zero})


@pytest.mark.parametrize("shape", [(3, 1, 1), (2, 3, 3), (2, 2, 3, 3)])
def test_determinants(shape: tuple[int, ...]) -> None:
    """Matrices of a batch choose their own pivots, few and many of them; one is singular."""
    x = RNG.standard_normal(shape).astype(np.float32)
    x[..., 0, 0] = 0
    x[:1] *= 0 if len(shape) > 2 else 1
    model, inputs = node_model("Det", x)
    np.testing.assert_allclose(run(model, inputs)["y"], np.linalg.det(x), rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("length", [None, 9, 4])
def test_fourier(onesided: int, length: int | None) -> None:
    x = RNG.standard_normal((2, 7, 3, 1 if onesided else 2)).astype(np.float32)
    count = None if length is None else np.array(length)
    operands = (x, count, np.array(1))
    known = [2] if length is None else [1, 2]
    against_reference(*node_model("DFT", *operands, known=known, onesided=onesided))


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("length", [10, 7])
def test_inverse_fourier(onesided: int, length: int) -> None:
    x = RNG.standard_normal((2, length // 2 + 1 if onesided else length, 2)).astype(np.float32)
    operands = (x, np.array(length), np.array(1))
    options = {"known": [1, 2], "onesided": onesided, "inverse": 1}
    against_reference(*node_model("DFT", *operands, **options))


@pytest.mark.parametrize(
    ("step", "onesided", "windowed"), all_pairs([3, 4, 8, 11], [0, 1], [False, True])
)
def test_short_time_fourier(step: int, onesided: int, windowed: bool) -> None:
    x = RNG.standard_normal((2, 40, 1)).astype(np.float32)
    window = np.hanning(8).astype(np.float32) if windowed else None
    operands = (x, np.array(step), window, np.array(8))
    model, inputs = node_model("STFT", *operands, known=[1, 3], onesided=onesided)
    found = run(model, inputs)["y"]
    starts = range(0, 33, step)
    pieces = np.stack([x[:, i : i + 8, 0] for i in starts], 1)
    pieces = pieces if window is None else pieces * window
    wanted = np.fft.rfft(pieces) if onesided else np.fft.fft(pieces)
    np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], wanted, atol=0.02)


STEPS: list[tuple[str, int, dict[str, Any]]] = [
    ("Adagrad", 3, {"norm_coefficient": 0.1, "decay_factor": 0.2, "epsilon": 1e-3}),
    ("Adam", 4, {"norm_coefficient": 0.1, "norm_coefficient_post": 0.2, "epsilon": 1e-3}),
    ("Momentum", 3, {"norm_coefficient": 0.1, "alpha": 0.9, "beta": 0.7, "mode": "nesterov"}),
    ("Momentum", 3, {"norm_coefficient": 0.1, "alpha": 0.9, "beta": 0.7, "mode": "standard"}),
]


@pytest.mark.parametrize(("operator", "kinds", "attributes"), STEPS)
@pytest.mark.parametrize("steps", [0, 3])
def test_two_tensors_are_trained(
    operator: str, kinds: int, attributes: dict[str, Any], steps: int
) -> None:
    values = list(RNG.uniform(0.1, 1, (kinds * 2, 3)).astype(np.float32))
    operands = [np.float32(0.1), np.int64(steps), *values]
    options = {"outputs": 2 * (kinds - 1), "domain": "ai.onnx.preview.training", **attributes}
    model, inputs = node_model(operator, *operands, **options)
    found, wanted = run(model, inputs), reference(model, inputs)
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-3)


@pytest.mark.parametrize(
    ("operator", "operands", "attributes"),
    [
        ("Binarizer", [np.array([-1, 0.5, 0.6], np.float32)], {"threshold": 0.5}),
        (
            "ArrayFeatureExtractor",
            [np.arange(6, dtype=np.float32).reshape(2, 3), np.array([2, 0])],
            {},
        ),
        ("Scaler", [np.ones((2, 3), np.float32)], {"offset": [0.5, 1, 2], "scale": [2.0, 3, 4]}),
        (
            "LabelEncoder",
            [np.array([3, 7, 1])],
            {"keys_int64s": [1, 3], "values_floats": [0.5, 1.5], "default_float": 9.0},
        ),
        (
            "LabelEncoder",
            [np.array([0.5, np.nan, 2], np.float32)],
            {"keys_floats": [np.nan, 2.0], "values_int64s": [4, 5]},
        ),
    ],
)
def test_classical(operator: str, operands: list[Any], attributes: dict[str, Any]) -> None:
    against_onnxruntime(*node_model(operator, *operands, domain="ai.onnx.ml", **attributes))


GEMM = [{}, {"alpha": 0.5}, {"alpha": 0.5, "beta": 2.0}, {"transA": 1, "alpha": 2.0}]
GEMM += [{"transB": 1, "alpha": 0.25}, {"transA": 1, "transB": 1, "beta": 0.0}]


@pytest.mark.parametrize(
    ("attributes", "c", "dtype"), all_pairs(GEMM, [None, (4,), (3, 1)], [np.float32, np.float16])
)
def test_gemm(attributes: dict[str, Any], c: tuple[int, ...] | None, dtype: Any) -> None:
    """Without C, alpha counts all the same."""
    a, b = RNG.standard_normal((3, 5)), RNG.standard_normal((5, 4))
    a = a.T if attributes.get("transA") else a
    b = b.T if attributes.get("transB") else b
    operands = [a.astype(dtype), b.astype(dtype)]
    operands += [] if c is None else [np.asarray(RNG.standard_normal(c), dtype)]
    against_onnxruntime(*node_model("Gemm", *operands, opset=13, **attributes))
