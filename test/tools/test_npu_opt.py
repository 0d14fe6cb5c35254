"""npu-opt as its user sees it: output, messages, exit codes."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

import davinci
from davinci.mlir import ir, make_context
from davinci.passes.pipeline import pipelines, registry
from davinci.tools import npu_opt

MODULE = "func.func @f(%x: i32) -> i32 {\n  return %x : i32\n}\n"


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "f.mlir"
    path.write_text(MODULE)
    return str(path)


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        ("", "the pipeline is empty"),
        ("cse", "has no anchor operation"),
        ("builtin.module(cse", ":19: unbalanced parentheses; found end of the pipeline"),
        ("builtin.module(cse))", ":20: unbalanced parentheses"),
        ("builtin.module(cse,,cse)", ":20: a pass or an anchor operation is missing"),
        ("builtin.module(canonicalize{)", ":30: unbalanced braces"),
        ("builtin.module(canonicalise)", "did you mean 'canonicalize'"),
        ("builtin.module(cse,plan-memry)", ":20: unknown pass 'plan-memry'; did you mean"),
        ("builtin.module(func.func(nothing-like-it))", ":26: unknown pass 'nothing-like-it'"),
        ("builtin.module(plan-memory{machin=x})", "did you mean 'machine'"),
        ("builtin.module(convert-ascend-to-cce{cores=many})", "expected an integer"),
        ("builtin.module(func.func(plan-memory))", "cannot run on 'func.func'"),
        ("builtin.module(canonicalize{bla=1})", "no such option bla"),
        ("builtin.module(npu-pipeline{core=1})", "did you mean 'cores'"),
    ],
)
def test_bad_pipeline(
    source: str, pipeline: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert npu_opt.main([source, f"--pass-pipeline={pipeline}"]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert message in err
    assert len(err.splitlines()) == 1


def test_missing_file(capfd: pytest.CaptureFixture[str]) -> None:
    assert npu_opt.main(["no/such.mlir"]) == 2
    assert capfd.readouterr().err == "error: no/such.mlir: No such file or directory\n"


def test_unknown_flag(source: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert npu_opt.main([source, "--plan-memoy"]) == 2
    assert "did you mean --plan-memory" in capfd.readouterr().err


def test_parse_error_has_place_and_source(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.mlir"
    path.write_text("func.func @f() {\n  retrn\n}\n")
    assert npu_opt.main([str(path)]) == 2
    err = capfd.readouterr().err
    assert err.startswith(f"{path}:2:3: error: custom op 'retrn' is unknown")
    assert "\n  retrn\n  ^\n" in err


def test_nothing_is_written_after_an_error(tmp_path: Path) -> None:
    path, output = tmp_path / "bad.mlir", tmp_path / "out.mlir"
    path.write_text("nonsense")
    assert npu_opt.main([str(path), "-o", str(output)]) == 2
    assert sorted(tmp_path.iterdir()) == [path]


def test_unwritable_output(source: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert npu_opt.main([source, "-o", "no/such/place.mlir"]) == 2
    assert "cannot write" in capfd.readouterr().err


def test_unmet_expectation(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "f.mlir"
    path.write_text(MODULE + "// expected-error@-1 {{never}}\n")
    assert npu_opt.main([str(path), "--verify-diagnostics"]) == 1
    assert 'f.mlir:3:1: error: expected error "never" was not produced' in capfd.readouterr().err


def test_help_lists_all_passes_with_their_options(capfd: pytest.CaptureFixture[str]) -> None:
    assert npu_opt.main(["--help"]) == 0
    text = capfd.readouterr().out
    for cls in registry.all_passes():
        assert re.search(rf"^  --{cls.NAME}$", text, re.MULTILINE)
    for name in pipelines.PIPELINES:
        assert f"  --{name}\n" in text
    assert "matmul-strategy=os" in text


def test_version(capfd: pytest.CaptureFixture[str]) -> None:
    assert npu_opt.main(["--version"]) == 0
    assert capfd.readouterr().out.startswith(f"npu-opt {davinci.__version__}, MLIR of ")


def test_onnx_is_imported(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Printed, written, and lowered."""
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 3]) for n in "xy")
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", [x], [y])
    model, output = tmp_path / "net.onnx", tmp_path / "net.mlir"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), model)
    assert npu_opt.main([str(model)]) == 0
    text = capfd.readouterr().out
    assert "stablehlo.negate" in text
    assert npu_opt.main([str(model), "-o", str(output)]) == 0
    assert output.read_text() == text
    assert npu_opt.main([str(model), "--stablehlo-to-ascend"]) == 0
    assert "ascend.neg" in capfd.readouterr().out


def test_bytecode_is_read(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "f.mlirbc"
    with make_context(), path.open("wb") as file:
        ir.Module.parse(MODULE).operation.write_bytecode(file)
    assert npu_opt.main([str(path)]) == 0
    assert "func.func @f" in capfd.readouterr().out


DUPLICATES = """\
func.func @f(%x: i32) -> i32 {
  %0 = arith.addi %x, %x : i32
  %1 = arith.addi %x, %x : i32
  %2 = arith.muli %0, %1 : i32
  return %2 : i32
}
"""
NESTED = "--pass-pipeline=builtin.module(func.func(canonicalize,cse),plan-memory,insert-sync)"


@pytest.mark.parametrize(
    ("arguments", "dumps"),
    [
        (
            [NESTED, "--mlir-print-ir-before=insert-sync", "--mlir-print-ir-after=cse,plan-memory"],
            ["After CSEPass", "After PlanMemoryPass", "Before InsertSyncPass"],
        ),
        ([NESTED, "--mlir-print-ir-before=cse"], ["Before CSEPass"]),
        (
            ["--cse", "--plan-memory", "--cse", "--mlir-print-ir-after-all"],
            ["After CSEPass", "After PlanMemoryPass", "After CSEPass"],
        ),
        (
            [
                *("--cse", "--plan-memory", "--cse"),
                *("--mlir-print-ir-after-all", "--mlir-print-ir-after-change"),
            ],
            ["After CSEPass"],
        ),
    ],
)
def test_ir_is_printed_around_passes(
    arguments: list[str], dumps: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "f.mlir"
    path.write_text(DUPLICATES)
    assert npu_opt.main([str(path), *arguments]) == 0
    assert re.findall(r"IR Dump (\w+ \w+)", capfd.readouterr().err) == dumps


def test_locations_are_printed(source: str, capfd: pytest.CaptureFixture[str]) -> None:
    """In the result, and in what is printed around passes of both kinds."""
    arguments = ["--cse", "--plan-memory", "--mlir-print-ir-after-all"]
    for option, count in (([], 0), (["--mlir-print-debuginfo"], 3)):
        assert npu_opt.main([source, *arguments, *option]) == 0
        out, err = capfd.readouterr()
        assert len(re.findall(r'loc = loc\(".*f.mlir"', out + err)) == count
