"""Tuning: what it measures is what runs take; what was measured is kept, whoever dies."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import davinci
from davinci.errors import InputError
from davinci.schedule import schedule_file

pytest.importorskip("optuna")
pytest.importorskip("distributed")

from davinci.tuning import search, workers
from davinci.tuning.search import DATABASE

TEXT = """func.func @main(%x: tensor<200x96xf32>, %y: tensor<200x96xf32>) -> tensor<200xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %t = stablehlo.tanh %x : tensor<200x96xf32>
  %p = stablehlo.multiply %t, %y : tensor<200x96xf32>
  %s = stablehlo.reduce(%p init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<200x96xf32>, tensor<f32>) -> tensor<200xf32>
  return %s : tensor<200xf32>
}"""
TUNE = """
import sys, davinci
model, folder, trials = sys.argv[1:]
print(davinci.tune(model, cache=folder, trials=int(trials), worth=0).text())
"""


def cycles(executable: Any) -> int:
    """Of the only kernel, on random inputs."""
    arrays = [np.ones(spec.shape, spec.dtype) for spec in executable.inputs]
    executable.run(*arrays)
    (kernel,) = executable.profile["kernels"]
    return int(kernel["cycles"])


def test_what_is_measured_is_what_runs_take(tmp_path: Path) -> None:
    found = davinci.tune(TEXT, trials=100, worth=0)
    (kernel,), (untuned,) = found.kernels, found.untuned
    assert untuned == cycles(davinci.compile(TEXT))
    assert kernel.cycles <= untuned and found.measured[0] > 3
    path = tmp_path / "s.json"
    path.write_text(found.text())
    assert cycles(davinci.compile(TEXT, schedules=path)) == kernel.cycles
    assert schedule_file.read(str(path)).kernels == found.kernels


@pytest.mark.parametrize("trials", [1, 5])
def test_trials(trials: int) -> None:
    assert davinci.tune(TEXT, trials=trials, worth=0).measured == (trials,)


def test_machines_and_cores(tmp_path: Path) -> None:
    """A user's own machine file, also for workers that cannot see it."""
    files = Path(davinci.__file__).parent / "machine" / "files"
    path = tmp_path / "mine.toml"
    path.write_text((files / "ascend310.toml").read_text())
    ours = davinci.tune(TEXT, machine="ascend310", cores=1, trials=3)
    mine = davinci.tune(TEXT, machine=str(path), cores=1, trials=3)
    assert [kernel.cycles for kernel in mine.kernels] == [kernel.cycles for kernel in ours.kernels]


def test_the_cache_spares_measuring(tmp_path: Path, monkeypatch: Any) -> None:
    before = davinci.tune(TEXT, cache=tmp_path, trials=4)
    monkeypatch.setattr(workers, "measure", None)
    assert davinci.tune(TEXT, cache=tmp_path, trials=4) == before


def test_a_new_compiler_measures_again(tmp_path: Path, monkeypatch: Any) -> None:
    davinci.tune(TEXT, cache=tmp_path, trials=2)
    asked = []
    monkeypatch.setattr(workers, "measure", lambda text, choices, target: asked.append(1) or 7)
    monkeypatch.setattr(search, "compiler_version", lambda: "another")
    again = davinci.tune(TEXT, cache=tmp_path, trials=2, worth=0)
    assert again.kernels[0].cycles == 7
    assert len(asked) == 2


def test_two_at_once_and_one_is_killed(tmp_path: Path) -> None:
    """The database stays whole, and what either had measured is there."""
    model, folder = tmp_path / "m.mlir", tmp_path / "cache"
    model.write_text(TEXT)
    command = [sys.executable, "-c", TUNE, str(model), str(folder), "6"]
    first, second = (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)
    )
    end = time.monotonic() + 120
    while time.monotonic() < end and measured(folder) < 2:
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    out, err = second.communicate(timeout=120)
    assert second.returncode == 0, err.decode()
    assert measured(folder) >= 6
    with sqlite3.connect(folder / DATABASE) as database:
        assert database.execute("pragma integrity_check").fetchone() == ("ok",)
    again, before = davinci.tune(TEXT, cache=folder, trials=12, worth=0), json.loads(out)
    (now,), (then,) = json.loads(again.text())["kernels"], before["kernels"]
    with sqlite3.connect(folder / DATABASE) as database:
        (least,) = database.execute("select min(value) from trial_values").fetchone()
    assert now["cycles"] == least <= then["cycles"]


def measured(folder: Path) -> int:
    """Candidates in a database that may not be there yet."""
    try:
        with sqlite3.connect(f"file:{folder / DATABASE}?mode=ro", uri=True) as database:
            found = database.execute("select count(*) from trials where state = 'COMPLETE'")
            return int(found.fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def test_workers() -> None:
    """A local cluster of two processes finds what this process finds."""
    assert davinci.tune(TEXT, trials=4, workers=2).kernels == davinci.tune(TEXT, trials=4).kernels


def test_nobody_at_the_address(monkeypatch: Any) -> None:
    monkeypatch.setattr(workers, "CONNECT_SECONDS", 1)
    with pytest.raises(InputError, match="no Dask scheduler"):
        davinci.tune(TEXT, trials=2, scheduler="tcp://127.0.0.1:9")


@pytest.mark.parametrize(
    ("error", "said"), [(OSError("refused"), "refused"), (OSError(), "OSError")]
)
def test_what_a_scheduler_answers_is_said(
    error: OSError, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error without words is told by its name."""

    def client(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr("distributed.Client", client)
    with pytest.raises(InputError) as found:
        davinci.tune(TEXT, trials=2, scheduler="tcp://127.0.0.1:9")
    assert found.value.found == said


def test_what_cannot_be_simulated_is_told(monkeypatch: Any) -> None:
    """Of three ways the second is none."""
    asked: list[str] = []

    def measured(text: str, choices: Any, target: Any) -> int:
        asked.append(str(choices))
        if len(asked) == 2:
            raise davinci.DeviceFault("not on this machine")
        return 5

    monkeypatch.setattr(workers, "measure", measured)
    with pytest.warns(UserWarning, match="candidate 1: not on this machine"):
        (kernel,) = davinci.tune(TEXT, trials=3, worth=0).kernels
    assert kernel.cycles == 5


@pytest.mark.parametrize("content", [b"", b"no database", None])
def test_a_folder_that_is_none(tmp_path: Path, content: bytes | None) -> None:
    """An empty file becomes a database; a folder or a text of its name does not."""
    path = tmp_path / DATABASE
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    if content == b"":
        assert davinci.tune(TEXT, cache=tmp_path, trials=1).measured == (1,)
        return
    with pytest.raises(InputError, match="not a database of the tuner"):
        davinci.tune(TEXT, cache=tmp_path, trials=1)


@pytest.mark.parametrize("option", [{"trials": 0}, {"workers": -1}, {"trials": "3"}])
def test_bad_values(option: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="bad value"):
        davinci.tune(TEXT, **option)


def test_nothing_to_tune() -> None:
    text = "func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> { return %x : tensor<3xf32> }"
    assert davinci.tune(text).kernels == ()
