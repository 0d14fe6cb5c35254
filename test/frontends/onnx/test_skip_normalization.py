"""Normalizations as onnxruntime's optimizer writes them, against onnxruntime or what they mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from davinci.errors import CompileError
from onnx_support import agree, means, model_of, node_model, run

MS = {"domain": "com.microsoft"}
SHAPE = (2, 5, 24)


def random(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32) + np.float32(
        0.3
    )


ROW = random(SHAPE[-1])


@pytest.mark.parametrize("skip", [SHAPE, SHAPE[1:], (1, *SHAPE[1:])], ids=str)
@pytest.mark.parametrize("given", [0, 1, 2])
def test_skip_layer_normalization(skip: tuple[int, ...], given: int) -> None:
    """With its beta and its bias, or without."""
    more = [ROW * 2, ROW - 1][:given]
    model, inputs = node_model(
        "SkipLayerNormalization",
        random(*SHAPE),
        random(*skip),
        ROW,
        *more,
        outputs=4,
        epsilon=1e-3,
        **MS,
    )
    del model.graph.output[1:3]
    model.graph.node[0].output[1] = model.graph.node[0].output[2] = ""
    means(model, inputs)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [SHAPE, SHAPE[1:]], ids=str)
def test_skip_simplified_layer_normalization(bias: bool, shape: tuple[int, ...]) -> None:
    more = [ROW - 1] if bias else []
    operands = random(*shape), random(*shape) * 2, ROW, *more
    means(*node_model("SkipSimplifiedLayerNormalization", *operands, epsilon=1e-3, **MS))


@pytest.mark.parametrize("axis", [-1, 1])
def test_simplified_layer_normalization(axis: int) -> None:
    """onnxruntime has it in ONNX's domain, whose checker does not know it."""
    scale = random(*SHAPE[axis:])
    means(*node_model("SimplifiedLayerNormalization", random(*SHAPE), scale, axis=axis, outputs=2))


def test_layer_normalization_in_an_older_operator_set() -> None:
    """onnxruntime's optimizer makes it in models of any operator set, also inside of branches."""
    model, inputs = node_model("LayerNormalization", random(*SHAPE), ROW, opset=13)
    means(model, inputs)
    branch = helper.make_graph(list(model.graph.node), "branch", [], list(model.graph.output))
    node = helper.make_node("If", ["flag"], ["z"], then_branch=branch, else_branch=branch)
    inputs["flag"] = np.array(True)
    outer = model_of([node], inputs, ["z"], opset=13)
    wanted = run(model, {k: v for k, v in inputs.items() if k != "flag"})["y"]
    np.testing.assert_allclose(run(outer, inputs)["z"], wanted, rtol=1e-5)


def test_statistics_are_refused_by_name() -> None:
    operands = random(*SHAPE), random(*SHAPE), ROW
    model, inputs = node_model("SkipLayerNormalization", *operands, outputs=2, **MS)
    with pytest.raises(CompileError, match=r"output 1 \(mean\) is not supported"):
        run(model, inputs)


@pytest.mark.parametrize("segments", [True, False])
@pytest.mark.parametrize("given", [True, False], ids=["mask and positions", "neither"])
def test_embed_layer_normalization(segments: bool, given: bool) -> None:
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 9, (2, 5)).astype(np.int32)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    operands = [
        ids,
        (ids % 2).astype(np.int32) if segments else None,
        random(9, 24),
        random(7, 24),
        random(2, 24) if segments else None,
        *(ROW, ROW + 1),
        *([mask, (ids % 7).astype(np.int32)] if given else []),
    ]
    model, inputs = node_model("EmbedLayerNormalization", *operands, outputs=3, epsilon=1e-5, **MS)
    model.graph.output[1].type.tensor_type.elem_type = 6
    means(model, inputs)


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("skip", [None, "image", "channels"])
def test_group_norm(last: int, skip: str | None) -> None:
    """onnxruntime has it on GPUs only: held against ONNX's, with its sum and SiLU around it."""
    x, gamma, beta = random(2, 8, 3, 5), random(8), random(8) + 1
    addends = {None: [], "image": [x * 2, gamma], "channels": [random(2, 8)]}[skip]
    total = x + addends[0].reshape(2, 8, *addends[0].shape[2:] or (1, 1)) if addends else x
    total = total + gamma.reshape(-1, 1, 1) if len(addends) == 2 else total
    turn = (lambda a: np.ascontiguousarray(np.moveaxis(a, 1, -1))) if last else (lambda a: a)
    operands = [turn(x), gamma, beta, *(turn(a) if a.ndim == 4 else a for a in addends)]
    model, inputs = node_model(
        "SkipGroupNorm" if skip else "GroupNorm",
        *operands,
        groups=4,
        activation=1,
        channels_last=last,
        epsilon=1e-4,
        **MS,
    )
    grouped = total.reshape(2, 4, -1)
    apart = grouped - grouped.mean(-1, keepdims=True)
    normal = (apart / np.sqrt(grouped.var(-1, keepdims=True) + 1e-4)).reshape(x.shape)
    found = normal * gamma.reshape(-1, 1, 1) + beta.reshape(-1, 1, 1)
    agree(model, inputs, {"y": turn(found / (1 + np.exp(-found))).astype(np.float32)})


@pytest.mark.parametrize("activation", ["silu", "sigmoid"])
def test_gated_rms_norm(activation: str) -> None:
    operands = random(2, 3, 24), random(8), random(2, 3, 24)
    means(*node_model("GatedRMSNorm", *operands, activation=activation, epsilon=1e-3, **MS))
