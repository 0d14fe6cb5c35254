"""Every level of the compiler as text: the same after reading, entered from a file, kept by passes.

Networks with weights, so that resources survive too, and StableHLO text without names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import davinci
from davinci import arrays, frontends, zoo
from davinci.dialects.short_form import expand
from davinci.mlir import ir, make_context
from davinci.passes.pipeline import pipelines, registry, runner
from davinci.tools import npu_opt, npu_run

TEXT = """
func.func private @twice(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.add %x, %x : tensor<f32>
  return %0 : tensor<f32>
}
func.func @main(%x: tensor<5x33xf32> {ascend.name = "a b"}, %y: tensor<5x33xi1>)
    -> (tensor<5x33xf32> {ascend.name = "sum/0"}, tensor<33x5xi1>) {
  %w = stablehlo.constant dense_resource<w> : tensor<33xf32>
  %0 = stablehlo.broadcast_in_dim %w, dims = [1] : (tensor<33xf32>) -> tensor<5x33xf32>
  %1 = stablehlo.add %x, %0 : tensor<5x33xf32>
  %2 = stablehlo.select %y, %1, %x : tensor<5x33xi1>, tensor<5x33xf32>
  %3 = stablehlo.transpose %y, dims = [1, 0] : (tensor<5x33xi1>) -> tensor<33x5xi1>
  return %2, %3 : tensor<5x33xf32>, tensor<33x5xi1>
}
{-#
  dialect_resources: { builtin: { w: "0x04000000WEIGHTS" } }
#-}
""".replace("WEIGHTS", np.arange(33, dtype="<f4").tobytes().hex())

MODELS = {
    "mlp": "mlp,batch=4,features=32,hidden=40",
    "bert": "bert,layers=1,hidden=64,heads=2,seq=16,vocab=50",
    "text": TEXT,
}

LEVELS = ("stablehlo", "ascend", "memref", "cce", "hivm", "llvm")
"""The first, and what each stage ends at."""


def model(name: str) -> Any:
    return TEXT if name == "text" else zoo.build(MODELS[name]).proto


@cache
def texts(name: str) -> dict[str, str]:
    """The model at each level; every stage reads what the one before it wrote."""
    found = {LEVELS[0]: str(frontends.load(model(name)))}
    for stage, before, level in zip(pipelines.STAGES, LEVELS, LEVELS[1:], strict=False):
        module = frontends.load(found[before])
        runner.run(module.operation, pipelines.text(stage, pipelines.Options()))
        found[level] = str(module)
    return found


@cache
def direct(name: str) -> tuple[arrays.Arrays, arrays.Arrays]:
    """Inputs and outputs of the model, compiled in one go."""
    executable = davinci.compile(model(name))
    network = None if name == "text" else zoo.build(MODELS[name])
    inputs = network.inputs(1) if network else arrays.random_inputs(executable.inputs, 1)
    return inputs, executable.run(inputs)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", MODELS)
def test_text_is_the_same_after_reading(name: str, level: str) -> None:
    text = texts(name)[level]
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        assert module.operation.verify()
        assert str(module) == text
        generic = module.operation.get_asm(print_generic_op_form=True)
    # In another context: a resource that exists already would get another name.
    with make_context(), ir.Location.unknown():
        assert str(ir.Module.parse(generic)) == text


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", MODELS)
def test_file_gives_the_same_outputs_under_the_same_names(
    name: str, level: str, tmp_path: Path
) -> None:
    inputs, outputs = direct(name)
    source, given, written = tmp_path / "m.mlir", tmp_path / "in.npz", tmp_path / "out.npz"
    source.write_text(texts(name)[level])
    arrays.save_npz(str(given), inputs)
    arguments = [str(source), "--inputs", str(given), "--outputs", str(written)]
    assert npu_run.main(arguments) == 0
    found = arrays.load_npz(str(written))
    assert list(found) == list(outputs)
    for output, array in outputs.items():
        np.testing.assert_array_equal(found[output], array)


def test_names_of_the_text() -> None:
    inputs, outputs = direct("text")
    assert {name: array.shape for name, array in inputs.items()} == {
        "a b": (5, 33),
        "arg1": (5, 33),
    }
    expected = inputs["a b"] + np.arange(33, dtype=np.float32)
    np.testing.assert_array_equal(
        outputs["sum/0"], np.where(inputs["arg1"], expected, inputs["a b"])
    )
    np.testing.assert_array_equal(outputs["out1"], inputs["arg1"].T)


STANDS = r'"line \d+|"(?:stablehlo|ascend|cce|memref|hivm)\.mlir:\d+'
"""Where an operator stands in the text that a launch or a kernel was made from."""


def test_npu_opt_goes_from_level_to_level(tmp_path: Path) -> None:
    path = tmp_path / "stablehlo.mlir"
    path.write_text(texts("mlp")["stablehlo"])
    for stage, level in zip(pipelines.STAGES, LEVELS[1:], strict=True):
        after = tmp_path / f"{level}.mlir"
        assert npu_opt.main([str(path), f"--{stage}", "-o", str(after)]) == 0
        expected = texts("mlp")[level].replace('"-:', f'"{path}:')  # in hivm.locations
        found = expand(after.read_text())
        assert re.sub(STANDS, "at", found) == re.sub(STANDS, "at", expected)
        path = after


def runs() -> Iterator[tuple[str, str]]:
    """Each pass of the project in the whole pipeline, with the passes before it; those that only
    some options ask for in the pipeline with these."""
    ours, seen = {cls.NAME for cls in registry.all_passes()}, set[str]()
    asked = pipelines.Options(
        precision="scaled-fp16", memory_limit="1MiB", launches="joined", check_meetings=1
    )
    for options in (pipelines.Options(), asked):
        steps = pipelines.PIPELINES["npu-pipeline"](options)
        for number, step in enumerate(steps):
            if pass_of(step) in ours - seen:
                yield step, ",".join(steps[: number + 1])
        seen |= {pass_of(step) for step in steps}


def pass_of(step: str) -> str:
    """The pass of a step, which may be nested in functions and have options."""
    return step.removeprefix("func.func(").removesuffix(")").partition("{")[0]


OUT_OF_IT = {"ascend-unfold-windows", "convert-cce-to-hir", "join-loads-and-products"}
"""Passes that write kernels for other compilers, and are in no pipeline."""


def test_every_pass_is_in_the_pipeline() -> None:
    own = {cls.NAME for cls in registry.all_passes()}
    assert own >= OUT_OF_IT
    assert {pass_of(step) for step, _ in runs()} == own - OUT_OF_IT


@pytest.mark.parametrize(("name", "until"), list(runs()), ids=[name for name, _ in runs()])
@pytest.mark.parametrize("source", ["text", "mlp"])
def test_pass_run_twice_changes_nothing(source: str, name: str, until: str) -> None:
    module = frontends.load(model(source))
    runner.run(module.operation, f"builtin.module({until})")
    once = str(module)
    runner.run(module.operation, f"builtin.module({name})")
    assert str(module) == once


@pytest.mark.parametrize("level", LEVELS[1:])
@pytest.mark.parametrize("name", MODELS)
def test_passes_leave_what_is_below_them_alone(name: str, level: str) -> None:
    """Only passes of the project: upstream ones may always find something to tidy up."""
    before = pipelines.STAGES[: LEVELS.index(level)]
    steps = (s for stage in before for s in pipelines.PIPELINES[stage](pipelines.Options()))
    ours = ",".join(step for step in steps if registry.find(step))
    module = frontends.load(texts(name)[level])
    runner.run(module.operation, f"builtin.module({ours})")
    assert str(module) == texts(name)[level]
