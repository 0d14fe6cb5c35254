"""Sampling of images at computed places, against onnxruntime or ONNX's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnx_support import against_onnxruntime, against_reference, means, node_model
from pairs import all_pairs


def values(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def sampled(mode: str, padding: str, aligned: int) -> Any:
    operands = values(2, 2, 4, 5), values(2, 2, 3, 2) * 2
    attributes = {"mode": mode, "padding_mode": padding, "align_corners": aligned}
    return node_model("GridSample", *operands, opset=16, **attributes)


@pytest.mark.parametrize(
    ("mode", "padding", "aligned"),
    all_pairs(["bilinear", "nearest", "bicubic"], ["zeros", "border", "reflection"], [0, 1]),
)
def test_grid_sample(mode: str, padding: str, aligned: int) -> None:
    """Also far outside."""
    means(*sampled(mode, padding, aligned))


@pytest.mark.parametrize(
    ("mode", "padding", "aligned"),
    [("bilinear", "reflection", 1), ("nearest", "border", 0), ("bicubic", "zeros", 1)],
)
def test_grid_sample_is_compiled(mode: str, padding: str, aligned: int) -> None:
    against_onnxruntime(*sampled(mode, padding, aligned))


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_grid_sample_of_volumes(mode: str, padding: str) -> None:
    operands = values(1, 2, 3, 4, 5), values(1, 2, 3, 2, 3)
    model = node_model("GridSample", *operands, mode=mode, padding_mode=padding)
    means(*model)
    if (mode, padding) == ("linear", "border"):
        against_onnxruntime(*model)


@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("size", [[2, 3, 4, 5], [1, 2, 3, 4, 5]])
def test_affine_grid(size: list[int], aligned: int) -> None:
    rank = len(size) - 2
    operands = values(size[0], rank, rank + 1), np.array(size, np.int64)
    against_reference(*node_model("AffineGrid", *operands, known=[1], align_corners=aligned))


@pytest.mark.parametrize(("group", "parts"), [(1, 1), (2, 1), (2, 4)])
def test_deformed_convolution(group: int, parts: int) -> None:
    places = (4, 3)
    operands = (
        values(2, 4, 6, 6),
        values(6, 4 // group, 3, 2),
        values(2, parts * 12, *places),
        values(6),
        values(2, parts * 6, *places),
    )
    attributes = {"strides": [2, 2], "pads": [1, 0, 2, 1], "group": group, "offset_group": parts}
    against_reference(*node_model("DeformConv", *operands, **attributes))
