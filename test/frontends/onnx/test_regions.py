"""Pools over regions against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from davinci.errors import CompileError
from onnx_support import against_onnxruntime, means, node_model, run

REGIONS = np.array(
    [[0, 0, 5, 4], [1.3, 2.2, 3.1, 7], [6, 5, 6, 5], [-3, -2, 2, 2], [3, 3, 20, 20]], np.float32
)
NUMBERS = np.array([0, 1, 1, 0, 1], np.int64)


def values(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("opset", "more", "mode"),
    [
        (10, {}, "avg"),
        (16, {}, "max"),
        (16, {"coordinate_transformation_mode": "output_half_pixel"}, "avg"),
    ],
)
def test_align(opset: int, more: dict[str, Any], mode: str) -> None:
    attributes = {"output_height": 3, "output_width": 2, "sampling_ratio": 2, "spatial_scale": 0.9}
    operands = (values(2, 2, 8, 9), REGIONS, NUMBERS)
    model = node_model("RoiAlign", *operands, opset=opset, mode=mode, **attributes, **more)
    means(*model)
    if mode == "max":
        against_onnxruntime(*model)


def test_number_of_samples_that_depends_on_regions() -> None:
    model, inputs = node_model("RoiAlign", values(2, 3, 8, 9), REGIONS, NUMBERS, output_height=2)
    with pytest.raises(CompileError, match="number of samples depends"):
        run(model, inputs)


@pytest.mark.parametrize("scale", [1.0, 0.7])
def test_max_pool(scale: float) -> None:
    regions = np.concatenate([NUMBERS[:, None], np.abs(REGIONS)], axis=1).astype(np.float32)
    operands = (values(2, 3, 8, 9), regions)
    attributes = {"pooled_shape": [2, 3], "spatial_scale": scale}
    against_onnxruntime(*node_model("MaxRoiPool", *operands, opset=18, **attributes))
