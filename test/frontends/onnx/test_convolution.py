"""Convolutions against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from davinci.errors import InputError
from onnx_support import against_onnxruntime, node_model, run
from pairs import in_turn

CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 3, 8), (4, 3, 3), {}),
    ((2, 3, 7, 6), (4, 3, 3, 2), {"pads": [1, 0, 2, 1], "strides": [2, 1]}),
    ((1, 4, 7, 7), (6, 2, 3, 3), {"group": 2, "dilations": [2, 1]}),
    ((1, 3, 6, 6), (3, 1, 3, 3), {"group": 3, "pads": [1, 1, 1, 1]}),
    ((1, 2, 5, 5), (3, 2, 3, 3), {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
    ((1, 2, 6, 5), (3, 2, 2, 2), {"auto_pad": "SAME_UPPER"}),
    ((1, 2, 6, 5), (3, 2, 2, 2), {"auto_pad": "VALID"}),
    ((1, 2, 4, 5, 3), (2, 2, 2, 3, 2), {"pads": [0, 1, 0, 1, 0, 1]}),
    ((2, 5, 4, 3), (7, 5, 1, 1), {}),
    ((1, 5, 5, 4), (7, 5, 1, 1), {"strides": [2, 2]}),
    ((1, 4, 4, 3), (6, 2, 1, 1), {"group": 2}),
    ((1, 2, 4, 3), (3, 2, 1, 1), {"pads": [1, 1, 1, 1]}),
]

TRANSPOSED: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 3, 5), (3, 2, 3), {"strides": [2]}),
    ((1, 2, 3, 3), (2, 3, 3, 3), {"strides": [3, 2], "output_shape": [10, 8]}),
    ((1, 2, 3, 3), (2, 3, 3, 3), {"strides": [3, 2], "output_padding": [1, 1]}),
    ((1, 2, 3, 3), (2, 3, 3, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ((1, 2, 3, 3), (2, 3, 3, 3), {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
    ((1, 2, 3, 3), (2, 3, 3, 3), {"auto_pad": "VALID", "strides": [2, 2]}),
    ((1, 2, 4, 4), (2, 3, 2, 2), {"dilations": [2, 2], "pads": [0, 1, 1, 0]}),
    ((2, 4, 3, 3), (4, 2, 3, 3), {"group": 2, "pads": [2, 2, 2, 2], "strides": [2, 2]}),
    ((1, 2, 3, 4), (2, 2, 1, 1), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    ((1, 2, 2, 3, 2), (2, 2, 2, 2, 2), {"strides": [2, 1, 2]}),
]


def values(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("x", "w", "attributes", "bias"),
    [(*case, bias) for case, bias in in_turn(CONVOLUTIONS, [True, False])],
)
def test_convolution(
    x: tuple[int, ...], w: tuple[int, ...], attributes: dict[str, Any], bias: bool
) -> None:
    operands = [values(*x), values(*w), *([values(w[0])] if bias else [])]
    against_onnxruntime(*node_model("Conv", *operands, known=[1], **attributes))


@pytest.mark.parametrize(
    ("x", "w", "attributes", "known"),
    [(*case, known) for case, known in in_turn(TRANSPOSED, [True, False])],
)
def test_transposed(
    x: tuple[int, ...], w: tuple[int, ...], attributes: dict[str, Any], known: bool
) -> None:
    bias = values(w[1] * attributes.get("group", 1))
    operands = (values(*x), values(*w), bias)
    against_onnxruntime(
        *node_model("ConvTranspose", *operands, known=[1] if known else [], **attributes)
    )


def test_weights_that_do_not_fit() -> None:
    model, inputs = node_model("Conv", values(1, 3, 5, 5), values(4, 3, 3, 3), group=3)
    with pytest.raises(InputError, match=r"weights \[4, 3, 3, 3\] in 3 groups"):
        run(model, inputs)
