"""Networks as steps: groups taken apart compute the same, and sizes are those of the graph."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from davinci import zoo
from davinci.planning import can_run, layers, one_by_one, peak_bytes

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks" / "speed"))
from graph_memory import Vertices, groups_apart, weights_bytes, work_of


def test_groups_apart_compute_the_same() -> None:
    model = zoo.build("resnext50,resolution=32,classes=5")
    apart = groups_apart(model.proto)
    convolutions = [node for node in apart.graph.node if node.op_type == "Conv"]
    assert len(convolutions) == 53 - 16 + 16 * 32
    found, wanted = (
        onnxruntime.InferenceSession(proto.SerializeToString()).run(None, model.inputs())[0]
        for proto in (apart, model.proto)
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_convolutions_of_single_channels_stay() -> None:
    model = zoo.find("mobilenet-v2,resolution=32,percent=25").sketch
    assert len(groups_apart(model).graph.node) == len(model.graph.node)


@pytest.mark.parametrize(
    ("vertices", "tensors"),
    [
        # 13 convolutions, 5 poolings and 3 dense layers; activations behind all but the last.
        (Vertices(activations=False), 13 + 5 + 3),
        (Vertices(), 13 + 5 + 3 + 15),
        (Vertices(norms=True), 13 + 5 + 3 + 15 + 13),
        (Vertices(overwrites=True), 13 + 5 + 3),
    ],
)
def test_tensors_of_vgg(vertices: Vertices, tensors: int) -> None:
    work = work_of(zoo.find("vgg16").sketch, vertices)
    assert len(work.sizes) == len(work.steps) == tensors
    order = one_by_one(range(len(work.steps)))
    assert can_run(work, order) and can_run(work, layers(work))
    # The first two convolutions' results, 64 channels of 224 x 224 pixels each.
    assert peak_bytes(work, order) == 2 * 4 * 64 * 224 * 224


def test_weights_of_vgg() -> None:
    assert weights_bytes(zoo.find("vgg16").sketch) == 4 * 138_357_544
