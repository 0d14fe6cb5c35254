"""npu-run as its user sees it: exit codes, messages, files."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import davinci
from davinci import zoo
from davinci.tools import npu_run

MODULE = """\
func.func @main(%x: tensor<3x5xf32>, %y: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %0 = stablehlo.add %x, %y : tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}
"""


@pytest.fixture
def add(tmp_path: Path) -> str:
    """The path of a module that adds two arrays."""
    path = tmp_path / "add.mlir"
    path.write_text(MODULE)
    return str(path)


def save_onnx(path: Path, operator: str, shape: list[object], result: list[object]) -> str:
    """Writes a model of one node called `the_node`."""
    node = helper.make_node(operator, ["x"], ["y"], name="the_node")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    kind = TensorProto.INT64 if operator == "NonZero" else TensorProto.FLOAT
    y = helper.make_tensor_value_info("y", kind, result)
    graph = helper.make_graph([node], "g", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return str(path)


def test_runs_and_writes_all_files(add: str, tmp_path: Path) -> None:
    inputs = {"arg0": np.ones((3, 5), np.float32), "arg1": np.full((3, 5), 2, np.float32)}
    np.savez(tmp_path / "in.npz", **inputs)
    out = tmp_path / "out"
    out.mkdir()
    arguments = [add, "--check", "--inputs", str(tmp_path / "in.npz")]
    for option, name in (
        ("--outputs", "o.npz"),
        ("--json", "r.json"),
        ("--trace", "t.json"),
        ("--report", "r.html"),
    ):
        arguments += [option, str(out / name)]
    assert npu_run.main(arguments) == 0
    with np.load(out / "o.npz") as file:
        np.testing.assert_array_equal(file["out0"], np.full((3, 5), 3, np.float32))
    record = json.loads((out / "r.json").read_text())
    assert record["ops"] == {"total": 1, "cube": 0, "vector": 1, "scalar": 0}
    assert record["machine"] == "ascend910"
    assert record["kernels"][0]["cycles"] >= record["kernels"][0]["bound_cycles"] > 0
    assert record["total_cycles"] == sum(k["cycles"] for k in record["kernels"])
    assert record["check"]["cosine"] == pytest.approx(1.0)
    memory = {"weights_bytes", "arena", "plans", "lower_bound_bytes"}
    memory |= {"arena_bytes", "arena_unplanned_bytes"}
    assert memory == set(record["memory"])
    assert 0 < record["pipes"]["PIPE_MTE2"]["ratio"] <= 1
    assert any(
        e.get("name") == "vadd.f32" for e in json.loads((out / "t.json").read_text())["traceEvents"]
    )
    page = (out / "r.html").read_text()
    assert page.startswith("<!doctype html>") and record["kernels"][0]["name"] in page
    assert len(list(out.iterdir())) == 4


def test_same_seed_same_outputs(add: str, tmp_path: Path) -> None:
    files = [tmp_path / f"{i}.npz" for i in range(3)]
    for path, seed in zip(files, (1, 1, 2), strict=True):
        assert npu_run.main([add, "--seed", str(seed), "--outputs", str(path)]) == 0
    first, second, third = (np.load(path)["out0"] for path in files)
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, third)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "MODEL is missing"),
        (["no/such.onnx"], "no/such.onnx: no such file"),
        (["zoo:brt"], "did you mean 'bert'"),
        (["zoo:mlp", "--chek"], "did you mean --check?"),
        (["zoo:mlp", "--machine", "ascend911"], "did you mean 'ascend910'"),
        (["zoo:mlp", "--cores", "33"], "expected 1 to 32"),
        (["zoo:mlp", "--cores", "many"], "invalid int value"),
        (["zoo:mlp", "--precision", "fp8"], "expected one of mixed"),
        (["zoo:mlp", "--inputs", "no.npz"], "no.npz: cannot read"),
        (["zoo:mlp", "--inputs", "a.npz", "--seed", "1"], "not allowed with"),
        (["pyproject.toml"], "file name that ends in .onnx or .mlir"),
    ],
)
def test_bad_usage(
    arguments: list[str],
    message: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    check_failure(arguments, 2, message, capfd)


def check_failure(
    arguments: list[str], code: int, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The command ends with `code` and one line on stderr that has `message`."""
    assert npu_run.main(arguments) == code
    out, err = capfd.readouterr()
    assert out == ""
    assert message in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.zeros((3, 5), np.float32)}, "wrong input names; found x; expected arg0"),
        ({"arg0": np.zeros((3, 5), np.float32)}, "wrong input names"),
        ({"arg0": np.zeros((5, 3), np.float32)}, "found float32[5, 3]; expected float32[3, 5]"),
        ({"arg0": np.zeros((3, 5), np.float64)}, "found float64[3, 5]; expected float32[3, 5]"),
    ],
)
def test_bad_inputs(
    add: str,
    tmp_path: Path,
    arrays: dict[str, np.ndarray],
    message: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    if "expected float32" in message:
        arrays = {**arrays, "arg1": np.zeros((3, 5), np.float32)}
    path = tmp_path / "in.npz"
    np.savez(path, **arrays)
    check_failure([add, "--inputs", str(path)], 2, message, capfd)


def test_inputs_that_are_no_npz_file(
    add: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "in.npz"
    path.write_text("nonsense")
    check_failure([add, "--inputs", str(path)], 2, "not an .npz file", capfd)


def test_truncated_onnx(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.onnx"
    whole = Path(save_onnx(path, "Exp", [2, 3], [2, 3])).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    check_failure([str(path)], 2, "net.onnx: not an ONNX file, or a truncated one", capfd)


def test_dynamic_shape(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = save_onnx(tmp_path / "net.onnx", "Exp", ["batch", 3], ["batch", 3])
    check_failure([path], 3, "dimension 0 is 'batch'; expected static shapes", capfd)


def test_unsupported_operator_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = save_onnx(tmp_path / "net.onnx", "NonZero", [2, 3], [2, "found"])
    check_failure([path], 3, "'the_node'", capfd)


def test_unknown_machine_key(add: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from davinci import machine

    text = (machine.DIRECTORY / "ascend910.toml").read_text()
    path = tmp_path / "mine.toml"
    path.write_text(text.replace("clock_mhz", "clock_mhs"))
    check_failure([add, "--machine", str(path)], 2, "did you mean 'clock_mhz'", capfd)


def test_malformed_mlir(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.mlir"
    path.write_text("func.func @f() {\n  retrn\n}\n")
    check_failure([str(path)], 2, "bad.mlir:2:3: custom op", capfd)


def test_failed_check(
    add: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from davinci.reference import interpreter

    zeros = {"out0": np.zeros((3, 5), np.float32)}
    monkeypatch.setattr(interpreter, "reference", lambda *arguments: zeros)
    assert npu_run.main([add, "--check"]) == 1
    assert "the outputs differ from the reference" in capfd.readouterr().err


def test_unwritable_result(add: str, capfd: pytest.CaptureFixture[str]) -> None:
    check_failure([add, "--json", "no/such/place.json"], 2, "cannot write", capfd)


LATE = [
    ("--what-if launches=2x", "no time or rate of the machine file"),
    ("--what-if v=2", "a pipe has no number"),
    ("--what-if mte2.port", "no change of times"),
    ("--seed -1", "no such seed"),
    ("--processes 0", "--processes: bad value"),
    ("--instruction-limit 0", "--instruction-limit: bad value"),
    ("--inputs none.npz", "none.npz: cannot read"),
    ("--expect none.npz", "none.npz: cannot read"),
    ("--schedules none.json", "cannot read the schedules"),
    ("--cores 99", "no such number of cores"),
    ("--machine none.toml", "no such machine"),
    ("--precision f16", "option precision: bad value"),
    ("--trials 3", "without --tune nothing is tried"),
    ("--tune-worth 3", "--tune-worth: without --tune nothing is tried"),
    ("--tune --tune-worth 100", "expected a percentage"),
    ("--advise-seconds 3", "without --advise nothing is tried"),
    ("--advise --advise-seconds 0", "expected seconds, more than 0"),
    ("--batch 0", "expected 1 or more"),
    ("--accuracy 0.9", "without --quantize nothing is quantized"),
    ("--json no/such/place.json", "cannot write"),
    ("--csv ''", "no folder"),
]


@pytest.mark.parametrize(("option", "message"), LATE, ids=lambda text: text.split()[0])
def test_options_are_checked_before_the_model_is_read(
    option: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def opened(name: str) -> None:
        raise AssertionError("the model is read")

    monkeypatch.setattr("davinci.job.open_source", opened)
    assert npu_run.main(["zoo:mlp", *shlex.split(option)]) == 2
    assert message in capfd.readouterr().err


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--what-if kernel=add:v=2x", "no such kernel; found 'add'; expected "),
        ("--expect {npz}", "wrong output names"),
    ],
)
def test_what_needs_the_kernels_is_checked_before_they_run(
    option: str,
    message: str,
    add: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "other.npz"
    np.savez(path, other=np.zeros(3))

    def run(self: Any, *arrays: Any, **named: Any) -> None:
        raise AssertionError("it runs")

    monkeypatch.setattr("davinci.runtime.executable.Executable.run", run)
    assert npu_run.main([add, *option.format(npz=path).split()]) == 2
    assert message in capfd.readouterr().err


def test_save_and_run_again(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    saved, first, second = (str(tmp_path / n) for n in ("net.davinci", "a.npz", "b.npz"))
    assert npu_run.main(["zoo:mlp", "--cores", "2", "--save", saved, "--outputs", first]) == 0
    assert npu_run.main([saved, "--seed", "0", "--outputs", second]) == 0
    out = capfd.readouterr().out
    assert out.count("zoo:mlp") == 2 and out.count(", 2 cores,") == 2
    assert npu_run.main([saved, "--check"]) == 2
    assert "--check: there is no reference for a saved executable" in capfd.readouterr().err
    assert npu_run.main([saved, "--machine", "ascend310", "--timing-only"]) == 2
    assert "found --machine; compile the model again" in capfd.readouterr().err
    record = tmp_path / "r.json"
    assert npu_run.main([saved, "--timing-only", "--json", str(record)]) == 0
    assert json.loads(record.read_text())["timing_only"] is True
    capfd.readouterr()
    assert npu_run.main([saved, "--save", saved]) == 2
    assert "would replace another file" in capfd.readouterr().err
    Path(saved).write_bytes(Path(saved).read_bytes()[:-9])
    assert npu_run.main([saved]) == 2
    assert "net.davinci: not a saved executable" in capfd.readouterr().err


@pytest.mark.parametrize(("error", "code"), [(0, 0), (1e-4, 0), (1, 1)])
def test_expected_outputs_of_a_kernel_by_hand(
    error: float, code: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """For them there is no other reference."""
    kernel = Path(__file__).parents[2] / "examples" / "hand_written.mlir"
    files = {name: str(tmp_path / name) for name in ("in.npz", "out.npz", "expected.npz", "r.json")}
    arguments = [str(kernel), "--seed", "3", "--outputs", files["out.npz"]]
    assert npu_run.main(arguments) == 0
    with np.load(files["out.npz"]) as outputs:
        expected = {name: array + error for name, array in outputs.items()}
    np.savez(files["expected.npz"], **expected)
    capfd.readouterr()
    assert npu_run.main([*arguments[:3], "--expect", files["expected.npz"]]) == code
    assert ("the outputs differ from the reference" in capfd.readouterr().err) == bool(code)


def test_record_names_the_file_of_expected_outputs(add: str, tmp_path: Path) -> None:
    expected, record = tmp_path / "expected.npz", tmp_path / "r.json"
    assert npu_run.main([add, "--outputs", str(expected)]) == 0
    assert npu_run.main([add, "--expect", str(expected), "--json", str(record)]) == 0
    found = json.loads(record.read_text())["check"]
    assert found["reference"] == str(expected)
    assert found["max_abs_err"] == 0


def test_expected_outputs_of_another_shape(
    add: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "expected.npz"
    np.savez(path, out0=np.zeros((5, 3), np.float32))
    check_failure([add, "--expect", str(path)], 1, "shapes differ", capfd)


def test_version(capfd: pytest.CaptureFixture[str]) -> None:
    assert npu_run.main(["--version"]) == 0
    assert capfd.readouterr().out.startswith(f"npu-run {davinci.__version__}, MLIR of ")


def test_quantizes_and_says_what_it_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = zoo.build("mlp,features=32,hidden=32")
    data, made, record = (str(tmp_path / name) for name in ("c.npz", "int8.onnx", "r.json"))
    np.savez(data, x=np.stack([model.inputs(seed)["x"] for seed in range(4)]))
    command = [f"zoo:{model.spec}", "--check", "--quantize", data, "--json", record]
    assert npu_run.main(command) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "left in floats where int8 takes longer" in said
    found = json.loads(Path(record).read_text())["quantization"]
    assert found["time_us"] <= found["floats_time_us"]
    assert all(layer["kept"] == (layer["why"] == "time") for layer in found["layers"])
    command += ["--quantize-layers", "all"]
    assert npu_run.main([*command, "--save-quantized", made, "--quantize-method", "kl"]) == 0
    assert "3 of 3 layers to int8 by kl" in capsys.readouterr().out
    found = json.loads(Path(record).read_text())["quantization"]
    assert found["time_us"] > 0 and found["floats_time_us"] > 0
    assert found["cosine"] > 0.998 and [layer["kept"] for layer in found["layers"]] == [False] * 3
    assert "QuantizeLinear" in [node.op_type for node in onnx.load(made).graph.node]
    assert npu_run.main([*command, "--accuracy", "1"]) == 0
    assert all(
        layer["kept"] for layer in json.loads(Path(record).read_text())["quantization"]["layers"]
    )


@pytest.mark.parametrize(
    "option",
    [
        ("--accuracy", "0.9"),
        ("--quantize-method", "kl"),
        ("--quantize-layers", "all"),
        ("--save-quantized", "q.onnx"),
    ],
)
def test_options_of_quantization_need_it(option: tuple[str, str], add: str) -> None:
    assert npu_run.main([add, *option]) == 2


def test_only_onnx_is_quantized(add: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert npu_run.main([add, "--quantize", "c.npz"]) == 2
    assert "only ONNX models are quantized" in capsys.readouterr().err
