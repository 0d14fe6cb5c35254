"""ONNX's backend interface, by ONNX's own test runner."""

from __future__ import annotations

import unittest
from functools import cache
from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import helper
from onnx.backend.test import BackendTest

from davinci import CompileError, InputError, onnx_backend
from davinci.onnx_backend import DavinciBackend


@cache
def cases() -> Any:
    """ONNX's node tests; in a function, for pytest would run a class of tests that it sees."""
    return BackendTest(DavinciBackend, __name__).test_cases["OnnxBackendNodeModelTest"]


ADD = onnx.parser.parse_model(
    '<ir_version: 9, opset_import: ["" : 17]> add (float[2, 3] x, float[3] y) => (float[2, 3] z)'
    " { z = Add(x, y) }"
)
X, Y = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones(3, np.float32)


@pytest.mark.parametrize(
    "name",
    ["add", "relu", "concat_2d_axis_1", "transpose_default", "argmax_keepdims_example", "where"],
)
def test_node(name: str) -> None:
    result = unittest.TestResult()
    cases()(f"test_{name if name != 'where' else 'where_example'}_cpu").run(result)
    assert (result.testsRun, result.skipped) == (1, [])
    assert result.wasSuccessful(), result.errors + result.failures


def test_a_device_that_is_none_is_skipped() -> None:
    result = unittest.TestResult()
    cases()("test_add_cuda").run(result)
    assert result.skipped


def test_prepare_and_run() -> None:
    prepared = onnx_backend.prepare(ADD, "NPU:ascend310", cores=1)
    assert (prepared.executable.machine.name, prepared.executable.cores) == ("ascend310", 1)
    for inputs in ([X, Y], {"y": Y, "x": X}):
        found = prepared.run(inputs)
        np.testing.assert_array_equal(found.z, X + Y)
        assert found[0] is found["z"]


def test_run_model_and_node() -> None:
    np.testing.assert_array_equal(onnx_backend.run_model(ADD, [X, Y])[0], X + Y)
    node = helper.make_node("Clip", ["x", "", "high"], ["y"])
    (found,) = onnx_backend.run_node(node, [X, np.float32(3)])
    np.testing.assert_array_equal(found, np.minimum(X, 3))


def test_devices() -> None:
    for device, known in {
        "CPU": True,
        "NPU": True,
        "NPU:ascend310": True,
        "NPU:ascend910b": True,
        "NPU:none": False,
        "ascend310": False,
        "CUDA": False,
    }.items():
        assert onnx_backend.supports_device(device) == known
    with pytest.raises(InputError, match="no such device; found 'CUDA:1'; expected CPU, NPU, NPU:"):
        onnx_backend.prepare(ADD, "CUDA:1")


def test_errors_are_those_of_the_compiler() -> None:
    node = helper.make_node("NonZero", ["x"], ["y"])
    with pytest.raises((CompileError, InputError)):
        onnx_backend.run_node(node, [X])
