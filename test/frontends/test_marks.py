"""Attributes that mark kernels and launches: what they may not be."""

from __future__ import annotations

from pathlib import Path

import pytest

from bad_files import HOST, kernel
from davinci import frontends
from davinci.errors import InputError
from davinci.tools import npu_opt

GOOD = kernel("")
CALL, LAUNCH = "call @k(%x, %y)", "ascend.launch = @kernels::@k"
SECOND = "func.func @second() attributes {ascend.entry} { return }\n"


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (CALL, f"{CALL} {{ascend.blocks = 0 : i64}}", "found 0 : i64; expected an integer, 1 to"),
        (CALL, f"{CALL} {{ascend.blocks = -1 : i64}}", "'func.call' op attribute ascend.blocks"),
        (CALL, f"{CALL} {{ascend.blocks = 65536 : i64}}", "expected an integer, 1 to 65535"),
        (CALL, f'{CALL} {{ascend.blocks = "8"}}', 'found "8"; expected an integer'),
        ("ascend.entry}", "ascend.entry, ascend.scopes = 3}", "a dictionary of strings"),
        ("ascend.entry}", "ascend.entry, ascend.arena = 3}", "4 integers, 0 or more, for each"),
        ("ascend.entry}", "ascend.entry, ascend.arena = array<i64: 1>}", "attribute ascend.arena"),
        ("ascend.entry}", "ascend.entry, ascend.arena = array<i64: 0, 1, -1, 0>}", "0 or more"),
        ("ascend.entry}", "ascend.entry, ascend.scopes = {a = 3}}", "a dictionary of strings"),
        (CALL, f"{CALL} {{ascend.operators = 3}}", "expected an array of strings"),
        (CALL, f"{CALL} {{ascend.operators = [1]}}", "attribute ascend.operators"),
        ("ascend.kernel}", "ascend.kernel, ascend.work = 3}", "expected a dictionary of integers"),
        ("ascend.kernel}", 'ascend.kernel, ascend.work = {macs = "3"}}', "attribute ascend.work"),
        ("ascend.kernel}", "ascend.kernel, ascend.work = {macs = -1}}", "integers, 0 or more"),
        ("ascend.kernel}", "ascend.kernel, ascend.label = 3}", "attribute ascend.label; found 3"),
        (LAUNCH, "ascend.launch = []", "found []; expected a kernel, as in @kernels::@add"),
        (LAUNCH, 'ascend.launch = "k"', "attribute ascend.launch"),
        (LAUNCH, "ascend.launch = [[@kernels::@k]]", "attribute ascend.launch"),
        ("ascend.kernel}", "ascend.kernel, ascend.core = 3}", "attribute ascend.core; found 3"),
        ("ascend.kernel}", "ascend.kernel, ascend.unit = [1]}", "attribute ascend.unit; found [1"),
        ("ascend.output}", "ascend.output, ascend.name = 3}", "ascend.name of argument 1; found 3"),
        ("module @kernels {", "module @kernels attributes {hivm.locations = [1]} {", "of strings"),
        (HOST, HOST + SECOND, "ascend.entry; found two functions that have it; expected one"),
        ("64xf32", "?xf32", "argument 0; found memref<?xf32>; expected a static shape"),
        ("64xf32", "*xf32", "argument 0; found memref<*xf32>; expected a memref"),
        ("64xf32", "64xf32, strided<[2]>", "without strides"),
        ("64xf32", '64xf32, #cce.space<"UB">', "in global memory"),
        ("64xf32", "64xmemref<3xf32>", "of numbers"),
        ("ascend.output}", "ascend.output, ascend.unsigned}", "ascend.unsigned of f32"),
        ("ascend.output}", 'ascend.output, ascend.element = "bf16"}', '"bf16" in f32'),
        ("ascend.output}", 'ascend.output, ascend.element = "f7"}', "expected bf16, f8E5M2"),
    ],
)
def test_refused(before: str, after: str, message: str) -> None:
    assert before in GOOD
    with pytest.raises(InputError) as error:
        frontends.load(GOOD.replace(before, after))
    assert message in str(error.value)
    assert str(error.value).startswith("-:")


def test_accepted() -> None:
    """Both forms of a launch."""
    frontends.load(GOOD)
    frontends.load(GOOD.replace(LAUNCH, "ascend.launch = [@kernels::@k, @l]"))


def test_npu_opt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "core.mlir"
    path.write_text(GOOD.replace("ascend.kernel}", "ascend.kernel, ascend.core = 3}"))
    assert npu_opt.main([str(path), "--convert-hivm-to-llvm"]) == 2
    assert "core.mlir:7:1: error: 'func.func' op attribute ascend.core" in capsys.readouterr().err
