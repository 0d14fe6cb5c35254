"""MLIR text and bytecode as input."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

import davinci
from davinci import frontends
from davinci.errors import InputError

TEXT = """func.func @net(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def test_the_only_public_function_is_main() -> None:
    assert "@main" in str(frontends.load(TEXT))


def test_main_stays_main() -> None:
    text = str(frontends.load(TEXT + TEXT.replace("@net", "@main")))
    assert "@net" in text
    assert "@main" in text


def test_kernels_keep_their_names() -> None:
    kernel = "func.func @k(%x: memref<4xf32>) attributes {ascend.kernel} { return }\n"
    assert "@k" in str(frontends.load(kernel))


def test_bytecode(tmp_path: Path) -> None:
    stream = io.BytesIO()
    frontends.load(TEXT).operation.write_bytecode(stream)
    (tmp_path / "net.mlirbc").write_bytes(stream.getvalue())
    assert "stablehlo.add" in str(frontends.load(tmp_path / "net.mlirbc"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"func.func @f(", "net.mlir:1:1"),
        (b"func.func @f() { stablehlo.nothing }\n", "stablehlo.nothing"),
        (b"\xff\xfe\x00garbage", "net.mlir"),
    ],
)
def test_bad_text(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "net.mlir").write_bytes(content)
    with pytest.raises(InputError, match=message):
        frontends.load(tmp_path / "net.mlir")


PUBLIC = TEXT.replace("func.func @", "func.func public @")


@pytest.mark.parametrize("name", ["main", "net", "jit_f"])
def test_a_public_function_is_the_entry(name: str) -> None:
    executable = davinci.compile(PUBLIC.replace("@net", f"@{name}"))
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(executable.run({"arg0": x})["out0"], x + x)


def test_public_functions_beside_main_are_left_out() -> None:
    other = PUBLIC.replace("4xf32", "?xf32")
    executable = davinci.compile(PUBLIC.replace("@net", "@main") + other)
    assert executable.output_names == ["out0"]


def test_several_public_functions_are_one_message() -> None:
    with pytest.raises(InputError, match=r"several .* found @net, @other") as raised:
        davinci.compile(PUBLIC + PUBLIC.replace("@net", "@other"))
    assert "private" in raised.value.hint


def test_errors_of_a_file_with_short_forms_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "kernel.mlir"
    path.write_text(
        "func.func @main(%a: UB<8xf32>) {\n  cce.copy %a, %b : UB<8xf32>, UB<8xf32>\n}\n"
    )
    with pytest.raises(InputError, match=rf"^{path}:2:\d+: ") as found:
        davinci.compile(path)
    assert "<text>" not in str(found.value)
    with pytest.raises(InputError, match=r"^<text>:2:\d+: "):
        davinci.compile(path.read_text())
