"""Reductions with start values of any kind, against StableHLO's reference interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from davinci import frontends
from davinci.mlir import make_context
from davinci.reference import interpreter
from pairs import all_pairs
from support import run_text

RNG = np.random.default_rng(1)


def reduction(shape: str, dims: list[int], result: str, kind: str, name: str) -> str:
    """`shape` and `result` as in `2x3x`; the start value is an argument."""
    return f"""func.func @main(%x: tensor<{shape}{kind}>, %c: tensor<{kind}>)
        -> tensor<{result}{kind}> {{
      %r = stablehlo.reduce(%x init: %c) applies stablehlo.{name} across dimensions = {dims}
        : (tensor<{shape}{kind}>, tensor<{kind}>) -> tensor<{result}{kind}>
      return %r : tensor<{result}{kind}>
    }}"""


def with_start(text: str, value: str) -> str:
    """The same with a constant start value, which conversions look into."""
    head, tail = text.split(", %c: ")
    kind, rest = tail.split(")", 1)
    opened, body = rest.split("{", 1)
    return f"{head}){opened}{{\n%c = stablehlo.constant dense<{value}> : {kind}{body}"


def expect_interpreter(text: str, *inputs: npt.NDArray[Any]) -> None:
    module = frontends.load(text, make_context())
    named = {str(i): array for i, array in enumerate(inputs)}
    outputs = range(text.split("return ")[1].count("%"))
    wanted = list(interpreter.evaluate(module, named, [str(i) for i in outputs]).values())
    for found, expected in zip(run_text(text, *inputs), wanted, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


SHAPES = {
    "no_dimensions": ("2x3x", [], "2x3x"),
    "rank_0": ("", [], ""),
    "size_1": ("5x1x", [1], "5x"),
    "all": ("3x5x", [0, 1], ""),
    "of_nothing": ("3x0x", [1], "3x"),
    "to_nothing": ("0x4x", [1], "0x"),
    "no_dimensions_of_nothing": ("0x4x", [], "0x4x"),
}


@pytest.mark.parametrize(
    ("case", "kind", "name"),
    all_pairs(SHAPES, ["f32", "i32", "ui8"], ["add", "multiply", "maximum", "minimum"]),
)
def test_start_value(case: str, kind: str, name: str) -> None:
    shape, dims, result = SHAPES[case]
    text = reduction(shape, dims, result, kind, name)
    dtype = np.dtype({"f32": "f4", "i32": "i4", "ui8": "u1"}[kind])
    x = RNG.integers(1, 9, [int(n) for n in shape.split("x") if n]).astype(dtype)
    expect_interpreter(text, x, np.array(5, dtype))
    expect_interpreter(with_start(text, "5.0" if kind == "f32" else "5"), x)


@pytest.mark.parametrize("name", ["and", "or"])
@pytest.mark.parametrize("start", [False, True])
def test_booleans_over_no_dimensions(name: str, start: bool) -> None:
    x = np.array([[False, True]])
    expect_interpreter(reduction("1x2x", [], "1x2x", "i1", name), x, np.array(start))


def test_several_operands_over_no_dimensions() -> None:
    """The body is applied to the start values, then the elements."""
    text = """func.func @main(
        %x: tensor<3xi32>, %y: tensor<3xf32>, %c: tensor<i32>, %d: tensor<f32>)
        -> (tensor<3xi32>, tensor<3xf32>) {
      %r:2 = stablehlo.reduce(%x init: %c), (%y init: %d) across dimensions = []
        : (tensor<3xi32>, tensor<3xf32>, tensor<i32>, tensor<f32>) -> (tensor<3xi32>, tensor<3xf32>)
        reducer(%a: tensor<i32>, %b: tensor<i32>) (%e: tensor<f32>, %f: tensor<f32>) {
          %s = stablehlo.subtract %a, %b : tensor<i32>
          %t = stablehlo.divide %e, %f : tensor<f32>
          stablehlo.return %s, %t : tensor<i32>, tensor<f32>
        }
      return %r#0, %r#1 : tensor<3xi32>, tensor<3xf32>
    }"""
    x, y = np.array([1, 2, 3], np.int32), np.array([1, 2, 4], np.float32)
    expect_interpreter(text, x, y, np.array(7, np.int32), np.array(8, np.float32))
