"""What npu-run, npu-opt and `davinci.compile` say to bad input.

Each case: one message that says what is wrong, the exit code of the contract, no traceback, and no
file left behind.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import davinci
from bad_files import EXP, write_all
from davinci import files
from davinci.errors import DavinciError
from davinci.tools import npu_opt, npu_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bad")
    write_all(path)
    return path


RUN = [
    # the model
    ("", 2, "MODEL is missing"),
    ("''", 2, "MODEL: no such file"),
    ("missing.onnx", 2, "missing.onnx: no such file; networks of the zoo are called zoo:NAME"),
    ("folder.onnx", 2, "folder.onnx: not a file; found a folder"),
    (".", 2, "found a folder"),
    ("good.txt", 2, "good.txt: not a model file; expected a file name that ends in"),
    # ONNX
    ("empty.onnx", 2, "not an ONNX file; found neither nodes nor outputs"),
    ("no_output.onnx", 2, "not an ONNX file"),
    ("truncated.onnx", 2, "truncated.onnx: not an ONNX file, or a truncated one"),
    ("cut.onnx", 2, "not an ONNX file, or a truncated one"),
    ("random.onnx", 2, "not an ONNX file, or a truncated one"),
    ("external.onnx", 2, "external.onnx: cannot read the model: "),
    ("undeclared.onnx", 2, "No Op registered for Foo"),
    ("no_node.onnx", 2, "no_node.onnx: not a valid ONNX model: Graph output 'y' is not"),
    ("dynamic.onnx", 3, "input 'x' has a dynamic dimension; found dimension 0 is 'batch'"),
    ("custom.onnx", 3, "operator of domain 'acme'; found operator Foo of node 'the_node'"),
    ("text.onnx", 3, "operator StringNormalizer of node 'the_node'"),
    ("drawn.onnx", 3, "random numbers, which no other run would reproduce; found operator"),
    ("data_shape.onnx", 3, "computed while the network runs; found operator NonZero of node"),
    ("contradiction.onnx", 2, "[3, 3] and [2, 2] do not broadcast; found operator Add of node"),
    # inputs
    ("good.onnx --inputs missing.npz", 2, "missing.npz: cannot read: No such file"),
    ("good.onnx --inputs .", 2, ".: cannot read: Is a directory"),
    ("good.onnx --inputs truncated.npz", 2, "truncated.npz: not an .npz file"),
    ("good.onnx --inputs flipped.npz", 2, "flipped.npz: not an .npz file: Bad CRC-32"),
    ("good.onnx --inputs good.onnx", 2, "good.onnx: not an .npz file; numpy.savez writes one"),
    ("good.onnx --inputs empty.npz", 2, "empty.npz: not an .npz file"),
    ("good.onnx --inputs array.npz", 2, "array.npz: not an .npz file; write it with numpy.savez"),
    ("good.onnx --inputs other.npz", 2, "other.npz: not an array; found 'a.txt'"),
    ("good.onnx --inputs objects.npz", 2, "Object arrays cannot be loaded"),
    ("good.onnx --inputs none.npz", 2, "wrong input names; found none; expected x: float32[2, 3]"),
    ("good.onnx --inputs name.npz", 2, "wrong input names; found z; expected x"),
    ("good.onnx --inputs more.npz", 2, "wrong input names; found x, z; expected x"),
    ("good.onnx --inputs shape.npz", 2, "found float32[3, 2]; expected float32[2, 3]"),
    ("good.onnx --inputs dtype.npz", 2, "found float64[2, 3]; expected float32[2, 3]"),
    ("good.onnx --inputs good.npz --seed 1", 2, "--seed: not allowed with argument --inputs"),
    ("good.onnx --seed -1", 2, "--seed: no such seed; found -1; expected 0 or more"),
    ("good.onnx --processes 0", 2, "--processes: bad value; found 0; expected 1 or more"),
    ("good.onnx --seed 1e9", 2, "argument --seed: invalid int value: '1e9'"),
    # results
    ("good.onnx --outputs no/o.npz", 2, "no/o.npz: cannot write: no such folder"),
    ("good.onnx --outputs folder.onnx", 2, "folder.onnx: cannot write; found a folder"),
    ("good.onnx --json ''", 2, "cannot write; found an empty name"),
    ("good.onnx --trace no/t.json", 2, "no/t.json: cannot write: no such folder"),
    ("good.onnx --report no/r.html", 2, "no/r.html: cannot write: no such folder"),
    ("good.onnx --csv ''", 2, "--csv: no folder"),
    ("good.onnx --csv good.npz", 2, "good.npz: cannot make the folder"),
    ("good.onnx --outputs same --json ./same", 2, "a result would replace another file"),
    ("good.onnx --json good.onnx", 2, "good.onnx: a result would replace another file"),
    # machines
    ("good.onnx --machine ascend901", 2, "no such machine; found 'ascend901'; expected one of"),
    ("good.onnx --machine ascned910", 2, "did you mean 'ascend910'"),
    ("good.onnx --machine nothing.toml", 2, "no such machine; found 'nothing.toml'"),
    ("good.onnx --machine ''", 2, "no such machine; found ''"),
    ("good.onnx --machine broken.toml", 2, "broken.toml: not a TOML file: Invalid value (at line"),
    ("good.onnx --machine binary.toml", 2, "binary.toml: not a TOML file"),
    ("good.onnx --machine empty.toml", 2, "empty.toml: missing key; expected 'name'"),
    ("good.onnx --machine text.toml", 2, "bad value of 'cores'; found '32'; expected a valid int"),
    ("good.onnx --machine negative.toml", 2, "'cores'; found -1; expected greater than 0"),
    ("good.onnx --machine missing.toml", 2, "missing.toml: missing key; expected 'cores'"),
    ("good.onnx --machine misspelt.toml", 2, "found 'clock_mhs'; did you mean 'clock_mhz'?"),
    ("good.onnx --machine unknown.toml", 2, "unknown key; found 'frobnicate'; remove it"),
    ("good.onnx --machine pipe.toml", 2, "'sync.sequential_pipes.0'; found 'Q'; expected 'S', "),
    (
        "good.onnx --machine tiny.toml",
        2,
        "bad value of 'buffers.UB.bytes'; found 64; expected at least",
    ),
    # options
    ("good.onnx --cores -1", 2, "cores: bad value; found -1; expected 0 or more"),
    ("good.onnx --cores 999", 2, "found 999; expected 1 to 32, or 0 for all of ascend910"),
    ("good.onnx --cores 1.5", 2, "--cores: invalid int value: '1.5'"),
    ("good.onnx --cores", 2, "--cores: expected one argument"),
    ("good.onnx --precision FP16", 2, "precision: bad value; found 'FP16'; expected one of mixed"),
    ("good.onnx --chekc", 2, "unknown option; found '--chekc'; did you mean --check?"),
    ("good.onnx good.onnx", 2, "one argument too many; found 'good.onnx'"),
    ("good.onnx --check --expect good.npz", 2, "--expect: not allowed with argument --check"),
    ("good.onnx --expect ''", 2, "cannot read"),
    ("good.onnx --expect missing.npz", 2, "missing.npz: cannot read: No such file"),
    ("good.onnx --expect good.npz", 2, "good.npz: wrong output names; found x; expected y"),
    ("good.onnx --expect good.npz --timing-only", 2, "without data; found --expect"),
    ("good.onnx --expect good.npz --json good.npz", 2, "a result would replace another file"),
    ("exp.mlir --inputs good.npz", 2, "wrong input names; found x; expected arg0"),
    ("no_output.mlir --check", 2, "there is no reference for this model; found no_output.mlir"),
    # the zoo
    ("zoo:", 2, "no such network in the zoo; found ''; expected one of mlp, bert"),
    ("zoo:brt", 2, "did you mean 'bert'?"),
    ("zoo:bert,layer=2", 2, "found 'layer'; expected one of layers, hidden"),
    ("zoo:bert,", 2, "network 'bert' has no such parameter; found ''"),
    ("zoo:bert,layers", 2, "bad value of parameter 'layers'; found ''"),
    ("zoo:bert,layers=two", 2, "found 'two'; expected a whole number, as in seq=128"),
    ("zoo:bert,layers=-1", 2, "found '-1'; expected a whole number"),
    ("zoo:bert,layers=1,layers=2", 2, "parameter 'layers' is given twice"),
    ("zoo:bert,seq=0", 2, "parameter 'seq' must be at least 1; found 0"),
    ("zoo:bert,hidden=10,heads=3", 2, "hidden must be a multiple of heads; found hidden=10"),
    ("zoo:mlp,classes=0", 2, "parameter 'classes' must be at least 1; found 0"),
    ("zoo:mlp,batch=1.5", 2, "found '1.5'; expected a whole number"),
    ("zoo:mlp,batch=100000000000000000000", 2, "the network is too large"),
    # MLIR text
    ("random.mlir", 2, "random.mlir: neither MLIR bytecode nor text in UTF-8; found"),
    (
        "marked.mlir",
        2,
        "marked.mlir: neither MLIR bytecode nor text in UTF-8; found a byte order mark",
    ),
    (
        "utf16.mlir",
        2,
        "utf16.mlir: neither MLIR bytecode nor text in UTF-8; found UTF-16; expected UTF-8 w",
    ),
    ("deep.mlir", 2, "deep.mlir: brackets are nested too deep; found 20001 levels; expected at"),
    ("empty.mlir", 2, "no function to start with; found no functions"),
    ("no_entry.mlir", 3, "a function of the host on memrefs needs the attribute ascend.entry"),
    ("only_kernel.mlir", 2, "a kernel needs a host function that calls it, see /"),
    ("no_body.mlir", 2, "no function to start with; found @main; expected @main with a body"),
    ("two_public.mlir", 2, "has several functions to start with; found @a, @b"),
    ("syntax.mlir", 2, "syntax.mlir:2:3: custom op 'retrn' is unknown"),
    ("unclosed.mlir", 2, "unclosed.mlir:2:"),
    ("unknown_dialect.mlir", 2, "unknown_dialect.mlir:2:"),
    (
        "unknown_operation.mlir",
        2,
        "unknown_operation.mlir:2:8: unregistered operation 'ascend.bar'",
    ),
    ("twice.mlir", 2, "twice.mlir:2:1: redefinition of symbol named 'main'"),
    ("ascend.mlir", 2, "ascend.mlir:2:8: 'ascend.exp' op C1: shape of the result; found [4]"),
    ("ascend_attribute.mlir", 2, "'permutation'; found none; expected array<i64: ...>"),
    ("stablehlo.mlir", 2, "stablehlo.mlir:2:8: 'stablehlo.exponential' op"),
    ("cce_shapes.mlir", 2, "cce_shapes.mlir:9:1: 'cce.copy' op shapes differ; found [64]"),
    ("cce_pipe.mlir", 2, "'cce.set_flag' op attribute dst; found 'Q'; expected S, V, M"),
    ("cce_event.mlir", 2, "attribute event; found 99; expected 0..15"),
    ("hivm_space.mlir", 2, "address dst; found !llvm.ptr<1> (GM); expected !llvm.ptr<6> (UB)"),
    ("hivm_range.mlir", 2, "field event is out of range; found 77; expected 0..15"),
    ("hivm_missing.mlir", 2, "field pipe is missing"),
    ("hivm_misspelt.mlir", 2, "has no field 'pip'; did you mean 'pipe'?"),
    ("no_resource.mlir", 2, "a constant has no data; found dense_resource<w> : tensor<4xf32>"),
    ("no_kernel.mlir", 3, "no_kernel.mlir:2:3: 'func.call' op launches an unknown kernel; found k"),
    ("no_module.mlir", 3, "names an unknown module; found kernels"),
    ("wrong_arguments.mlir", 3, "calls kernel k wrongly; found 2 arguments; expected 1"),
    ("no_launch.mlir", 3, "calls a function that is not a kernel"),
    ("dynamic.mlir", 3, "not a static tensor; found tensor<?x3xf32>"),
    ("complex.mlir", 3, "element type that kernels cannot hold; found complex<f32>"),
    ("f6.mlir", 3, "element type that kernels cannot hold; found f6E2M3FN; expected one of i1"),
    ("scalar.mlir", 3, "not a static tensor; found i32"),
    ("recursive.mlir", 3, "recursive.mlir:2:8: 'func.call' op calls a function that has calls"),
    ("external.mlir", 3, "external.mlir:2:8: 'func.call' op calls a function that is not a kernel"),
    ("other_dialect.mlir", 3, "'math.exp' op cannot be converted to ascend; expected StableHLO"),
    ("too_large_for_ub.mlir", 3, "do not fit UB; found 400000 bytes alive at once"),
    # faults of the device
    ("misaligned.mlir", 4, "misaligned address of operand dst; found UB 0x4; expected a multiple"),
    ("out_of_bounds.mlir", 4, "out_of_bounds.mlir:10:1: out of bounds; found GM [0x200, 0x"),
    ("unwritten.mlir", 4, "reads bytes that nobody wrote; found UB byte 0x0"),
    ("no_output.mlir", 4, "the host reads bytes that nobody wrote"),
    ("deadlock.mlir", 4, "deadlock: "),
    ("scalar_bounds.mlir", 4, "scalar_bounds.mlir:10:6: k: scalar access out of bounds"),
]
"""Arguments of npu-run, exit code, part of the message."""


def pipeline(text: str) -> str:
    return f"exp.mlir --pass-pipeline='{text}'"


TO_MEMREF = "exp.mlir --stablehlo-to-ascend --ascend-to-memref"

OPT = [
    # files
    ("missing.mlir", 2, "missing.mlir: No such file"),
    (".", 2, ".: Is a directory"),
    ("random.mlir", 2, "random.mlir: neither MLIR bytecode nor text"),
    ("latin.mlir", 2, "latin.mlir: neither MLIR bytecode nor text"),
    (
        "marked.mlir",
        2,
        "marked.mlir: neither MLIR bytecode nor text in UTF-8; found a byte order mark",
    ),
    (
        "utf16.mlir",
        2,
        "utf16.mlir: neither MLIR bytecode nor text in UTF-8; found UTF-16; expected UTF-8 w",
    ),
    ("unmarked.mlir", 2, "neither MLIR bytecode nor text in UTF-8; found zero bytes, as in UTF-16"),
    ("deep.mlir", 2, "deep.mlir: brackets are nested too deep; found 20001 levels; expected at"),
    ("missing.onnx", 2, "missing.onnx: no such file"),
    ("random.onnx", 2, "random.onnx: not an ONNX file"),
    ("syntax.mlir", 2, "syntax.mlir:2:3: error: custom op 'retrn' is unknown"),
    ("ascend.mlir", 2, "ascend.mlir:2:8: error: 'ascend.exp' op C1: shape of the result"),
    ("cce_shapes.mlir", 2, "cce_shapes.mlir:9:1: error: 'cce.copy' op shapes differ"),
    ("hivm_space.mlir", 2, "error: 'hivm.copy_gm_to_ubuf' op address dst"),
    ("exp.mlir -o .", 2, "cannot write; found a folder"),
    ("exp.mlir -o no/such.mlir", 2, "no/such.mlir: cannot write: no such folder"),
    # arguments
    ("exp.mlir exp.mlir", 2, "one argument too many; found 'exp.mlir'"),
    ("exp.mlir -x", 2, "unknown option; found '-x'"),
    ("exp.mlir -o", 2, "argument -o: expected one argument"),
    ("exp.mlir --nothing", 2, "unknown option; found '--nothing'; npu-opt --help lists the opt"),
    ("exp.mlir --npu-pipelin", 2, "found '--npu-pipelin'; did you mean --npu-pipeline?"),
    ("exp.mlir --mlir-print-ir-after-al", 2, "did you mean --mlir-print-ir-after-all?"),
    ("exp.mlir --print-debuginfo", 2, "did you mean --mlir-print-debuginfo?"),
    ("exp.mlir --cse --mlir-print-ir-after=sce", 2, "no such pass; found 'sce'; expected one of c"),
    (
        "exp.mlir --mlir-print-ir-before=cse",
        2,
        "before: the pipeline has no such pass; found 'cse'",
    ),
    ("exp.mlir --npu-pipeline=precision=fp8", 2, "found 'fp8'; expected one of mixed, fp16"),
    (
        "exp.mlir --cse --pass-pipeline='builtin.module(cse)'",
        2,
        "passes are given twice; found --cse",
    ),
    ("exp.mlir --mlir-elide-elementsattrs-if-larger=x", 2, "invalid int value: 'x'"),
    # malformed pipelines
    (pipeline(""), 2, "the pipeline is empty"),
    (pipeline("builtin.module"), 2, "has no anchor operation; found 'builtin.module'"),
    (pipeline("func.func(cse)"), 2, "has no anchor operation; found 'func.func(cse)'"),
    (pipeline("builtin.module(" * 3000), 2, "too many anchor operations; found 3000; expected at"),
    (pipeline("builtin.module(cse"), 2, ":19: unbalanced parentheses; found end of the pipeline"),
    (pipeline("builtin.module(cse))"), 2, ":20: unbalanced parentheses; found ')'"),
    (pipeline("builtin.module(cse;cse)"), 2, ":19: unbalanced parentheses; found ';'"),
    (pipeline("builtin.module(,cse)"), 2, ":16: a pass or an anchor operation is missing"),
    (pipeline("builtin.module(cse,)"), 2, ":20: a pass or an anchor operation is missing"),
    (pipeline("builtin.module(cse{a=1)"), 2, ":24: unbalanced braces"),
    (pipeline("builtin.module(cse}"), 2, ":19: unbalanced parentheses; found '}'"),
    (pipeline("builtin.module(cse){a=1}"), 2, ":20: an anchor operation takes no options"),
    (pipeline("builtin.module(plan-memory(cse))"), 2, ":16: 'plan-memory' is a pass and cannot"),
    (pipeline("builtin.module(npu-pipeline(cse))"), 2, ":16: 'npu-pipeline' is a pass and cannot"),
    (
        pipeline("builtin.module(func.func(plan-memory))"),
        2,
        ":26: pass 'plan-memory' cannot run on",
    ),
    (pipeline("builtin.module(func.func(npu-pipeline))"), 2, ":26: pipeline 'npu-pipeline' cannot"),
    # options of passes
    (pipeline("builtin.module(plan-memory{machin=x})"), 2, "has no option 'machin'; expected one"),
    (pipeline("builtin.module(plan-memory{=3})"), 2, "malformed option of pass 'plan-memory'"),
    (pipeline("builtin.module(plan-memory{machine=a machine=b})"), 2, "found 'machine=b'"),
    (pipeline('builtin.module(plan-memory{"machine=a})'), 2, "unbalanced options of pass"),
    (pipeline("builtin.module(plan-memory{machine=none})"), 2, "no such machine; found 'none'"),
    (pipeline("builtin.module(plan-memory{machine=text.toml})"), 2, "text.toml: bad value of"),
    (pipeline("builtin.module(npu-pipeline{cores=-1})"), 2, "found '-1'; expected 0 or more"),
    (pipeline("builtin.module(npu-pipeline{cores=99})"), 2, "found 99; expected 1 to 32"),
    (pipeline("builtin.module(npu-pipeline{cores=1.5})"), 2, "found '1.5'; expected an integer"),
    (pipeline("builtin.module(npu-pipeline{matmul-strategy=x})"), 2, "expected one of os, is, ws"),
    (pipeline("builtin.module(npu-pipeline{fractalize=x})"), 2, "expected one of improved, naive"),
    (pipeline("builtin.module(npu-pipeline{m=-16})"), 2, "found '-16'; expected 0 or more"),
    (pipeline("builtin.module(canonicalize{x=1})"), 2, "no such option x"),
    # programs at another level
    ("exp.mlir --ascend-bufferize", 3, "'stablehlo.exponential' op cannot be bufferized"),
    (f"{TO_MEMREF} --cce-to-hivm", 3, "'ascend.exp' op is not at the cce level; run ascend-to-cce"),
    (f"{TO_MEMREF} --hivm-to-llvm", 3, "'ascend.exp' op is not at the hivm level"),
    (f"{TO_MEMREF} --convert-ascend-to-cce --cce-to-hivm", 3, "has no address; expected the attr"),
    ("no_address.mlir --cce-to-hivm", 3, "no_address.mlir:8:6: error: 'memref.alloc' op has no"),
    ("exp.mlir --npu-to-asm", 2, "there are no kernels to list; run --npu-pipeline first"),
    (f"{TO_MEMREF} --ascend-to-cce --npu-to-asm", 3, "kernel is not lowered to LLVM; run"),
    ("too_large_for_ub.mlir --plan-memory", 3, "do not fit UB; found 400000 bytes"),
]
"""Arguments of npu-opt, exit code, part of the message."""


def check(
    main: Callable[[list[str]], int],
    arguments: str,
    code: int,
    message: str,
    folder: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    before = sorted(folder.rglob("*"))
    assert main(shlex.split(arguments)) == code
    out, err = capfd.readouterr()
    assert message in err
    assert len(re.findall(r"\berror:|^interrupted", err, re.MULTILINE)) == 1, err
    assert "Traceback" not in err and "internal error" not in err
    assert out == ""
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(("arguments", "code", "message"), RUN, ids=[case[0] for case in RUN])
def test_npu_run(
    arguments: str,
    code: int,
    message: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    check(npu_run.main, arguments, code, message, folder, capfd)


@pytest.mark.parametrize(("arguments", "code", "message"), OPT, ids=[case[0] for case in OPT])
def test_npu_opt(
    arguments: str,
    code: int,
    message: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    check(npu_opt.main, arguments, code, message, folder, capfd)


MATMUL = """
func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
"""

COMPILE: list[tuple[Any, dict[str, Any], int, str]] = [
    (3, {}, 2, "not a model; found an object of type int; expected a path, MLIR text or"),
    (b"text", {}, 2, "<text>:1:1: custom op 'text' is unknown"),
    ("", {}, 2, "not a model file"),
    ("a\nb", {}, 2, "<text>:1:1: custom op 'a' is unknown"),
    (Path("missing.mlir"), {}, 2, "missing.mlir: no such file"),
    (Path("random.onnx"), {}, 2, "random.onnx: not an ONNX file"),
    (EXP, {"cores": "4"}, 2, "option cores: bad value; found '4'; expected a value of type int"),
    (EXP, {"cores": -1}, 2, "expected 0 or more"),
    (EXP, {"cores": 999}, 2, "expected 1 to 32"),
    (EXP, {"precision": None}, 2, "found None; expected a value of type str"),
    (EXP, {"machine": 3}, 2, "found 3; expected a value of type str"),
    (EXP, {"machine": "text.toml"}, 2, "text.toml: bad value of 'cores'"),
    (EXP, {"matmul_strategy": "x"}, 2, "found 'x'; expected one of os, is, ws"),
    (EXP, {"fractalize": "x"}, 2, "found 'x'; expected one of improved, naive"),
    (EXP, {"tile": (16, 16)}, 2, "tile: bad value; found (16, 16); expected (m, n, k)"),
    (EXP, {"tile": 16}, 2, "tile: bad value; found 16; expected (m, n, k)"),
    (EXP, {"tile": (16, 16, "a")}, 2, "found 'a'; expected a value of type int"),
    (MATMUL, {"tile": (-16, 16, 16)}, 2, "option m: bad value; found -16"),
    (MATMUL, {"tile": (16, 16, 15)}, 3, "bad tile size k; found 15; expected a multiple of 16"),
]


@pytest.mark.parametrize(
    ("model", "options", "code", "message"),
    COMPILE,
    ids=[f"{str(case[0])[:12].strip()}-{case[1]}" for case in COMPILE],
)
def test_compile(
    model: Any,
    options: dict[str, Any],
    code: int,
    message: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(DavinciError) as error:
        davinci.compile(model, **options)
    assert error.value.exit_code == code
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "wrong input names; found none; expected arg0: float32[2, 3]"),
        ({"arg0": 1}, "found int64[]; expected float32[2, 3]"),
        ({"arg0": None}, "found object[]"),
        ({"arg0": np.zeros((2, 3), ">f4")}, "found >f4[2, 3]"),
    ],
)
def test_run(inputs: dict[str, Any], message: str) -> None:
    with pytest.raises(DavinciError) as error:
        davinci.compile(EXP).run(inputs)
    assert message in str(error.value)


def test_results_into_pipes_and_links(tmp_path: Path) -> None:
    """A pipe (or device) gets the data and stays; a link stays a link."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to("file")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    for path in (pipe, link):
        files.check_writable(path)
        files.write_atomically(path, b"data")
    assert os.read(reader, 9) == (tmp_path / "file").read_bytes() == b"data"
    os.close(reader)
    assert pipe.is_fifo() and link.is_symlink()
    assert len(list(tmp_path.iterdir())) == 3


def test_closed_standard_streams(tmp_path: Path) -> None:
    opt = f"{sys.executable} -m davinci.tools.npu_opt"
    script = f"echo 'module {{}}' | {opt} -o out.mlir >&- 2>&- && {opt} <&-"
    done = subprocess.run(
        script, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (
        2,
        "error: -: cannot read: standard input is closed\n",
    )
    assert (tmp_path / "out.mlir").read_text() == "module {\n}\n"


def test_standard_input_that_is_no_text() -> None:
    command = [sys.executable, "-m", "davinci.tools.npu_opt"]
    done = subprocess.run(command, input=b"\xff\0", capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        b"",
        b"error: -: neither MLIR bytecode nor text in UTF-8; found b'\\xff' at byte 0\n",
    )
