"""MLIR bytecode and portable artifacts, whole and damaged."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

import davinci
from davinci import frontends
from davinci.errors import InputError
from davinci.mlir import make_context, stablehlo

TEXT = """
module @jit_f attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%x: tensor<4xf32>) -> (tensor<4xf32> {jax.result_info = "y"}) {
    %0 = call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %x, %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""
X = np.arange(4, dtype=np.float32)


def bytecode() -> bytes:
    stream = io.BytesIO()
    frontends.load(TEXT).operation.write_bytecode(stream)
    return stream.getvalue()


def artifact(version: str = "") -> bytes:
    module = frontends.load(TEXT, make_context())
    made: bytes = stablehlo.serialize_portable_artifact(
        module, version or stablehlo.get_current_version()
    )
    return made


FORMS = {
    "bytecode": bytecode,
    "an artifact": artifact,
    "the oldest artifact": lambda: artifact(stablehlo.get_minimum_version()),
}


@pytest.mark.parametrize("form", FORMS)
def test_bytes(form: str) -> None:
    executable = davinci.compile(FORMS[form]())
    np.testing.assert_array_equal(executable.run({"arg0": X})["out0"], X + X)


def test_a_file_of_any_name(tmp_path: Path) -> None:
    path = tmp_path / "net.bin"
    path.write_bytes(artifact())
    assert "stablehlo.add" in str(frontends.load(path))


def test_text_as_bytes() -> None:
    assert "stablehlo.add" in str(frontends.load(TEXT.encode()))


# Some of these abort the process that reads them.
DAMAGED = {
    "cut off": lambda data: data[: len(data) // 2],
    "only a header": lambda data: data[:24],
    **{f"byte {n}": lambda data, n=n: data[:n] + b"\xff" + data[n + 1 :] for n in range(30, 60, 6)},
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_artifacts_are_one_message(damage: str) -> None:
    try:
        module = frontends.load(DAMAGED[damage](artifact()))
    except InputError as error:
        assert error.where == "<bytes>"
        assert "cannot be read as a portable artifact" in error.message
    else:
        assert module.operation.verify()


def test_damaged_bytecode() -> None:
    with pytest.raises(InputError, match="cannot be read as MLIR bytecode"):
        frontends.load(bytecode()[:60])


def test_neither_bytecode_nor_text() -> None:
    with pytest.raises(InputError, match="neither MLIR bytecode nor text"):
        frontends.load(b"\xff\xfe\x00garbage")
