"""Bad files of all kinds that the tools may be given, and a few good ones."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from davinci import machine

FLOAT = TensorProto.FLOAT

EXP = """\
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.exponential %x : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
"""

HOST = """\
func.func @main(%x: memref<64xf32>, %y: memref<64xf32> {ascend.output}) attributes {ascend.entry} {
  call @k(%x, %y) : (memref<64xf32>, memref<64xf32>) -> ()
  return
}
func.func private @k(memref<64xf32>, memref<64xf32>) attributes {ascend.launch = @kernels::@k}
"""


def kernel(body: str, kind: str = "!llvm.ptr<1>") -> str:
    """A host and its kernel of arguments %x and %y; the body starts at line 8."""
    head = f"func.func @k(%x: {kind}, %y: {kind}) attributes {{ascend.kernel}} {{"
    return f"{HOST}module @kernels {{\n{head}\n{body}\nreturn\n}}\n}}\n"


def instruction(body: str) -> str:
    """A kernel with a pointer %u to UB address 0."""
    return kernel(f"%c = arith.constant 0 : i64\n{pointer('%u', '%c')}\n{body}")


def pointer(name: str, address: str) -> str:
    return f"{name} = llvm.inttoptr {address} : i64 to !llvm.ptr<6>"


def copy(name: str, operands: str, blocks: int) -> str:
    kinds = {"gm_to_ubuf": "!llvm.ptr<6>, !llvm.ptr<1>", "ubuf_to_gm": "!llvm.ptr<1>, !llvm.ptr<6>"}
    fields = f"n_burst = 1, len_burst = {blocks}, src_gap = 0, dst_gap = 0"
    return f'"hivm.copy_{name}"({operands}) {{{fields}}} : ({kinds[name]}) -> ()'


def on_tensors(operation: str, result: str = "tensor<3xf32>", kind: str = "tensor<3xf32>") -> str:
    """A function that applies `operation`, whose operand is %x, in line 2."""
    return (
        f"func.func @main(%x: {kind}) -> {result} {{\n"
        f"  %0 = {operation} : ({kind}) -> {result}\n  return %0 : {result}\n}}\n"
    )


UB = '#cce.space<"UB">'
ALLOC = f"memref.alloc() : memref<SIZExf32, {UB}>"

MLIR = {
    "exp": EXP,
    "empty": "",
    "syntax": "func.func @main() {\n  retrn\n}\n",
    "unclosed": "func.func @main() {\n  return\n",
    "unknown_dialect": on_tensors('"foo.bar"(%x)'),
    "unknown_operation": on_tensors('"ascend.bar"(%x)'),
    "twice": "func.func @main() { return }\nfunc.func @main() { return }\n",
    "ascend": on_tensors('"ascend.exp"(%x)', "tensor<4xf32>"),
    "ascend_attribute": on_tensors('"ascend.transpose"(%x)'),
    "stablehlo": on_tensors('"stablehlo.exponential"(%x)', "tensor<4xf32>"),
    "cce_shapes": kernel(
        f'%u = {ALLOC.replace("SIZE", "32x")}\n"cce.copy"(%x, %u) '.replace("32xx", "32x")
        + f": (memref<64xf32>, memref<32xf32, {UB}>) -> ()",
        "memref<64xf32>",
    ),
    "cce_pipe": kernel('"cce.set_flag"() {src = "V", dst = "Q", event = 0 : i64} : () -> ()'),
    "cce_event": kernel('"cce.set_flag"() {src = "V", dst = "S", event = 99 : i64} : () -> ()'),
    "hivm_space": kernel(copy("gm_to_ubuf", "%x, %x", 1).replace("<6>", "<1>")),
    "hivm_range": kernel('"hivm.set_flag"() {src_pipe = 1, dst_pipe = 4, event = 77} : () -> ()'),
    "hivm_missing": kernel('"hivm.pipe_barrier"() {} : () -> ()'),
    "hivm_misspelt": kernel('"hivm.pipe_barrier"() {pipe = 1, pip = 2} : () -> ()'),
    "no_entry": kernel("").replace(" attributes {ascend.entry}", ""),
    "only_kernel": kernel("").removeprefix(HOST),
    "no_body": "func.func private @main(tensor<3xf32>) -> tensor<3xf32>\n",
    "two_public": "func.func @a() { return }\nfunc.func @b() { return }\n",
    "no_kernel": HOST + "module @kernels {}\n",
    "no_module": HOST,
    "wrong_arguments": kernel("").replace(
        "(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>)", "(%x: !llvm.ptr<1>)"
    ),
    "no_launch": kernel("").replace(" attributes {ascend.launch = @kernels::@k}", ""),
    "dynamic": EXP.replace("2x3", "?x3"),
    "complex": EXP.replace("f32", "complex<f32>"),
    "f6": EXP.replace("f32", "f6E2M3FN"),
    "scalar": "func.func @main(%x: i32) -> i32 {\n  return %x : i32\n}\n",
    "recursive": on_tensors("func.call @main(%x)"),
    "external": on_tensors("func.call @f(%x)")
    + "func.func private @f(tensor<3xf32>) -> tensor<3xf32>\n",
    "other_dialect": on_tensors("math.exp %x").replace(" : (tensor<3xf32>) ->", " :"),
    "no_resource": "func.func @main() -> tensor<4xf32> {\n"
    "  %0 = stablehlo.constant dense_resource<w> : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n",
    "too_large_for_ub": kernel(
        f'%u = {ALLOC.replace("SIZE", "100000")}\n"cce.vrelu"(%u, %u) : '
        f"(memref<100000xf32, {UB}>, memref<100000xf32, {UB}>) -> ()",
        "memref<64xf32>",
    ),
    "no_address": kernel(
        f'%u = {ALLOC.replace("SIZE", "64")}\n"cce.copy"(%x, %u) : '
        f"(memref<64xf32>, memref<64xf32, {UB}>) -> ()",
        "memref<64xf32>",
    ),
    "misaligned": instruction(
        f"%4 = arith.constant 4 : i64\n{pointer('%v', '%4')}\n{copy('gm_to_ubuf', '%v, %x', 1)}"
    ),
    "out_of_bounds": instruction(copy("gm_to_ubuf", "%u, %x", 60000)),
    "unwritten": instruction(copy("ubuf_to_gm", "%y, %u", 8)),
    "no_output": kernel(""),
    "deadlock": kernel('"hivm.wait_flag"() {src_pipe = 4, dst_pipe = 1, event = 0} : () -> ()'),
    "scalar_bounds": kernel(
        "%c = arith.constant 1000000 : i64\n"
        "%p = llvm.getelementptr %x[%c] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32\n"
        '%v = "hivm.ld"(%p) : (!llvm.ptr<1>) -> f32\n'
        '"hivm.st"(%y, %v) : (!llvm.ptr<1>, f32) -> ()'
    ),
}
"""MLIR files by name."""


def network(
    operator: str,
    inputs: dict[str, Any],
    outputs: dict[str, Any],
    weights: dict[str, Any] | None = None,
    domain: str = "",
    kind: int = FLOAT,
) -> onnx.ModelProto:
    """A model of one node, `the_node`; inputs and outputs by name with their shapes."""
    names = [*inputs, *(weights or {})]
    node = helper.make_node(operator, names, list(outputs), name="the_node", domain=domain)
    tensors = [numpy_helper.from_array(a, name) for name, a in (weights or {}).items()]
    graph = helper.make_graph(
        [node] if operator else [],
        "g",
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in outputs.items()],
        tensors,
    )
    opsets = [helper.make_opsetid("", 17)]
    opsets += [helper.make_opsetid(domain, 1)] if domain else []
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def onnx_files(folder: Path) -> None:
    two = {"x": [2, 3]}, {"y": [2, 3]}
    models = {
        "good": network("Exp", *two),
        "dynamic": network("Exp", {"x": ["batch", 3]}, {"y": ["batch", 3]}),
        "custom": network("Foo", *two, domain="acme"),
        "undeclared": network("Foo", *two),
        "data_shape": network("NonZero", {"x": [2, 3]}, {"y": [2, "n"]}),
        "text": network("StringNormalizer", {"x": [3]}, {"y": [3]}, kind=TensorProto.STRING),
        "drawn": network("RandomNormalLike", {"x": [3, 3]}, {"y": [3, 3]}),
        "no_node": network("", *two),
        "no_output": network("", {"x": [2, 3]}, {}),
        "contradiction": network("Add", {"x": [3, 3], "z": [2, 2]}, {"y": [3, 3]}),
    }
    for name, model in models.items():
        onnx.save(model, folder / f"{name}.onnx")
    whole = (folder / "good.onnx").read_bytes()
    (folder / "truncated.onnx").write_bytes(whole[: len(whole) // 2])
    (folder / "cut.onnx").write_bytes(whole[:-1])
    (folder / "empty.onnx").touch()
    (folder / "random.onnx").write_bytes(np.random.default_rng(0).bytes(1000))
    (folder / "folder.onnx").mkdir()
    external = network("Add", {"x": [32, 32]}, {"y": [32, 32]}, {"w": np.ones((32, 32), "f4")})
    onnx.save(external, folder / "external.onnx", save_as_external_data=True, location="w.bin")
    (folder / "w.bin").unlink()


def npz_files(folder: Path) -> None:
    x = np.ones((2, 3), np.float32)
    arrays: dict[str, dict[str, Any]] = {
        "good": {"x": x},
        "name": {"z": x},
        "more": {"x": x, "z": x},
        "none": {},
        "shape": {"x": x.T},
        "dtype": {"x": x.astype(np.float64)},
        "objects": {"x": np.array([{}, 1], dtype=object)},
    }
    for name, content in arrays.items():
        np.savez(folder / f"{name}.npz", **content)
    whole = (folder / "good.npz").read_bytes()
    (folder / "truncated.npz").write_bytes(whole[: len(whole) // 2])
    broken = bytearray(whole)
    broken[whole.index(b"NUMPY") + 130] ^= 255
    (folder / "flipped.npz").write_bytes(broken)
    (folder / "empty.npz").touch()
    with (folder / "array.npz").open("wb") as file:
        np.save(file, x)
    with zipfile.ZipFile(folder / "other.npz", "w") as archive:
        archive.writestr("a.txt", "hello")


def machine_files(folder: Path) -> None:
    text = (machine.DIRECTORY / "ascend910.toml").read_text()
    changes: dict[str, Callable[[str], str]] = {
        "broken": lambda s: s.replace("cores = 32", "cores = = 32"),
        "text": lambda s: s.replace("cores = 32", 'cores = "32"'),
        "negative": lambda s: s.replace("cores = 32", "cores = -1"),
        "missing": lambda s: s.replace("cores = 32", ""),
        "misspelt": lambda s: s.replace("clock_mhz", "clock_mhs"),
        "unknown": lambda s: f"frobnicate = 1\n{s}",
        "pipe": lambda s: re.sub(r"sequential_pipes = .*", 'sequential_pipes = ["Q"]', s),
        "tiny": lambda s: re.sub(r"(UB +)= \{ bytes = \d+", r"\1= { bytes = 64", s),
        "empty": lambda s: "",
    }
    for name, change in changes.items():
        assert change(text) != text
        (folder / f"{name}.toml").write_text(change(text))
    (folder / "binary.toml").write_bytes(bytes(range(256)))


def write_all(folder: Path) -> None:
    """Writes the files of this module into `folder`."""
    for name, text in MLIR.items():
        (folder / f"{name}.mlir").write_text(text)
    (folder / "random.mlir").write_bytes(np.random.default_rng(0).bytes(1000))
    (folder / "latin.mlir").write_bytes(b"// caf\xe9\n" + EXP.encode())
    for name, start, encoding in (
        ("marked", "\ufeff", "utf-8"),
        ("utf16", "", "utf-16"),
        ("unmarked", "", "utf-16-le"),
    ):
        (folder / f"{name}.mlir").write_bytes((start + EXP).encode(encoding))
    deep = "[" * 20000 + "]" * 20000
    (folder / "deep.mlir").write_text(f"module attributes {{a.b = {deep}}} {{}}")
    (folder / "good.txt").write_text(EXP)
    onnx_files(folder)
    npz_files(folder)
    machine_files(folder)
