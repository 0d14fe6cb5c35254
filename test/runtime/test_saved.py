"""Executables as files: the same run, and one clear error for what is no such file."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import davinci
from davinci import InputError, machine
from davinci.runtime import saved

WEIGHTS = np.random.default_rng(0).standard_normal((64, 32), np.float32)
MODEL = f"""
func.func @main(%x: tensor<16x64xf32> {{ascend.name = "x"}}, %m: tensor<16x32xi1>)
    -> (tensor<16x32xf32> {{ascend.name = "y"}}) {{
  %w = stablehlo.constant dense_resource<w> : tensor<64x32xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
     : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>
  %1 = stablehlo.reduce_precision %0, format = e5m10 : tensor<16x32xf32>
  %2 = stablehlo.select %m, %0, %1 : tensor<16x32xi1>, tensor<16x32xf32>
  return %2 : tensor<16x32xf32>
}}
{{-# dialect_resources: {{ builtin: {{ w: "0x04000000{WEIGHTS.tobytes().hex()}" }} }} #-}}"""

X = np.random.default_rng(1).standard_normal((16, 64), np.float32)
M = X[:, :32] > 0


@pytest.fixture(scope="module")
def original() -> davinci.Executable:
    return davinci.compile(MODEL)


@pytest.fixture(scope="module")
def file(original: davinci.Executable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "net.davinci"
    original.save(path)
    return path


def test_a_loaded_executable_does_the_same(original: davinci.Executable, file: Path) -> None:
    loaded = davinci.load(file)
    assert (loaded.inputs, loaded.outputs) == (original.inputs, original.outputs)
    for x in (X, -X):
        assert loaded.run(x, M)["y"].tobytes() == original.run(x, M)["y"].tobytes()
    keys = ("machine", "model", "precision", "total_cycles", "kernels", "memory", "compile_seconds")
    assert [loaded.profile[k] for k in keys] == [original.profile[k] for k in keys]


def test_saving_after_a_run_and_again(file: Path, tmp_path: Path) -> None:
    loaded = davinci.load(file)
    expected = loaded.run(X, M)["y"].tobytes()
    loaded.save(tmp_path / "again.davinci")
    assert davinci.load(tmp_path / "again.davinci").run(X, M)["y"].tobytes() == expected


def test_the_machine_is_in_the_file(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    text = (machine.DIRECTORY / "ascend310.toml").read_text()
    own.write_text(text.replace('name = "ascend310"', 'name = "mine"'))
    executable = davinci.compile(MODEL, machine=str(own), cores=1)
    executable.save(tmp_path / "net.davinci")
    own.unlink()
    loaded = davinci.load(tmp_path / "net.davinci")
    assert (loaded.machine.name, loaded.cores) == ("mine", 1)
    assert loaded.machine == executable.machine


def test_without_data(tmp_path: Path) -> None:
    executable = davinci.compile(MODEL, timing_only=True)
    executable.run(X, M)
    executable.save(tmp_path / "net.davinci")
    loaded = davinci.load(tmp_path / "net.davinci")
    assert loaded.run(X, M) == {}
    assert loaded.profile["total_cycles"] == executable.profile["total_cycles"]


def test_times_only_of_a_file_with_data(file: Path) -> None:
    whole, quick = davinci.load(file), davinci.load(file, timing_only=True)
    whole.run(X, M)
    assert quick.run(X, M) == {} == quick.run()
    assert quick.profile["total_cycles"] == whole.profile["total_cycles"]
    assert quick.profile["timing_only"] is True


def test_inputs_are_left_out_without_data_only() -> None:
    executable = davinci.compile(MODEL, timing_only=True)
    assert executable.run() == {}
    cycles = executable.profile["total_cycles"]
    executable.run(X, M)
    assert executable.profile["total_cycles"] == cycles
    with pytest.raises(davinci.InputError, match="wrong input names; found none"):
        davinci.compile(MODEL).run()


def test_damage_is_found(file: Path, tmp_path: Path) -> None:
    data = file.read_bytes()
    other = tmp_path / "damaged.davinci"
    step = len(data) // 40
    changed = [
        data[:i] + bytes([data[i] ^ 0x55]) + data[i + 1 :] for i in range(0, len(data), step)
    ]
    cut = [data[:i] for i in range(0, len(data), 4 * step)]
    directory = range(len(data) - 22, len(data), 3)
    changed += [data[:i] + bytes([data[i] ^ 0xFF]) + data[i + 1 :] for i in directory]
    found = 0
    for damaged in changed + cut:
        other.write_bytes(damaged)
        try:
            loaded = davinci.load(other)
        except InputError as error:
            assert str(other) in str(error)
            assert "damaged" in str(error) or "not a saved executable" in str(error)
            found += 1
        else:  # a byte that means nothing, a date for example
            assert loaded.inputs
    assert found > len(changed + cut) * 0.8


def rewritten(file: Path, **changes: object) -> bytes:
    """The file with another manifest."""
    stream = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(stream, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == saved.MANIFEST:
                data = json.dumps({**json.loads(data), **changes}).encode()
            new.writestr(name, data)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "something"}, "not a saved executable; found a manifest.json of another kind"),
        ({"format_version": 2}, "saved by another version; found format_version 2; expected 1; "),
        ({"compiler_version": "0.0.1+a"}, "found compiler_version 0.0.1+a; expected 0.1.0+"),
        ({"mlir_version": "mlir 1"}, "found mlir_version mlir 1; expected "),
        ({"machine": {"name": "x"}}, "damaged; found "),
        ({"constants": {}}, "damaged; found a constant has no values"),
        ({"cores": "many"}, "damaged; found "),
        (
            {"sha256": {"module.mlirbc": "0"}},
            "damaged; found module.mlirbc is not what was written",
        ),
        ({"sha256": {"module": "0"}}, "damaged; found "),
    ],
)
def test_foreign_manifests(
    file: Path, tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    other = tmp_path / "other.davinci"
    other.write_bytes(rewritten(file, **changes))
    with pytest.raises(InputError) as error:
        davinci.load(other)
    assert str(error.value).startswith(f"{other}: ") and message in str(error.value)


def test_other_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read: No such file"):
        davinci.load(tmp_path / "none.davinci")
    with pytest.raises(InputError, match="cannot read: Is a directory"):
        davinci.load(tmp_path)
    (tmp_path / "text.davinci").write_text(MODEL)
    with pytest.raises(InputError, match="not a saved executable; found another kind of file"):
        davinci.load(tmp_path / "text.davinci")
    np.savez(tmp_path / "arrays.npz", x=X)
    with pytest.raises(InputError, match="not a saved executable; found an archive without"):
        davinci.load(tmp_path / "arrays.npz")


def test_a_place_that_cannot_be_written(original: davinci.Executable, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write"):
        original.save(tmp_path / "none" / "net.davinci")
