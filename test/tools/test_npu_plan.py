"""npu-plan: plans of files, and one message for each thing that may be wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from davinci.planning import faults, files
from davinci.tools.npu_plan import main

STAGGERED = "id,lower,upper,size\n" + "".join(
    f"b{i},{i},{i + 5 + i * i % 7},{64 + 37 * i % 101}\n" for i in range(40)
)


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    path = tmp_path / "problem.csv"
    path.write_text(STAGGERED)
    return path


def test_the_record_holds_a_plan(problem: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = problem.with_suffix(".json")
    assert main([str(problem), "--seconds", "1", "--json", str(written)]) == 0
    record = json.loads(written.read_text())
    offsets = [buffer["offset"] for buffer in record["buffers"]]
    assert not faults(files.load(str(problem)), offsets)
    assert record["lower_bound"] <= record["bound"] <= record["height"]
    assert [buffer["id"] for buffer in record["buffers"]] == [f"b{i}" for i in range(40)]
    assert f"{record['height']:,} bytes by {record['algorithm']}" in capsys.readouterr().out


def test_what_does_not_fit_fails(problem: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(problem), "--quick", "--capacity", "100"]) == 1
    assert "bytes too many" in capsys.readouterr().out


def test_offsets_are_aligned(problem: Path) -> None:
    written = problem.with_suffix(".json")
    assert main([str(problem), "--quick", "--align", "512", "--json", str(written)]) == 0
    offsets = [buffer["offset"] for buffer in json.loads(written.read_text())["buffers"]]
    assert not any(offset % 512 for offset in offsets)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column id"),
        ("id,lower,upper\n1,2,3\n", "no column size"),
        ("id,lower,upper,size\n1,2,3,x\n", "size is no whole number"),
        ("id,lower,upper,size\n1,2,3\n", "size is no whole number"),
        ("id,lower,upper,size\n1,3,3,8\n", "lives for no time"),
        ("id,lower,upper,size\n1,2,3,-8\n", "negative"),
    ],
)
def test_bad_files(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    assert main([str(path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert f"{path}:{1 if 'column' in message else 2}" in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--capacity", "0"], "--capacity"),
        (["--align", "-1"], "--align"),
        (["--seconds", "0"], "--seconds"),
        (["--quick", "--seconds", "1"], "without a search"),
        (["--cpacity", "1"], "did you mean --capacity"),
    ],
)
def test_bad_options(
    arguments: list[str], message: str, problem: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(problem), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["missing.csv"]) == 2
    assert "missing.csv" in capsys.readouterr().err
    assert main([]) == 2
    assert "FILE.csv or MODEL is missing" in capsys.readouterr().err


def test_the_arena_of_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The problem of a network is what a run of it reports."""
    import davinci
    from davinci import job

    written = tmp_path / "plan.json"
    assert main(["zoo:mlp", "--quick", "--cores", "2", "--json", str(written)]) == 0
    record = json.loads(written.read_text())
    exe = davinci.compile(job.open_source("zoo:mlp").model, cores=2, timing_only=True, cache=False)
    facts = exe.facts
    assert record["height"] == facts.arena_bytes
    assert record["lower_bound"] == facts.arena_lower_bound_bytes
    assert len(record["buffers"]) == len(facts.arena) > 1
    out = capsys.readouterr().out
    assert f"compiled   {facts.arena_bytes:,} bytes; {facts.arena_unplanned_bytes:,} if" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cores", "2"], "--cores: a file of buffers is for no machine"),
        (["--machine", "ascend310"], "--machine: a file of buffers is for no machine"),
    ],
)
def test_options_of_models(
    arguments: list[str], message: str, problem: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(problem), *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("zoo:nothing", "zoo:nothing"),
        ("none.onnx", "none.onnx: no such file"),
        ("net.davinci", "its arena is planned already"),
    ],
)
def test_bad_models(
    model: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.davinci").write_bytes(b"")
    assert main([model]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("written", "message"), [("missing/plan.json", "missing"), ("problem.csv", "problem.csv")]
)
def test_a_record_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], written: str, message: str
) -> None:
    """It is refused before anything is searched or written over."""
    problem = tmp_path / "problem.csv"
    text = "id,lower,upper,size\n0,0,2,4\n"
    problem.write_text(text)
    assert main([str(problem), "--quick", "--json", str(tmp_path / written)]) == 2
    heard = capsys.readouterr()
    assert message in heard.err
    assert not heard.out
    assert problem.read_text() == text
