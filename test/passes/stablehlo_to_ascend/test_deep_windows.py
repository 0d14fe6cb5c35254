"""Convolutions and pools of three and more dimensions: images whose channels hold taps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import davinci
from davinci.reference import check
from onnx_support import node_model

Shape = tuple[int, ...]

CONVOLUTIONS: list[tuple[Shape, Shape, dict[str, Any]]] = [
    ((1, 3, 5, 7, 6), (5, 3, 3, 3, 3), {"pads": [1, 1, 1, 1, 1, 1]}),
    ((2, 4, 9, 5, 4), (6, 2, 2, 3, 1), {"group": 2, "strides": [3, 1, 2]}),
    ((1, 17, 7, 5, 5), (16, 17, 3, 3, 3), {"dilations": [2, 1, 2], "pads": [2, 1, 0, 0, 1, 2]}),
    ((1, 32, 4, 4, 5), (32, 1, 2, 2, 3), {"group": 32, "auto_pad": "SAME_UPPER"}),
    ((2, 3, 4, 16, 16), (7, 3, 2, 8, 8), {"strides": [2, 8, 8]}),
    ((2, 5, 3, 2, 4), (4, 5, 1, 1, 1), {}),
    ((1, 2, 3, 4, 3, 5), (3, 2, 2, 3, 1, 2), {"strides": [1, 1, 2, 1]}),
]
FAR_APART: list[tuple[Shape, Shape, dict[str, Any]]] = [
    ((1, 3, 270, 6), (5, 3, 3, 3), {"dilations": [256, 1], "pads": [256, 1, 256, 1]}),
    ((2, 4, 300), (4, 2, 2), {"group": 2, "dilations": [290]}),
    ((1, 2, 270, 270), (3, 2, 2, 2), {"dilations": [260, 261]}),
]
"""Taps further apart than `load3d` reaches."""

TRANSPOSED: list[tuple[Shape, Shape, dict[str, Any]]] = [
    ((1, 3, 3, 4, 2), (3, 5, 3, 2, 2), {"strides": [2, 2, 1]}),
    ((2, 4, 2, 3, 3), (4, 3, 3, 3, 3), {"group": 2, "strides": [1, 2, 2], "pads": [1] * 6}),
]
POOLS: list[tuple[str, Shape, dict[str, Any]]] = [
    ("MaxPool", (1, 17, 5, 7, 6), {"kernel_shape": [3, 3, 2], "pads": [1, 1, 0, 1, 1, 0]}),
    ("MaxPool", (2, 3, 9, 4, 5), {"kernel_shape": [2, 2, 2], "dilations": [3, 1, 2]}),
    ("MaxPool", (1, 5, 6, 5, 4), {"kernel_shape": [2, 1, 2], "strides": [2, 2, 3]}),
    ("AveragePool", (2, 16, 4, 4, 4), {"kernel_shape": [2, 2, 2], "strides": [2, 2, 2]}),
    ("AveragePool", (1, 6, 5, 4, 7), {"kernel_shape": [3, 3, 3], "pads": [1] * 6}),
]


def numbers(shape: Shape, most: int) -> Any:
    random = np.random.default_rng(sum(shape))
    return random.integers(-most, most + 1, shape).astype(np.float32)


def check_node(name: str, operands: list[Any], rtol: float = 0, **attributes: Any) -> None:
    known = range(1, len(operands))
    model, inputs = node_model(name, *operands, known=known, **attributes)
    executable = davinci.compile(model, cores=5)
    (found,) = executable.run(inputs).values()
    (wanted,) = check.reference_onnx(model, inputs).values()
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=0)
    assert not executable.profile["ops"]["scalar"]


@pytest.mark.parametrize(("x", "w", "attributes"), [*CONVOLUTIONS, *FAR_APART], ids=str)
def test_convolution(x: Shape, w: Shape, attributes: dict[str, Any]) -> None:
    check_node("Conv", [numbers(x, 3), numbers(w, 1)], **attributes)


@pytest.mark.parametrize(("x", "w", "attributes"), TRANSPOSED, ids=str)
def test_transposed(x: Shape, w: Shape, attributes: dict[str, Any]) -> None:
    check_node("ConvTranspose", [numbers(x, 3), numbers(w, 1)], **attributes)


@pytest.mark.parametrize(("name", "x", "attributes"), POOLS, ids=str)
def test_pool(name: str, x: Shape, attributes: dict[str, Any]) -> None:
    check_node(name, [numbers(x, 9)], rtol=1e-6 * (name == "AveragePool"), **attributes)
