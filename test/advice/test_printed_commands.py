"""What --advise prints is what the printed command shows."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from davinci import job
from davinci.errors import InputError
from davinci.tools import npu_run


def record_of(words: list[str], folder: Path) -> Any:
    path = folder / "record.json"
    assert npu_run.main([*words, "--json", str(path)]) == 0
    return json.loads(path.read_text())


def test_each_gain_is_what_its_command_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = ["--cache", str(tmp_path / "cache")]
    few = ["--rewrites", "all", "--core-choice", "all", "--fusion", "none"]  # not to be tried
    path = tmp_path / "layer.onnx"
    onnx.save(layer_model(), path)
    base = [str(path), "--cores", "1", "--precision", "fp32", *few, *cache]
    advice = record_of([*base, "--advise", "--advise-seconds", "600"], tmp_path)["advice"]
    text = capsys.readouterr().out
    shown = [*advice["gains"], *filter(None, [advice["together"]])]
    assert {gain["arguments"] for gain in shown} >= {"--batch 4", "--precision fp16"}
    for gain in [{**advice, "samples": 1, "saved_ratio": 0.0}, *shown]:
        words = shlex.split(gain["command"])
        assert words[0] == "npu-run"
        time_us = record_of(words[1:], tmp_path)["time_us"]
        assert time_us == gain["time_us"], gain["command"]
        saved = 1 - time_us / gain["samples"] / advice["time_us"]
        assert saved == pytest.approx(gain["saved_ratio"])
        assert f"{time_us / gain['samples']:.1f} us" in text
    (half,) = (g for g in advice["gains"] if g["arguments"] == "--precision fp16")
    assert 0 < half["errors"]["max_rel_err"] < 0.1 and half["errors"]["cosine"] > 0.99
    assert 0 < advice["errors"]["max_rel_err"] < half["errors"]["max_rel_err"]
    assert advice["together"]["saved_ratio"] > max(g["saved_ratio"] for g in advice["gains"])
    assert f"to see the best: {advice['together']['command']}" in text


def layer_model() -> onnx.ModelProto:
    """relu(x w), of one row."""
    w = np.random.default_rng(0).standard_normal((256, 192)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Relu", ["p"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 256])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 192])],
        [numpy_helper.from_array(w, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def heads_model(mixing: bool = False, unknown: bool = False) -> onnx.ModelProto:
    """[1, 8, 12] -> heads -> [1, 8, 12], by shapes that are constants.

    Args:
        mixing: samples are added up.
        unknown: the input is expanded to a shape that ONNX's inference does not find.
    """
    rng = np.random.default_rng(0)
    constants = {
        "w": rng.standard_normal((12, 12)).astype(np.float32),
        "heads": np.array([1, 8, -1, 4]),
        "flat": np.array([-1, 8, 4]),
        "back": np.array([1, -1, 8, 4]),
        "whole": np.array([1, 8, 12]),
        "first": np.array([0]),
        "target": np.array([1, 8, 12]),
        "open": np.array([-1]),
        "ones": np.array([1, 1, 1]),
    }
    expanded = [
        helper.make_node("Equal", ["target", "open"], ["is_open"]),
        helper.make_node("Where", ["is_open", "ones", "target"], ["shape"]),
        helper.make_node("Expand", ["x", "shape"], ["e"]),
    ]
    nodes = [
        *(expanded if unknown else ()),
        helper.make_node("MatMul", ["e" if unknown else "x", "w"], ["p"]),
        helper.make_node("Reshape", ["p", "heads"], ["h"]),
        helper.make_node("Transpose", ["h"], ["t"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["t", "flat"], ["f"]),
        helper.make_node("Softmax", ["f"], ["s"], axis=-1),
        helper.make_node("Reshape", ["s", "back"], ["b"]),
        helper.make_node("Transpose", ["b"], ["u"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["u", "whole"], ["r"]),
        *([helper.make_node("ReduceSum", ["r", "first"], ["m"], keepdims=1)] if mixing else []),
        helper.make_node("Add", ["r", "m"] if mixing else ["r", "r"], ["y"]),
    ]
    shape = [1, 8, 12]
    graph = helper.make_graph(
        nodes,
        "heads",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("unknown", [False, True])
def test_a_batch_of_an_onnx_model(unknown: bool, tmp_path: Path) -> None:
    path = tmp_path / "heads.onnx"
    onnx.save(heads_model(unknown=unknown), path)
    record = record_of([str(path), "--batch", "3", "--check", "--no-cache"], tmp_path)
    assert record["check"]["cosine"] > 0.9999
    samples = job.batched(job.open_source(str(path)), 3).proto()
    assert samples is not None
    assert samples.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 3


def test_a_model_whose_samples_meet_is_refused() -> None:
    with pytest.raises(InputError, match="samples of a batch meet"):
        job.batched(job.Source("sum", heads_model(mixing=True)), 2)
    with pytest.raises(InputError, match="bad value"):
        job.batched(job.Source("heads", heads_model()), 0)
