"""Residuals that cube cores without a vector unit add to sums, on simulated machine code with all
checks, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import helper

import davinci
from davinci.reference import check
from onnx_support import Arrays, model_of


def residual(
    channels: int, size: int, kernel: int, batch: int, groups: int, rectified: bool
) -> tuple[onnx.ModelProto, Arrays]:
    """A convolution with a bias, a residual that another one made, and a third one behind."""
    random = np.random.default_rng(channels + size)

    def array(*shape: int) -> npt.NDArray[Any]:
        return random.standard_normal(shape).astype(np.float32)

    each = channels // groups
    known = {
        "u": array(channels, 32, 1, 1) / 6,
        "w": array(channels, each, kernel, kernel) / np.float32(np.sqrt(each) * kernel),
        "v": array(16, channels, 1, 1) / np.float32(np.sqrt(channels)),
        "bias": array(channels),
    }
    sides: dict[str, Any] = {"pads": [kernel // 2] * 4, "group": groups}
    nodes = [
        helper.make_node("Conv", ["x", "u"], ["r"]),
        helper.make_node("Conv", ["r", "w", "bias"], ["c"], **sides),
        helper.make_node("Add", ["c", "r"], ["s"]),
        *([helper.make_node("Relu", ["s"], ["a"])] if rectified else []),
        helper.make_node("Conv", ["a" if rectified else "s", "v"], ["y"]),
    ]
    given = {"x": array(batch, 32, size, size)}
    return model_of(nodes, given, ("y",), known), given


@pytest.mark.parametrize(
    ("channels", "size", "kernel", "batch", "groups", "rectified"),
    [
        (64, 8, 3, 1, 1, True),
        (48, 7, 3, 2, 1, True),
        (64, 9, 1, 1, 1, False),
        (24, 5, 3, 1, 1, True),
        (64, 14, 3, 1, 4, True),
        (272, 13, 1, 3, 1, False),
    ],
)
def test_values(
    channels: int, size: int, kernel: int, batch: int, groups: int, rectified: bool
) -> None:
    """Of whole fractals and of padded ones, of several images and groups, in one kernel with the
    convolution."""
    model, given = residual(channels, size, kernel, batch, groups, rectified)
    executable = davinci.compile(model, machine="ascend910b")
    executable.run(given)
    executable.poison = True
    errors = check.compare(executable.run(given), check.reference_onnx(model, given))
    check.require(errors, "mixed")
    names = [kernel["name"] for kernel in executable.profile["kernels"]]
    assert not any(name.startswith("add") for name in names), names
    assert any(name.startswith("conv_add") and "f16" in name for name in names), names


def test_a_row_of_one_row_of_products() -> None:
    """Where C is one row, what is added to it is a row that products begin with."""
    random = np.random.default_rng(0)
    known = {
        "b": random.standard_normal((64, 40)).astype(np.float32) / 8,
        "row": random.standard_normal((1, 40)).astype(np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["a", "b"], ["c"]),
        helper.make_node("Add", ["c", "row"], ["y"]),
    ]
    given = {"a": random.standard_normal((1, 64)).astype(np.float32)}
    model = model_of(nodes, given, ("y",), known)
    executable = davinci.compile(model, machine="ascend910b")
    errors = check.compare(executable.run(given), check.reference_onnx(model, given))
    check.require(errors, "mixed")
    names = [kernel["name"] for kernel in executable.profile["kernels"]]
    assert not any(name.startswith("add") for name in names), names
