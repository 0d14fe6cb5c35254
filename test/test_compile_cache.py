"""The cache of compiled models: what is the same is compiled once, anything else anew."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import davinci
from davinci import InputError, compile_cache, frontends, machine, zoo
from davinci.compile_cache import VARIABLE, CacheWarning
from davinci.frontends.identity import identity_of
from davinci.runtime import saved
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
        with pytest.warns(CacheWarning, match="compiled again: ") as found:
            assert state(tmp_path) == "damaged"
        assert [warning.filename for warning in found] == [__file__]
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
    for expected in ("compile (kept in the cache)", "load what an earlier run compiled, from"):
        assert npu_run.main(command) == 0
        assert f"s to {expected}" in capfd.readouterr().out
    (file,) = (tmp_path / "cache").iterdir()
    file.write_bytes(b"")
    assert npu_run.main(command) == 0
    done = capfd.readouterr()
    assert "compile (its file in the cache was damaged; kept in the cache)" in done.out
    assert done.err == ""


def test_npu_run_has_a_cache_unless_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model.mlir"
    model.write_text(MODEL)
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))

    def took(*options: str) -> str:
        assert npu_run.main([str(model), *options]) == 0
        return next(line for line in capfd.readouterr().out.splitlines() if " took " in line)

    assert "s to compile," in took("--no-cache")
    assert not (tmp_path / "home").exists()
    assert "kept in the cache" in took()
    assert len(list((tmp_path / "home" / "davinci-mlir").iterdir())) == 1
    assert "from the cache" in took()
    monkeypatch.setenv(VARIABLE, str(tmp_path / "own"))
    assert "kept in the cache" in took()
    monkeypatch.setenv(VARIABLE, "")
    assert "s to compile," in took()
    # A folder that nobody asked for and that cannot be made is no reason to stop.
    monkeypatch.setenv(VARIABLE, str(model / "below-a-file"))
    assert "could not be kept" in took()
    assert npu_run.main([str(model), "--cache", "x", "--no-cache"]) == 2


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [
        ("linux", "XDG_CACHE_HOME", "given/davinci-mlir"),
        ("linux", "", "home/.cache/davinci-mlir"),
        ("darwin", "", "home/Library/Caches/davinci-mlir"),
        ("win32", "LOCALAPPDATA", "given/davinci-mlir"),
    ],
)
def test_where_platforms_keep_caches(
    platform: str, variable: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (VARIABLE, "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    if variable:
        monkeypatch.setenv(variable, str(tmp_path / "given"))
    assert compile_cache.default_folder() == tmp_path / expected


def forbidden(*_: Any, **__: Any) -> Any:
    raise AssertionError("the model was imported again")


def test_a_network_of_the_zoo_is_not_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def network(spec: str = "mlp,features=16,hidden=16") -> Any:
        return davinci.compile(zoo.find(spec), cache=tmp_path).details["cache"]

    assert network() == "miss"
    assert network("mlp,features=16,hidden=32") == "miss"
    monkeypatch.setattr(zoo.Mlp, "build", forbidden)
    monkeypatch.setattr(frontends, "load", forbidden)
    assert network() == "hit"
    assert network("mlp,hidden=16,features=16") == "hit"
    with pytest.raises(AssertionError):
        network("mlp,features=16,hidden=16,seed=1")


def write_onnx(path: Path, weight: float, external: str = "") -> None:
    """x + weight, whose values lie in a file of their own where one is named."""
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 3]) for n in "xy")
    values = numpy_helper.from_array(np.full((2, 3), weight, np.float32), "w")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y], [values])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(
        model, path, save_as_external_data=bool(external), location=external, size_threshold=0
    )


@pytest.mark.parametrize("external", ["", "weights.bin"])
def test_an_onnx_file_is_its_bytes_and_those_of_its_weights(
    external: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, folder = tmp_path / "a.onnx", tmp_path / "cache"

    def run() -> tuple[str, float]:
        executable = davinci.compile(path, cache=folder)
        outputs = executable.run(np.zeros((2, 3), np.float32))
        return executable.details["cache"], float(outputs["y"][0, 0])

    write_onnx(path, 1.0, external)
    assert [run(), run()] == [("miss", 1.0), ("hit", 1.0)]
    if external:
        (tmp_path / external).unlink()  # onnx appends to it
    write_onnx(path, 2.0, external)
    assert run() == ("miss", 2.0)
    monkeypatch.setattr(frontends, "load", forbidden)
    assert run() == ("hit", 2.0)
    path = path.rename(tmp_path / "b.onnx")  # what it is called does not count
    assert run() == ("hit", 2.0)


def test_an_onnx_file_without_its_weights_is_no_hit(tmp_path: Path) -> None:
    write_onnx(tmp_path / "a.onnx", 1.0, "weights.bin")
    assert len(identity_of(tmp_path / "a.onnx") or []) == 3
    davinci.compile(tmp_path / "a.onnx", cache=tmp_path / "cache")
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(InputError, match="cannot read the model"):
        davinci.compile(tmp_path / "a.onnx", cache=tmp_path / "cache")


def test_what_was_used_longest_ago_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keep(number: int) -> Path:
        before = set(tmp_path.iterdir())
        assert state(tmp_path, TEXT.replace("VALUE", f"{number}.0")) == "miss"
        (new,) = set(tmp_path.iterdir()) - before
        os.utime(new, (number, number))
        return new

    own = tmp_path / "own.davinci"
    davinci.compile(MODEL).save(own)
    first, second = keep(1), keep(2)
    size = max(first.stat().st_size, second.stat().st_size)
    assert state(tmp_path, TEXT.replace("VALUE", "1.0")) == "hit"
    monkeypatch.setattr(compile_cache, "MOST_BYTES", 5 * size // 2)
    third = keep(3)
    assert set(tmp_path.iterdir()) == {own, first, third}
    monkeypatch.setattr(compile_cache, "MOST_BYTES", 1)
    fourth = keep(4)  # stays, though it alone is more
    assert set(tmp_path.iterdir()) == {own, fourth}


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    state(tmp_path)
    (entry,) = tmp_path.iterdir()
    old, new = tmp_path / f".{entry.name}.x_y", tmp_path / f".{entry.name}.abc"
    for path in (old, new):
        path.write_bytes(b"half of it")
    os.utime(old, (1, 1))
    state(tmp_path, TEXT.replace("VALUE", "2.0"))
    assert not old.exists() and new.exists()


def test_an_entry_that_is_removed_meanwhile_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state(tmp_path)
    (entry,) = tmp_path.iterdir()
    load = saved.load

    def removed(path: Path) -> Any:
        entry.unlink()
        return load(path)

    monkeypatch.setattr(saved, "load", removed)
    assert state(tmp_path) == "miss"
