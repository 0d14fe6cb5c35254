"""Resize and Upsample against onnxruntime, and ONNX's reference where onnxruntime differs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnx_support import against_onnxruntime, against_reference, means, node_model, run
from pairs import all_pairs
from random_resizes import differences, draw, imported

SCALES = [[1, 1, 2, 2], [1, 1, 0.6, 1.5], [1, 1, 3, 0.5]]


def values(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def resize(
    x: Any, scales: Any = None, sizes: Any = None, roi: Any = None, **attributes: Any
) -> Any:
    operands = [
        x,
        None if roi is None else np.array(roi, np.float32),
        None if scales is None else np.array(scales, np.float32),
        *([] if sizes is None else [np.array(sizes, np.int64)]),
    ]
    known = [i for i in range(1, len(operands)) if operands[i] is not None]
    return node_model("Resize", *operands, known=known, opset=19, **attributes)


@pytest.mark.parametrize(
    ("scales", "way", "rounding"),
    all_pairs(
        SCALES,
        ["half_pixel", "asymmetric", "pytorch_half_pixel"],
        ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"],
    ),
)
def test_nearest(scales: list[float], way: str, rounding: str) -> None:
    attributes = {"coordinate_transformation_mode": way, "nearest_mode": rounding}
    against_onnxruntime(*resize(values(1, 2, 5, 6), scales, **attributes))


@pytest.mark.parametrize(
    ("mode", "sizes", "way"),
    all_pairs(
        ["linear", "cubic"],
        [[1, 2, 9, 3], [1, 2, 1, 11]],
        ["half_pixel", "asymmetric", "pytorch_half_pixel", "align_corners"],
    ),
)
def test_interpolation(mode: str, sizes: list[int], way: str) -> None:
    model = resize(values(1, 2, 5, 6), sizes=sizes, mode=mode, coordinate_transformation_mode=way)
    against_onnxruntime(*model)


@pytest.mark.parametrize(
    "attributes",
    [
        {"mode": "linear", "nearest_mode": "floor", "cubic_coeff_a": -0.5},
        {"mode": "cubic", "nearest_mode": "ceil"},
        {"mode": "nearest", "cubic_coeff_a": -0.5},
    ],
)
def test_attributes_of_other_modes_change_nothing(attributes: dict[str, Any]) -> None:
    """PyTorch writes some of them."""
    against_onnxruntime(*resize(values(1, 2, 5, 6), sizes=[1, 2, 9, 3], **attributes))


@pytest.mark.parametrize(("scales", "exclude", "antialias"), all_pairs(SCALES, [0, 1], [0, 1]))
def test_cubic(scales: list[float], exclude: int, antialias: int) -> None:
    attributes = {"cubic_coeff_a": -0.5, "exclude_outside": exclude, "antialias": antialias}
    against_reference(*resize(values(1, 2, 5, 6), scales, mode="cubic", **attributes))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_crop(mode: str) -> None:
    roi = [0, 0, 0.4, 0.6, 1, 1, 1.2, 1.7]
    attributes = {
        "coordinate_transformation_mode": "tf_crop_and_resize",
        "extrapolation_value": 10.0,
        "mode": mode,
    }
    against_onnxruntime(*resize(values(1, 1, 4, 5), sizes=[1, 1, 3, 4], roi=roi, **attributes))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_rows_long_enough_for_vectors(mode: str) -> None:
    against_onnxruntime(*resize(values(1, 2, 17, 18), [1, 1, 2, 2], mode=mode))


def phases(mode: str, way: str, scales: list[float]) -> Any:
    x = np.random.default_rng(0).standard_normal((2, 3, 5, 18)).astype(np.float32)
    operands = (x, None, np.array(scales, np.float32))
    attributes = {"mode": mode, "coordinate_transformation_mode": way}
    return node_model("Resize", *operands, known=(2,), **attributes)


@pytest.mark.parametrize(
    ("mode", "way", "scales"),
    all_pairs(
        ["linear", "cubic"],
        ["half_pixel", "asymmetric", "align_corners"],
        [[1, 1, 2, 2], [1, 1, 3, 5], [1, 1, 17, 2], [1, 1, 1, 4]],
    ),
)
def test_each_element_becomes_several(mode: str, way: str, scales: list[float]) -> None:
    """Phases of an axis, whose weights may be none, one or different along it."""
    means(*phases(mode, way, scales))


@pytest.mark.parametrize(
    ("mode", "way", "scales"),
    [
        ("linear", "half_pixel", [1, 1, 2, 2]),
        ("linear", "align_corners", [1, 1, 17, 2]),
        ("linear", "asymmetric", [1, 1, 1, 4]),
        ("cubic", "asymmetric", [1, 1, 3, 5]),
    ],
)
def test_phases_are_compiled(mode: str, way: str, scales: list[float]) -> None:
    against_onnxruntime(*phases(mode, way, scales))


@pytest.mark.parametrize("antialias", [0, 1])
def test_large_axes_to_one(antialias: int) -> None:
    x = values(1, 1, 150, 2)
    against_onnxruntime(*resize(x, sizes=[1, 1, 1, 1], mode="linear", antialias=antialias))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_has_no_weight_adds_nothing(bad: float) -> None:
    """Elements of the result that lie on elements of the input are those, whatever is beside."""
    x = values(1, 1, 1, 5)
    x[0, 0, 0, 2] = bad
    model, inputs = resize(
        x, sizes=[1, 1, 1, 9], mode="linear", coordinate_transformation_mode="align_corners"
    )
    found = run(model, inputs)["y"].reshape(-1)
    np.testing.assert_array_equal(np.isfinite(found), [1, 1, 1, 0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(found[::2], x.reshape(-1))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float16])
def test_element_types(dtype: Any, mode: str) -> None:
    """Sums are truncated to integers once, behind the last axis."""
    x = np.arange(12).reshape(1, 1, 3, 4).astype(dtype)
    against_onnxruntime(*resize(x, [1, 1, 2, 2], mode=mode))


@pytest.mark.parametrize("opset", [7, 9])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_upsample(opset: int, mode: str) -> None:
    x, scales = values(1, 2, 3, 4), [1.0, 1.0, 2.0, 3.0]
    if opset == 7:
        model = node_model("Upsample", x, opset=opset, mode=mode, scales=scales)
    else:
        operands = (x, np.array(scales, np.float32))
        model = node_model("Upsample", *operands, known=[1], opset=opset, mode=mode)
    against_onnxruntime(*model)


@pytest.mark.parametrize("scales", [[1.0, 1.0, 2.0, 3.0], [1.0, 1.0, 0.6, 0.5]])
def test_operator_set_10(scales: list[float]) -> None:
    operands = (values(1, 2, 5, 6), np.array(scales, np.float32))
    against_onnxruntime(*node_model("Resize", *operands, known=[1], opset=10))


def test_attributes_of_other_modes() -> None:
    """As PyTorch exports bilinear resizing."""
    scales = np.array([1, 1, 2, 2], np.float32)
    model, inputs = node_model(
        "Resize",
        np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4),
        None,
        scales,
        known=(2,),
        mode="linear",
        nearest_mode="floor",
        cubic_coeff_a=-0.5,
        extrapolation_value=3.0,
    )
    against_onnxruntime(model, inputs)


@pytest.mark.parametrize("way", ["align_corners", "half_pixel", "half_pixel_symmetric"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_lengths_that_are_rounded_down(mode: str, way: str) -> None:
    """1.7 x 4 is 6; the reference computes with 6.8. 0.7 x 10 is 7, in f32."""
    attributes = {"mode": mode, "coordinate_transformation_mode": way}
    means(*resize(values(1, 1, 4, 10), [1, 1, 1.7, 0.7], **attributes))


def test_lengths_that_stay() -> None:
    """A result of the input's shape is the input, though 5 x 1.1 is not quite."""
    x = values(1, 1, 5, 5)
    for attributes in ({"mode": "linear"}, {"mode": "cubic"}, {"mode": "linear", "antialias": 1}):
        found = run(*resize(x, [1, 1, 1.1, 1.1], **attributes))["y"]
        np.testing.assert_array_equal(found, x)


def test_region_of_an_axis_that_keeps_its_length() -> None:
    """onnxruntime ignores it there; TensorFlow, whose mode this is, and the reference do not."""
    way, roi = "tf_crop_and_resize", [0, 0, 0.25, 0, 1, 1, 0.75, 1]
    attributes = {"mode": "linear", "coordinate_transformation_mode": way}
    against_reference(*resize(values(1, 1, 5, 4), sizes=[1, 1, 5, 8], roi=roi, **attributes))


def test_smoothed_bytes_are_rounded() -> None:
    x = np.arange(0, 240, 5, np.uint8).reshape(1, 1, 6, 8)
    against_onnxruntime(*resize(x, sizes=[1, 1, 3, 3], mode="linear", antialias=1))


def test_random_nodes() -> None:
    """benchmarks/proofs/resizing.py tries more of them, and compiles them."""
    assert differences([draw(seed) for seed in range(60)], imported) == []
