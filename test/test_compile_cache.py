"""`davinci.compile(.., cache=folder)`: what is the same is compiled once, anything else anew."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import davinci
from davinci import InputError, machine
from davinci.compile_cache import CacheWarning
from davinci.tools import npu_run

TEXT = """
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %c = stablehlo.constant dense<VALUE> : tensor<2x3xf32>
  %0 = stablehlo.add %x, %c : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}"""
MODEL = TEXT.replace("VALUE", "1.0")
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def state(folder: Path, model: str = MODEL, **options: Any) -> str:
    """What the cache had to say about a compilation, whose result is tried."""
    executable = davinci.compile(model, cache=folder, **options)
    outputs = executable.run(X)
    assert not outputs or outputs["out0"][0, 0] != X[0, 0]
    return str(executable.profile["cache"])


def test_once_for_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "cache"
    assert [state(folder), state(folder)] == ["miss", "hit"]
    other = TEXT.replace("VALUE", "2.0")
    assert [state(folder, other), state(folder, other)] == ["miss", "hit"]
    assert [path.suffix for path in folder.iterdir()] == [".davinci"] * 2
    found = davinci.compile(MODEL, cache=folder)
    np.testing.assert_array_equal(found.run(X)["out0"], X + 1)
    assert found.profile["model"] == "MLIR text"


@pytest.mark.parametrize(
    "change",
    [
        {"machine": "ascend310"},
        {"cores": 1},
        {"precision": "fp16"},
        {"tile": (16, 16, 16)},
        {"checks": False},
        {"timing_only": True},
    ],
    ids=lambda change: next(iter(change)),
)
def test_options_are_of_the_key(change: dict[str, Any], tmp_path: Path) -> None:
    state(tmp_path)
    assert [state(tmp_path, **change), state(tmp_path, **change)] == ["miss", "hit"]


def test_the_machine_file_is_of_the_key(tmp_path: Path) -> None:
    text = (machine.DIRECTORY / "ascend310.toml").read_text()
    states = []
    for name, clock in (("one", "680"), ("two", "680"), ("three", "700")):
        own = tmp_path / f"{name}.toml"
        own.write_text(text.replace("clock_mhz = 680", f"clock_mhz = {clock}"))
        assert machine.load(str(own)).clock_mhz == int(clock)
        states.append(state(tmp_path / "cache", machine=str(own)))
    assert states == ["miss", "hit", "miss"]


def test_a_damaged_file_is_compiled_again_and_said_so(tmp_path: Path) -> None:
    state(tmp_path)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    for damaged in (b"", whole[:100], whole[:-200] + bytes(200)):
        file.write_bytes(damaged)
        with pytest.warns(CacheWarning, match="compiled again: "):
            assert state(tmp_path) == "damaged"
        assert state(tmp_path) == "hit"


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot make the cache's folder: "):
        davinci.compile(MODEL, cache=tmp_path / "file")


def test_what_cannot_be_kept_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Any, path: Any) -> None:
        raise InputError("cannot write: No space left on device", where=str(path))

    monkeypatch.setattr(davinci.Executable, "save", full)
    with pytest.warns(CacheWarning, match="No space left on device; what was compiled is not kept"):
        assert state(tmp_path) == "miss, not kept"


def test_several_processes_share_a_folder(tmp_path: Path) -> None:
    program = (
        "import davinci, numpy, sys\n"
        "text = open(sys.argv[1]).read()\n"
        "exe = davinci.compile(text, cache=sys.argv[2])\n"
        "print(exe.run(numpy.zeros((2, 3), 'f4'))['out0'].sum())\n"
    )
    (tmp_path / "model.mlir").write_text(MODEL)
    command = [sys.executable, "-c", program, str(tmp_path / "model.mlir"), str(tmp_path / "cache")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate()[0] for process in running] == ["6.0\n"] * 3
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_of_npu_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.mlir").write_text(MODEL)
    command = [str(tmp_path / "model.mlir"), "--cache", str(tmp_path / "cache")]
    for expected in ("miss", "hit"):
        assert npu_run.main(command) == 0
        assert f"s to compile (cache: {expected})," in capfd.readouterr().out
    (file,) = (tmp_path / "cache").iterdir()
    file.write_bytes(b"")
    assert npu_run.main(command) == 0
    done = capfd.readouterr()
    assert "(cache: damaged)" in done.out and done.err == ""
