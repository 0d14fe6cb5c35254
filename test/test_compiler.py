"""`davinci.compile`: networks against onnxruntime, and every level entered from its text."""

from __future__ import annotations

import numpy as np
import pytest

import davinci
from davinci import frontends, zoo
from davinci.errors import InputError
from davinci.mlir import make_context
from davinci.passes.pipeline import pipelines, runner
from davinci.reference import check

MODULE = """
func.func @main(%x: tensor<5x33xf32>, %w: tensor<33x18xf32>) -> tensor<5x18xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<5x33xf32>, tensor<33x18xf32>) -> tensor<5x18xf32>
  %1 = stablehlo.tanh %0 : tensor<5x18xf32>
  return %1 : tensor<5x18xf32>
}
"""


def inputs() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {"arg0": (5, 33), "arg1": (33, 18)}
    return {name: rng.standard_normal(s, dtype=np.float32) / 4 for name, s in shapes.items()}


@pytest.mark.parametrize("levels", range(len(pipelines.STAGES) + 1))
def test_every_level_can_be_entered_from_its_text(levels: int) -> None:
    module = frontends.load(MODULE, make_context())
    for stage in pipelines.STAGES[:levels]:
        runner.run(module.operation, pipelines.text(stage, pipelines.Options()))
    arrays = inputs()
    out = davinci.compile(str(module)).run(arrays)["out0"]
    np.testing.assert_allclose(out, np.tanh(arrays["arg0"] @ arrays["arg1"]), atol=2e-3)


def test_pipelines_leave_lower_levels_alone() -> None:
    module = frontends.load(MODULE, make_context())
    whole = pipelines.text("npu-pipeline", pipelines.Options())
    runner.run(module.operation, whole)
    once = str(module)
    runner.run(module.operation, whole)
    assert str(module) == once


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        ("mlp,batch=3,features=20,hidden=33,classes=7", {}),
        ("mlp,batch=3,features=20,hidden=33,classes=7", {"precision": "fp16"}),
        ("mlp,batch=3,features=20,hidden=33,classes=7", {"precision": "fp32"}),
        ("bert,layers=1,hidden=48,heads=3,seq=17,vocab=50", {"machine": "ascend310"}),
        ("bert,layers=1,hidden=32,heads=2,seq=16,vocab=50,batch=2", {"cores": 3}),
    ],
)
def test_network_agrees_with_onnxruntime(spec: str, options: dict[str, object]) -> None:
    model = zoo.build(spec)
    arrays = model.inputs(seed=3)
    executable = davinci.compile(model.proto, **options)
    errors = check.compare(executable.run(arrays), check.reference_onnx(model.proto, arrays))
    check.require(errors, options.get("precision", "mixed"))
    assert max(k["blocks"] for k in executable.profile["kernels"]) <= options.get("cores", 32)


def test_second_run_gives_the_same() -> None:
    executable = davinci.compile(MODULE)
    first, second = executable.run(inputs()), executable.run(inputs())
    np.testing.assert_array_equal(first["out0"], second["out0"])


def test_profile_has_the_documented_keys() -> None:
    executable = davinci.compile(MODULE)
    executable.run(inputs())
    assert {
        "model",
        "machine",
        "precision",
        "clock_mhz",
        "cores",
        "total_cycles",
        "time_us",
        "bound_cycles",
        "ops",
        "pipes",
        "kernels",
        "memory",
        "compile_seconds",
        "simulate_seconds",
    } <= set(executable.profile)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"machine": "ascend911"}, "no such machine"),
        ({"cores": 64}, "expected 1 to 32"),
        ({"precision": "fp8"}, "expected one of mixed, fp16"),
    ],
)
def test_bad_option(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        davinci.compile(MODULE, **options)


@pytest.mark.parametrize("model", [3, None, object()])
def test_not_a_model(model: object) -> None:
    with pytest.raises(InputError, match="not a model"):
        davinci.compile(model)
