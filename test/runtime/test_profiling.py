"""`davinci.profile`: what everything that runs inside takes."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import davinci


def program(operator: str, rows: int) -> str:
    kind = f"tensor<{rows}x64xf32>"
    return f"""
func.func @main(%a: {kind}) -> {kind} {{
  %r = stablehlo.{operator} %a : {kind}
  return %r : {kind}
}}
"""


@pytest.fixture(scope="module")
def executables() -> list[Any]:
    return [davinci.compile(program(name, 16)) for name in ("abs", "tanh", "abs")]


X = np.linspace(-1, 1, 16 * 64, dtype=np.float32).reshape(16, 64)


def test_runs_of_several_executables(executables: list[Any], tmp_path: Path) -> None:
    absolute, tanh, again = executables
    with davinci.profile() as found:
        for exe in (absolute, absolute, tanh, again):
            exe.run(X)
    record = found.record
    assert [run["launches"] for run in record["runs"]] == [1, 1, 1, 1]
    assert record["total_cycles"] == sum(run["total_cycles"] for run in record["runs"])
    # Each run waits for the host once, as it does alone.
    assert record["time_us"] == pytest.approx(sum(run["time_us"] for run in record["runs"]))
    assert sorted(row["launches"] for row in record["kernels"]) == [1, 3]
    found.report(str(tmp_path / "r.html"))
    found.trace(str(tmp_path / "t.json"))
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert any("vabs" in event["name"] for event in events)
    assert "<html" in (tmp_path / "r.html").read_text()
    assert "tanh" in str(found)


def test_kernels_of_one_name_are_told_apart() -> None:
    """The same operator on other shapes, whose kernels were given one name by hand."""
    text = """
module {
  func.func @main(%a: memref<SIZExf32> {ascend.name = "a"}) attributes {ascend.entry} {
    call @k(%a) {ascend.blocks = 1 : i64} : (memref<SIZExf32>) -> ()
    return
  }
  func.func private @k(memref<SIZExf32>) attributes {ascend.launch = @kernels::@k}
  module @kernels {
    func.func @k(%a: memref<SIZExf32>) attributes {ascend.kernel} {
      return
    }
  }
}
"""
    first, second = (davinci.compile(text.replace("SIZE", size)) for size in ("64", "128"))
    with davinci.profile() as found:
        first.run(np.zeros(64, np.float32))
        second.run(np.zeros(128, np.float32))
    assert sorted(row["name"] for row in found.record["kernels"]) == ["k", "k_2"]


def test_nested(executables: list[Any]) -> None:
    absolute, tanh, _ = executables
    with davinci.profile() as outer:
        absolute.run(X)
        with davinci.profile("none") as inner:
            tanh.run(X)
    absolute.run(X)
    assert [run.executable for run in outer.runs] == [absolute, tanh]
    assert [run.executable for run in inner.runs] == [tanh]
    assert inner.launches[0].rows, "the outer one asked for them"


def test_threads(executables: list[Any]) -> None:
    absolute, tanh, again = executables
    with davinci.profile() as found:
        threads = [threading.Thread(target=exe.run, args=(X,)) for exe in (absolute, tanh, again)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert {id(run.executable) for run in found.runs} == {id(exe) for exe in executables}
    assert {run.thread for run in found.runs} == {thread.name for thread in threads}


def test_what_fails_is_in_none(executables: list[Any]) -> None:
    with davinci.profile() as found, pytest.raises(davinci.InputError):
        executables[0].run(X[:1])
    assert found.runs == []
    with pytest.raises(davinci.InputError, match="nothing has run"):
        _ = found.record
    assert str(found) == "<davinci.Profile of 0 runs, 0 launches>"


def test_machines_are_not_mixed(executables: list[Any]) -> None:
    other = davinci.compile(program("abs", 16), machine="ascend310")
    with davinci.profile() as found:
        executables[0].run(X)
        other.run(X)
    with pytest.raises(davinci.InputError, match="different machines"):
        _ = found.record
    assert [run.record["machine"] for run in found.runs] == ["ascend910", "ascend310"]


def test_no_such_timeline() -> None:
    with pytest.raises(davinci.InputError, match="timeline"), davinci.profile("some"):  # type: ignore[arg-type]
        pass
