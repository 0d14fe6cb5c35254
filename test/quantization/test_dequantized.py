"""Quantized layers whose sums are scaled on their way out of L0C: next to what f32 would give."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import davinci
from davinci.reference import check

quantize = partial(davinci.quantize, layers="all")
"""Quantizes all layers: of such small networks none would pay."""

SIDE = 9
MACHINE = "ascend310"


def convolution(
    rng: Any, x: str, y: str, channels: int, kernel: int, bias: float
) -> tuple[Any, list[Any]]:
    size = (channels, channels, kernel, kernel)
    w = (rng.standard_normal(size) / np.sqrt(channels * kernel**2)).astype(np.float32)
    w[5] = 0  # a dead channel, whose scale says nothing
    b = (bias * rng.standard_normal(channels)).astype(np.float32)
    given = [numpy_helper.from_array(v, f"{y}_{n}") for n, v in (("w", w), ("b", b))]
    pads = [kernel // 2] * 4
    return helper.make_node("Conv", [x, f"{y}_w", f"{y}_b"], [y], pads=pads), given


@cache
def layers(
    average: bool, channels: int = 32, side: int = SIDE, kernel: int = 3
) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """A residual block, or what its pixels are on average where they are positive, and a product by
    which its bytes are seen, one by one."""
    rng = np.random.default_rng(0)
    first, one = convolution(rng, "x", "a", channels, kernel, 0.3)
    second, two = convolution(rng, "r", "c", channels, 1, 20.0)  # a bias far beyond the sums
    seen = numpy_helper.from_array(np.eye(channels, dtype=np.float32)[:, :, None, None], "e")
    nodes = [
        first,
        helper.make_node("Relu", ["a"], ["r"]),
        second,
        helper.make_node("Add", ["c", "r"], ["s"]),
        helper.make_node("Relu", ["s"], ["p"]),
        helper.make_node("GlobalAveragePool", ["p"], ["m"]),
        helper.make_node("Conv", ["m" if average else "s", "e"], ["y"]),
    ]
    shape = [1, channels, side, side]
    x = helper.make_tensor_value_info("x", 1, shape)
    y = helper.make_tensor_value_info("y", 1, [*shape[:2], 1, 1] if average else shape)
    nodes = nodes if average else [*nodes[:4], nodes[-1]]
    graph = helper.make_graph(nodes, "block", [x], [y], [*one, *two, seen])
    sets = [helper.make_opsetid("", 13)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=8)
    samples = [{"x": rng.standard_normal(shape).astype(np.float32)} for _ in range(3)]
    return quantize(model, samples).model, samples[0]


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize(("precision", "most", "share"), [("mixed", 1, 0.05), ("fp32", 0, 0)])
def test_neighbours_at_most(precision: str, most: int, share: float, average: bool) -> None:
    model, given = layers(average)
    wanted = check.reference_onnx(model, given)["y"]
    executable = davinci.compile(model, machine=MACHINE, precision=precision)
    found = executable.run(given)["y"]
    step = (wanted.max() - wanted.min()) / 255
    steps = np.rint((found - wanted) / step)
    assert np.abs(steps).max() <= most
    assert np.mean(steps != 0) <= share
    kernels = " ".join(kernel["label"] for kernel in executable.profile["kernels"])
    assert ("dequantize" in kernels) == (precision == "mixed")


def test_columns_apart() -> None:
    """Many columns at once become bytes of blocks that lie apart, and what is scaled is added to
    them there: as with pairs of columns."""
    model, given = layers(average=False, channels=256, side=4, kernel=1)
    wanted = check.reference_onnx(model, given)["y"]
    executable = davinci.compile(model, machine=MACHINE)
    found = executable.run(given)["y"]
    step = (wanted.max() - wanted.min()) / 255
    assert np.abs(np.rint((found - wanted) / step)).max() <= 1
    assert any("vaxpy.f32" in launch.instructions for launch in executable.launches)
