"""Kernels of ours as text of AscendNPU-IR: its own verifier takes them, and read back they give the
same bytes."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("ascendnpuir", reason="needs pip install '.[triton]'")

import davinci
from davinci.errors import CompileError
from davinci.frontends.hivm import Given, launch
from davinci.hivm_out import as_hivm
from davinci.triton.toolchain import verify

RANDOM = np.random.default_rng(1)

MODELS = {
    "silu": ("3000xf32", "%0 = stablehlo.logistic %a : T\n%r = stablehlo.multiply %0, %b : T"),
    "a sum on several cores": ("100000xf16", "%r = stablehlo.add %a, %b : T"),
    "a sum that the memory bounds": ("600000xf32", "%r = stablehlo.add %a, %b : T"),
    "17 products": ("17xf32", "%r = stablehlo.multiply %a, %b : T"),
    "quotients": ("64x100xf32", "%r = stablehlo.divide %a, %b : T"),
    "maxima of halves": ("64x100xf16", "%r = stablehlo.maximum %a, %b : T"),
    "exponentials": ("5x7x11xf32", "%r = stablehlo.exponential %a : T"),
    "roots": ("1000xf32", "%0 = stablehlo.abs %a : T\n%r = stablehlo.sqrt %0 : T"),
    "logarithms": ("1000xf32", "%0 = stablehlo.abs %a : T\n%r = stablehlo.log %0 : T"),
    "inverse roots of halves": (
        "333x33xf16",
        "%0 = stablehlo.abs %a : T\n%r = stablehlo.rsqrt %0 : T",
    ),
    "integers": ("1000xi32", "%0 = stablehlo.add %a, %b : T\n%r = stablehlo.minimum %0, %a : T"),
    "a row added to all rows": (
        "64x96xf32",
        "%0 = stablehlo.slice %b [0:1, 0:96] : (T) -> tensor<1x96xf32>\n"
        "%1 = stablehlo.reshape %0 : (tensor<1x96xf32>) -> tensor<96xf32>\n"
        "%q = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<96xf32>) -> T\n"
        "%r = stablehlo.add %a, %q : T",
    ),
    "the larger of two, chosen by bits": (
        "1000xf32",
        "%c = stablehlo.compare GE, %a, %b : (T, T) -> C\n%r = stablehlo.select %c, %a, %b : C, T",
    ),
    "a product and a sum with it": (
        "1000xf32",
        "%0 = stablehlo.multiply %a, %b : T\n%1 = stablehlo.exponential %a : T\n"
        "%r = stablehlo.add %0, %1 : T",
    ),
    "a product and a sum in its place": (
        "37x45xf32",
        "%0 = stablehlo.negate %a : T\n%1 = stablehlo.exponential %b : T\n"
        "%2 = stablehlo.multiply %0, %1 : T\n%r = stablehlo.add %2, %b : T",
    ),
    "a scaled sum": (
        "5000xf16",
        "%c = stablehlo.constant dense<0.3> : T\n%0 = stablehlo.multiply %a, %c : T\n"
        "%1 = stablehlo.exponential %b : T\n%r = stablehlo.add %0, %1 : T",
    ),
    "gelu": (
        "40x777xf32",
        "%c = stablehlo.constant dense<1.702> : T\n%0 = stablehlo.multiply %a, %c : T\n"
        "%1 = stablehlo.logistic %0 : T\n%r = stablehlo.multiply %a, %1 : T",
    ),
}


def model(kind: str, body: str) -> str:
    arguments = "%a: T, %b: T" if "%b" in body else "%a: T"
    text = f"func.func @main({arguments}) -> T {{\n{body}\nreturn %r : T }}"
    booleans = f"tensor<{kind.rpartition('x')[0]}xi1>"
    return re.sub(r"\bC\b", booleans, re.sub(r"\bT\b", f"tensor<{kind}>", text))


@pytest.mark.parametrize("name", MODELS)
def test_the_same_bytes(name: str) -> None:
    kind, body = MODELS[name]
    found = as_hivm(model(kind, body))
    assert found.refused == {}
    (kernel,) = found.kernels
    verify(kernel.text)
    ours = davinci.compile(model(kind, body), machine="ascend910b")
    inputs = {
        spec.name: (3 * RANDOM.standard_normal(spec.shape)).astype(spec.dtype)
        for spec in ours.inputs
    }
    ((out, expected),) = ours.run(inputs).items()
    element = kind.rpartition("x")[2]
    arrays = {**inputs, out: np.zeros_like(expected)}
    given = [Given(name, arrays[name].shape, element) for name in kernel.arguments]
    theirs = davinci.compile(launch(kernel.text, [kernel.blocks], given), machine="ascend910b")
    assert theirs.run(arrays)[out].tobytes() == expected.tobytes()
    assert theirs.launches[0].cycles == pytest.approx(ours.launches[0].cycles, rel=0.15)


def test_what_has_no_counterpart_is_named() -> None:
    text = """func.func @main(%a: tensor<64x300xf32>) -> tensor<64xf32> {
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %r = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1]
        : (tensor<64x300xf32>, tensor<f32>) -> tensor<64xf32>
      return %r : tensor<64xf32>
    }"""
    found = as_hivm(text)
    assert found.kernels == ()
    ((_, reason),) = found.refused.items()
    assert "cce.vcgadd" in reason


def test_text_that_their_verifier_refuses() -> None:
    (kernel,) = as_hivm(model(*MODELS["17 products"])).kernels
    wrong = kernel.text.replace("array<i32: 2, 1, 0>", "array<i32: 1, 1, 0>", 1)
    with pytest.raises(CompileError, match="bishengir-opt refuses"):
        verify(wrong)
