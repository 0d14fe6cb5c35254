"""Arrays that stand in for weights: no memory, no values that repeat, and times as with others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import davinci
from davinci.errors import InputError
from davinci.frontends.onnx.model import weights_of
from davinci.stand_ins import has_stand_in, stand_in, stands_in


@pytest.mark.parametrize("shape", [(65536,), (1, 65536), (65536, 1), (300, 768), (64, 256, 3, 3)])
def test_has_shape_and_type_and_differs_along_all_dimensions(shape: tuple[int, ...]) -> None:
    array = stand_in(shape, np.float16)
    assert array.shape == shape and array.dtype == np.float16
    assert stands_in(array) and stands_in(array[1:]) and stands_in(array.T)
    for axis, size in enumerate(shape):
        assert size == 1 or np.any(np.diff(array, axis=axis))
    with pytest.raises(ValueError, match="read-only"):
        array[...] = 0


def test_others_stand_in_for_nothing() -> None:
    assert not stands_in(np.zeros((2, 3), np.float32)) and not stands_in(np.float32(1) + np.ones(4))
    copied = stand_in((256, 256), np.float32).copy()
    assert not stands_in(copied)
    assert has_stand_in((256, 256), np.float32)
    assert not has_stand_in((255, 256), np.float32) and not has_stand_in((256, 256), np.int8)


def model_with(folder: Path, *, masked: bool = False) -> Path:
    """x W1, and W2 added or multiplied with; weights in a file of their own."""
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((256, 256), np.float32) * 0.05 for _ in "ab"]
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["h"]),
        helper.make_node("Add" if masked else "MatMul", ["h", "w2"], ["y"]),
    ]
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [256, 256]) for n in "xy"]
    tensors = [numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights, 1)]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:], tensors)
    opsets = [helper.make_opsetid("", 17)]
    path = folder / "net.onnx"
    made = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    onnx.save(made, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    return path


def cycles(path: Path, *, timing_only: bool) -> int:
    executable = davinci.compile(path, timing_only=timing_only)
    executable.run({"x": np.ones((256, 256), np.float32)})
    return int(executable.profile["total_cycles"])


def test_a_run_for_times_does_not_read_weights(tmp_path: Path) -> None:
    path = model_with(tmp_path)
    whole = cycles(path, timing_only=False)
    file = tmp_path / "w.bin"
    size = file.stat().st_size
    file.write_bytes(b"\xff" * size)  # NaN, had it been read
    assert cycles(path, timing_only=True) == whole
    file.write_bytes(b"\xff" * (size - 4))
    with pytest.raises(InputError, match=r"cannot read the model: w\.bin has"):
        davinci.compile(path, timing_only=True)
    file.unlink()
    with pytest.raises(InputError, match="cannot read the model"):
        davinci.compile(path, timing_only=True)


def test_what_more_than_products_read_keeps_its_values(tmp_path: Path) -> None:
    graph = onnx.load(model_with(tmp_path, masked=True)).graph
    assert weights_of(graph) == {"w1"}
