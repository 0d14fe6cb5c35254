"""Convolutions of images of one pixel: the rows of a product, with what follows in its kernel."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import davinci
from davinci.reference import check
from davinci.zoo.graph import OnnxGraph
from davinci.zoo.layers import Images


def weighed(batch: int, channels: int) -> onnx.ModelProto:
    """Channels weighed by what all of them are on average, between two convolutions."""
    graph = OnnxGraph("weighed", 0)
    given = graph.input("x", TensorProto.FLOAT, [batch, channels, 5, 6])
    images = Images(graph, given, channels).conv(channels, 3).relu()
    few = images.then("GlobalAveragePool").conv(max(1, channels // 4), 1).relu()
    weights = few.conv(channels, 1).then("Sigmoid")
    graph.output(images.then("Mul", weights.value).conv(4, 1).value, "y", [batch, 4, 5, 6])
    return graph.model()


@pytest.mark.parametrize(("channels", "batch"), [(1, 1), (1, 3), (15, 3), (16, 1), (40, 3)])
def test_weighed_channels(batch: int, channels: int) -> None:
    model = weighed(batch, channels)
    executable = davinci.compile(model)
    x = np.random.default_rng(0).standard_normal((batch, channels, 5, 6)).astype(np.float32)
    errors = check.compare(executable.run({"x": x}), check.reference_onnx(model, {"x": x}))
    check.require(errors, "mixed")
    products = [k for k in executable.profile["kernels"] if "matmul" in k["op"]]
    assert sum(k["launches"] for k in products) == 2
    names = [launch["kernel"] for launch in executable.profile["launches_list"]]
    first = next(i for i, name in enumerate(names) if "matmul" in name)
    assert channels == 1 or "matmul" in names[first + 1], names
