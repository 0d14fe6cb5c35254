"""The short form says all that the generic one says, and comes back as it was."""

from __future__ import annotations

import re
import time
from pathlib import Path

import numpy as np
import pytest

import davinci
from davinci import zoo
from davinci.dialects.short_form import expand, shorten
from davinci.frontends import load
from davinci.mlir import make_context
from davinci.passes.pipeline.pipelines import STAGES, Options, text
from davinci.passes.pipeline.runner import run
from davinci.tools import npu_opt

GENERIC = re.compile(r'"(ascend|cce|hivm)\.\w+"\(')
LONG = "0FA3" * 40
PAIRS = [
    *(
        (
            f'%0 = "ascend.constant"() {{a = dense<"0x{LONG}">{two}}} : () -> tensor<80xi8>',
            f'%0 = ascend.constant {{a = dense<"0x{LONG}">{two}}} -> tensor<80xi8>',
        )
        for two in ("", f', b = dense<"0x{LONG[::-1]}">', ', b = "0x#0"')
    ),
    (
        '  "cce.vadds"(%a, %c, %b) : (memref<64xf32, #cce.space<"UB">>, f32, '
        'memref<64xf32, #cce.space<"UB">>) -> ()',
        "  cce.vadds %a, %c, %b : UB<64xf32>, f32, UB<64xf32>",
    ),
    (
        '"cce.copy"(%0, %arg1) {round_up} : (memref<2x8xf32, strided<[16, 1], offset: ?>, '
        '#cce.space<"UB">>, memref<2x8xf32>) -> ()',
        "cce.copy %0, %arg1 {round_up} : UB<2x8xf32, strided<[16, 1], offset: ?>>, memref<2x8xf32>",
    ),
    (
        '%1 = "ascend.exp"(%0) : (tensor<4x8xf32>) -> tensor<4x8xf32>',
        "%1 = ascend.exp %0 : tensor<4x8xf32>",
    ),
    (
        '%1 = "ascend.cast"(%0) : (tensor<4xf32>) -> tensor<4xf16> loc("a -> b"(#loc1))',
        '%1 = ascend.cast %0 : tensor<4xf32> -> tensor<4xf16> loc("a -> b"(#loc1))',
    ),
    (
        '%0 = "ascend.constant"() {value = dense<[1, 2]> : tensor<2xi32>} : () -> tensor<2xi32>',
        "%0 = ascend.constant {value = dense<[1, 2]> : tensor<2xi32>} -> tensor<2xi32>",
    ),
    (
        '%1:2 = "ascend.split"(%0#1) {n = 2 : i32, d = -1 : i64} : (tensor<4xf32>) -> '
        "(tensor<2xf32>, tensor<2xf32>)",
        "%1:2 = ascend.split %0#1 {n = 2 : i32, d = -1} : tensor<4xf32> -> "
        "(tensor<2xf32>, tensor<2xf32>)",
    ),
    (
        '"hivm.vexp"(%d, %a, %r) {dynamic = ["repeat"], type = "f32"} : '
        "(!llvm.ptr<6>, !llvm.ptr<6>, i64) -> ()",
        'hivm.vexp %d, %a, %r {dynamic = ["repeat"], type = "f32"} : ptr<UB>, ptr<UB>, i64',
    ),
    (
        '"cce.set_flag"() {dst = "V", event = 0 : i64, src = "MTE2"} : () -> ()',
        'cce.set_flag {dst = "V", event = 0, src = "MTE2"}',
    ),
    (
        '%s = memref.subview %a[0] [8] [1] : memref<16xf32> to memref<8xf32, #cce.space<"L1">>',
        "%s = memref.subview %a[0] [8] [1] : memref<16xf32> to L1<8xf32>",
    ),
]


@pytest.mark.parametrize(("generic", "short"), PAIRS)
def test_both_ways(generic: str, short: str) -> None:
    assert shorten(generic) == short
    assert expand(short) == generic


@pytest.mark.parametrize(
    "line",
    [
        '"cce.mark"() {text = "n = 2 : i64, UB<4xf32>"} : () -> ()',
        'func.func @f(%a: memref<4xf32>) attributes {ascend.label = "UB<4xf32> ptr<UB>"}',
        '#loc1 = loc("ptr<UB>")',
        "// cce.copy %a, %b : UB<4xf32>",
        '{-# dialect_resources: { builtin: { w: "0x04000000" } } #-}',
    ],
)
def test_what_must_stay(line: str) -> None:
    assert expand(shorten(line)) == line


def test_a_comment_behind_an_operation() -> None:
    found = expand('  cce.copy %a, %b : UB<8xf32>  // "all" of UB<8xf32>')
    assert found.endswith('-> ()  // "all" of UB<8xf32>') and '"cce.copy"(%a, %b)' in found


@pytest.mark.parametrize("debug_info", [False, True])
def test_every_level_of_a_network(debug_info: bool) -> None:
    module = load(
        zoo.build("bert,layers=1,hidden=32,heads=2,seq=16,vocab=50").proto, make_context()
    )
    for stage in STAGES:
        run(module.operation, text(stage, Options()))
        printed = module.operation.get_asm(enable_debug_info=debug_info)
        short = shorten(printed)
        assert expand(short) == printed
        assert GENERIC.findall(short) == [] and "#cce.space" not in short


def test_the_compiler_reads_what_npu_opt_prints(tmp_path: Path) -> None:
    source, printed = tmp_path / "source.mlir", tmp_path / "printed.mlir"
    source.write_text(
        """func.func @main(%x: tensor<5x7xf32>) -> tensor<5x7xf32> {
          %0 = stablehlo.tanh %x : tensor<5x7xf32>
          return %0 : tensor<5x7xf32>
        }"""
    )
    stages = [f"--{stage}" for stage in STAGES[:3]]
    assert npu_opt.main([str(source), *stages, "-o", str(printed)]) == 0
    assert "cce.copy %" in printed.read_text()
    x = np.linspace(-2, 2, 35, dtype=np.float32).reshape(5, 7)
    outputs = [davinci.compile(str(path)).run(x)["out0"] for path in (source, printed)]
    assert (outputs[0] == outputs[1]).all()


def test_large_constants_are_passed_over() -> None:
    """Millions of digits take no time beside that of reading them once."""
    line = '%1 = "ascend.exp"(%0) : (tensor<4x8xf32>) -> tensor<4x8xf32>'
    text = f'%0 = stablehlo.constant dense<"0x{"0FA3" * 4_000_000}"> : tensor<2xf32>\n{line}'
    start = time.process_time()
    short = shorten(text)
    assert expand(short) == text != short and expand(text) is text
    assert time.process_time() - start < 1  # 0.1; with all digits looked at it is 2 and more
