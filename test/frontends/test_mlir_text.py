"""MLIR text and bytecode as input."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

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
