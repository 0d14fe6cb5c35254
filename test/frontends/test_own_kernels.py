"""Kernels that users write: called with arrays, and by operators of models of every frontend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import davinci
from davinci.frontends.onnx.tensor import Array

SWIGLU = Path(__file__).parents[2] / "examples" / "swiglu.mlir"
TENSOR = "tensor<16x512xf32>"


@pytest.fixture(scope="module")
def swiglu() -> davinci.UserKernel:
    return davinci.kernel_from(SWIGLU)


@pytest.fixture(scope="module")
def operands() -> Array:
    return np.random.default_rng(0).standard_normal((2, 16, 512), dtype=np.float32)


def wanted(x: Array, gate: Array) -> Array:
    return np.asarray(x / (1 + np.exp(-x)) * gate)


def onnx_model() -> onnx.ModelProto:
    return onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 17, "mine" : 1]>
        net (float[16, 512] x, float[16, 512] g) => (float[16, 512] y)
        { a = Relu(x)  b = mine.swiglu(a, g)  y = Add(b, x) }
    """)


def stablehlo(name: str = "swiglu", kind: str = TENSOR) -> str:
    return f"""
        func.func @main(%x: {kind}, %g: {kind}) -> {kind} {{
          %0 = stablehlo.add %x, %g : {kind}
          %1 = stablehlo.custom_call @{name}(%0, %g) : ({kind}, {kind}) -> {kind}
          %2 = stablehlo.custom_call @{name}(%1, %0) : ({kind}, {kind}) -> {kind}
          return %2 : {kind}
        }}"""


def test_a_kernel_is_called_with_arrays(swiglu: davinci.UserKernel, operands: Array) -> None:
    np.testing.assert_allclose(swiglu(*operands), wanted(*operands), rtol=1e-6)
    assert swiglu.executable.profile["kernels"][0]["blocks"] == 8
    assert "swiglu" in repr(swiglu)
    with pytest.raises(davinci.InputError, match="arg0"):
        swiglu(operands[0][:8], operands[1])


@pytest.mark.parametrize("precision", ["mixed", "fp16", "fp32"])
def test_a_node_of_onnx_calls_it(operands: Array, precision: str) -> None:
    x, gate = operands
    made = davinci.compile(onnx_model(), kernels=[SWIGLU], precision=precision)
    found = made.run(x, gate)["y"]
    tolerance = 2e-2 if precision == "fp16" else 1e-5
    expected = wanted(np.maximum(x, 0), gate) + x
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    assert [launch.name for launch in made.launches].count("swiglu") == 1


def test_custom_calls_share_a_kernel(swiglu: davinci.UserKernel, operands: Array) -> None:
    x, gate = operands
    made = davinci.compile(stablehlo(), kernels=swiglu, machine="ascend310")
    expected = wanted(wanted(x + gate, gate), x + gate)
    np.testing.assert_allclose(made.run(x, gate)["out0"], expected, rtol=1e-5, atol=1e-5)
    assert sorted(made.kernels) == ["add_f32_16x512", "swiglu"]


def test_a_function_of_the_model_may_have_its_name(
    swiglu: davinci.UserKernel, operands: Array
) -> None:
    kind = TENSOR
    text = f"""
        func.func private @swiglu(%a: {kind}) -> {kind} {{
          %0 = stablehlo.negate %a : {kind}
          return %0 : {kind}
        }}
        func.func @main(%x: {kind}, %g: {kind}) -> {kind} {{
          %0 = call @swiglu(%x) : ({kind}) -> {kind}
          %1 = stablehlo.custom_call @swiglu(%0, %g) : ({kind}, {kind}) -> {kind}
          return %1 : {kind}
        }}"""
    found = davinci.compile(text, kernels=[swiglu]).run(*operands)["out0"]
    np.testing.assert_allclose(found, wanted(-operands[0], operands[1]), rtol=1e-5)


