"""The pages have a word on every key that `npu-run --json` and `davinci.profile` write."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import davinci
from davinci.tools import npu_run
from davinci.tuning.gains import Account
from davinci.tuning.tuner import Tuned

DOCS = Path(__file__).parents[2] / "docs"
NAMED = ("rewrites", "pipes", "pipe_cycles", "flag_cycles", "barrier_cycles", "machine_file")
"""Keys whose values have names of rewrites, of pipes and of what a machine file says as keys."""
SCHEDULES = "choices"
"""Its keys are those of a file of schedules."""


def keys(value: Any) -> Iterator[str]:
    """The keys of a record and of all that is in it."""
    if isinstance(value, list):
        for each in value:
            yield from keys(each)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            if key == SCHEDULES:
                continue
            yield from keys(list(inner.values()) if key in NAMED else inner)


def explained(page: str) -> set[str]:
    return set(re.findall(r"`([a-z_0-9]+)`", (DOCS / page).read_text()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two models of three products, `m.onnx`, and `large.onnx`, whose sums leave the
    range of f16, and with `samples.npz`."""
    made = tmp_path_factory.mktemp("keys")
    rng = np.random.default_rng(0)
    np.savez(made / "samples.npz", x=rng.standard_normal((2, 16, 32)).astype("f4"))
    for name, size in (("m", 1.0), ("large", 1e4)):
        onnx.save(products(rng, size), made / f"{name}.onnx")
    return made


def products(rng: np.random.Generator, size: float) -> onnx.ModelProto:
    """Three products with random weights, the second ones of a size."""
    weights = {"w": rng.standard_normal((32, 32)), "v": size * rng.standard_normal((32, 32))}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"], name="first")]
    nodes += [helper.make_node("MatMul", ["h", "v"], ["y"], name="second")]
    graph = helper.make_graph(
        [*nodes, helper.make_node("MatMul", ["y", "w"], ["z"], name="third")],
        "m",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [16, 32])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [16, 32])],
        [onnx.numpy_helper.from_array(a.astype("f4"), name) for name, a in weights.items()],
    )
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, ir_version=10, opset_imports=[opset])


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("m --quantize samples.npz --check", {"quantization", "layers", "check"}),
        ("m --advise --advise-seconds 3 --timing-only --cache kept", {"advice", "cache"}),
        ("m --what-if v=2x --schedules s.json", {"what_if", "given_schedules"}),
        ("large --precision fp16", {"overflows", "converted"}),
    ],
    ids=["quantize", "advise", "schedules", "range"],
)
def test_keys_of_npu_run(
    command: str, expected: set[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    model, *arguments = command.split()
    if "--schedules" in arguments:
        assert npu_run.main(["m.onnx", "--timing-only", "--save-schedules", "s.json"]) == 0
    assert npu_run.main([f"{model}.onnx", *arguments, "--json", "r.json"]) == 0
    record = json.loads(Path("r.json").read_text())
    found = set(keys(record))
    assert expected <= found
    of_quantization = set(keys(record.pop("quantization", {})))
    assert of_quantization - explained("quantization.md") == set()
    assert set(keys(record)) - explained("reports.md") == set()


def test_keys_of_a_profile(folder: Path) -> None:
    executable = davinci.compile(str(folder / "m.onnx"), timing_only=True)
    with davinci.profile() as profile:
        executable.run()
    assert set(keys(profile.record)) - explained("reports.md") == set()


def test_keys_of_tuning() -> None:
    found = Tuned("ascend910", (), (), (), Account(0, 0, 0.0)).summary()
    assert found.keys() - explained("reports.md") == set()
