"""The README's short examples do what it shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import davinci
from davinci import zoo
from davinci.tools import npu_opt, npu_run

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
SHOWN = re.findall(r"^\$ npu-opt (.*)\n((?:.+\n)*?)```", README, re.MULTILINE)
SNIPPETS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def unnamed(line: str) -> str:
    """A line without the key of a kernel, which another version of the compiler may change."""
    return re.sub(r'ascend\.key = "[0-9a-f]+"', 'ascend.key = ".."', line.strip())


@pytest.mark.parametrize(("arguments", "output"), SHOWN, ids=["pipeline", "assembly"])
def test_npu_opt_prints_what_is_shown(
    arguments: str, output: str, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.chdir(ROOT)
    assert npu_opt.main(shlex.split(arguments)) == 0
    printed = [unnamed(line) for line in capsys.readouterr().out.splitlines()]
    shown = [unnamed(line) for line in output.splitlines() if line != "..."]
    assert len(shown) > 5 and [line for line in shown if line not in printed] == []


def test_the_python_example_runs(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # it writes files
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (snippet,) = SNIPPETS
    names: dict[str, Any] = {}
    exec(snippet, names)
    assert (names["outputs"]["out0"] == 2).all()
    assert {path.name for path in tmp_path.iterdir()} == {"examples", "add.html", "add.davinci"}


def test_options_that_are_named_exist(capsys: Any) -> None:
    assert npu_run.main(["--help"]) == npu_opt.main(["--help"]) == 0
    known = set(re.findall(r"--[a-z][a-z-]+", capsys.readouterr().out))
    named = set(re.findall(r"--[a-z][a-z-]+", README))
    assert named - known == set()


def test_the_run_that_is_shown_is_one_of_today() -> None:
    """`benchmarks/speed/readme_sample.py --write` makes it anew."""
    shown = re.search(r"^\$ npu-run (zoo:bert\S+) --check", README, re.MULTILINE)
    assert shown is not None
    sample = README[shown.end() :].partition("```")[0]
    executable = davinci.compile(zoo.build(shown[1].removeprefix("zoo:")).proto, timing_only=True)
    executable.run()
    record = executable.profile
    ops = record["ops"]
    assert f"{ops['cube']} cube, {ops['vector']} vector, {ops['scalar']} scalar" in sample
    assert f"to launch {ops['total']} kernels" in sample
    cycles = re.search(r"= ([\d,]+) cycles", sample)
    assert cycles is not None
    # Rows that a gather reads are of other tokens here.
    assert int(cycles[1].replace(",", "")) == pytest.approx(record["total_cycles"], rel=0.002)