def test_pytorch_calls_it(swiglu: davinci.UserKernel) -> None:
    torch: Any = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")

    def silu_times(x: Any, gate: Any) -> Any:
        return torch.nn.functional.silu(x) * gate

    schema = "(Tensor x, Tensor gate) -> Tensor"
    name = "davinci_test::swiglu"
    operator = torch.library.custom_op(name, silu_times, mutates_args=(), schema=schema)
    operator.register_fake(lambda x, gate: torch.empty_like(x))

    class Gated(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.gate = torch.nn.Linear(32, 512), torch.nn.Linear(32, 512)

        def forward(self, x: Any) -> Any:
            return torch.ops.davinci_test.swiglu(self.up(x), self.gate(x))

    torch.manual_seed(0)
    model, x = Gated().eval(), torch.randn(16, 32)
    (found,) = davinci.compile(model, example_inputs=(x,), kernels=[swiglu]).run(x.numpy()).values()
    with torch.no_grad():
        np.testing.assert_allclose(found, model(x).numpy(), atol=5e-3)


def test_jax_calls_it(swiglu: davinci.UserKernel, operands: Array) -> None:
    jax: Any = pytest.importorskip("jax")

    def function(x: Any, gate: Any) -> Any:
        kind = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return 2 * jax.ffi.ffi_call("swiglu", kind)(x, gate)

    made = davinci.compile(function, example_inputs=tuple(operands), kernels=[swiglu])
    np.testing.assert_allclose(made.run(*operands)["out0"], 2 * wanted(*operands), rtol=1e-5)


def test_the_cache_knows_kernels(tmp_path: Path, operands: Array) -> None:
    other = tmp_path / "swiglu.mlir"
    text = SWIGLU.read_text()
    results = []
    for lines in (text, text.replace("cce.vmul %a, %b, %a", "cce.vadd %a, %b, %a")):
        other.write_text(lines)
        made = davinci.compile(stablehlo(), kernels=[other], cache=tmp_path / "kept")
        results.append(made.run(*operands)["out0"])
    assert not np.array_equal(*results)


HOSTLESS = """
func.func @{name}(%x: memref<{shape}xf32>, %y: memref<{shape}xf32>) {{
  %a = memref.alloc() : UB<64xf32>
  cce.copy %x, %a : memref<64xf32>, UB<64xf32>
  cce.copy %a, %y : UB<64xf32>, memref<64xf32>
  return
}}
"""


def copying(name: str) -> str:
    return HOSTLESS.format(name=name, shape=64)


def test_text_may_have_several_kernels() -> None:
    text = copying("first") + copying("second")
    x = np.arange(64, dtype=np.float32)
    assert np.array_equal(davinci.kernel_from(text, "second")(x), x)
    with pytest.raises(davinci.InputError, match="several kernels; found @first, @second"):
        davinci.kernel_from(text)
    with pytest.raises(davinci.InputError, match="no such kernel; found @first, @second"):
        davinci.kernel_from(text, "third")


BAD = {
    "nothing stored": (
        "func.func @f(%x: memref<64xf32>) {\n return\n}",
        "the kernel stores into none of its arguments; found @f",
    ),
    "no array": ("func.func @f(%x: f32) {\n return\n}", "stores into none"),
    "unknown sizes": (
        copying("f").replace("%x: memref<64xf32>", "%z: memref<?xf32>, %x: memref<64xf32>"),
        "argument 0 of @f: memref<\\?xf32>",
    ),
    "no functions": ("module {\n}", "no such kernel; found no functions"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_kernel_is_told(name: str) -> None:
    text, message = BAD[name]
    with pytest.raises(davinci.InputError, match=message):
        davinci.kernel_from(text)


def test_what_does_not_fit_a_model_is_told(swiglu: davinci.UserKernel) -> None:
    cases = (
        (stablehlo("swigl"), [swiglu], "no operator of the model is called like kernel swiglu"),
        (stablehlo(kind="tensor<8x512xf32>"), [swiglu], "found tensor<8x512xf32>, tensor<8x512xf"),
        (stablehlo(), [swiglu, SWIGLU], "two kernels have one name; found swiglu"),
        (stablehlo(), ["none.mlir"], "none.mlir: no such file"),
        (stablehlo(), [3], "not a kernel; found int"),
    )
    for model, kernels, message in cases:
        with pytest.raises(davinci.InputError, match=message):
            davinci.compile(model, kernels=kernels)  # type: ignore[arg-type]
    with pytest.raises(davinci.CompileError, match="or a kernel of its name"):
        davinci.compile(onnx_model())


def test_outputs_come_last_in_what_models_call() -> None:
    text = copying("swiglu").replace(
        "%x: memref<64xf32>, %y: memref<64xf32>", "%y: memref<64xf32>, %x: memref<64xf32>"
    )
    kernel = davinci.kernel_from(text)
    x = np.arange(64, dtype=np.float32)
    assert np.array_equal(kernel(x), x)
    with pytest.raises(davinci.InputError, match="outputs last; found out0, arg0; expected arg0"):
        davinci.compile(stablehlo(), kernels=[kernel])
