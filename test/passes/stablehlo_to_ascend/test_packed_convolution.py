"""Convolutions of few channels with strides: pixels become channels, whatever the sizes are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from davinci.operators.conv import Geometry
from davinci.passes.stablehlo_to_ascend.convolution import Packing
from davinci.reference import check
from onnx_support import node_model, run
from pairs import in_turn

CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 3, 32, 32), (16, 3, 7, 7), {"strides": [2, 2], "pads": [3, 3, 3, 3]}),
    ((2, 1, 17, 19), (5, 1, 5, 3), {"strides": [3, 2], "pads": [2, 0, 1, 3]}),
    ((1, 3, 33, 16), (17, 3, 16, 16), {"strides": [16, 16]}),
    ((1, 4, 31, 30), (3, 4, 8, 6), {"strides": [2, 2], "pads": [7, 5, 0, 0]}),
    ((3, 2, 23), (4, 2, 9), {"strides": [4], "pads": [1, 7]}),
    ((1, 3, 20, 20), (8, 3, 5, 5), {"strides": [1, 4], "auto_pad": "SAME_UPPER"}),
]


@pytest.mark.parametrize(
    ("image", "weights", "given", "cores"),
    [(*case, cores) for case, cores in in_turn(CASES, [1, 32])],
    ids=str,
)
def test_whole_numbers(
    image: tuple[int, ...], weights: tuple[int, ...], given: dict[str, Any], cores: int
) -> None:
    random = np.random.default_rng(len(weights))
    x = random.integers(-3, 4, image).astype(np.float32)
    w = random.integers(-2, 3, weights).astype(np.float32)
    model, inputs = node_model("Conv", x, w, known=[1], **given)
    found = run(model, inputs, cores=cores)
    wanted = check.reference_onnx(model, inputs)
    np.testing.assert_array_equal(found["y"], wanted["y"])


def test_what_is_packed() -> None:
    stem = Geometry((224, 224), (7, 7), (2, 2), (1, 1), (3, 3, 3, 3))
    packed = Packing.of(stem, 3)
    assert packed is not None
    assert packed.geometry == Geometry((112, 112), (4, 4), (1, 1), (1, 1), (2, 1, 2, 1))
    assert Packing.of(stem, 64) is None
    assert Packing.of(Geometry((56, 56), (1, 1), (2, 2), (1, 1), (0, 0, 0, 0)), 3) is None
