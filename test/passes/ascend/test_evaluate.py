"""Constant folding against StableHLO's reference interpreter: programs without arguments."""

from __future__ import annotations

import pytest

from davinci import elements, frontends
from davinci.mlir import make_context
from davinci.passes.pipeline import runner
from davinci.reference import interpreter

MATRIX = "%x = stablehlo.constant dense<[[1.5, -2.0, 3.0], [-4.0, 5.25, 0.5]]> : tensor<2x3xf32>"
NUMBERS = "%i = stablehlo.constant dense<[-7, 7, 5, -6]> : tensor<4xi32>"
OTHERS = "%j = stablehlo.constant dense<[2, -2, 5, 4]> : tensor<4xi32>"
UNSIGNED = """%u = stablehlo.constant dense<[1, 200, 3, 128]> : tensor<4xui8>
        %v = stablehlo.constant dense<[255, 100, 7, 127]> : tensor<4xui8>"""

PROGRAMS = {
    "pad": (
        "4x6xf32",
        f"""{MATRIX}
        %c = stablehlo.constant dense<9.0> : tensor<f32>
        %r = stablehlo.pad %x, %c, low = [1, -1], high = [0, 2], interior = [1, 1]
          : (tensor<2x3xf32>, tensor<f32>) -> tensor<4x6xf32>""",
    ),
    "pad_away": (
        "2x1xf32",
        f"""{MATRIX}
        %c = stablehlo.constant dense<9.0> : tensor<f32>
        %r = stablehlo.pad %x, %c, low = [0, -4], high = [0, 2], interior = [0, 0]
          : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x1xf32>""",
    ),
    "broadcast": (
        "3x4x2xf32",
        f"""{MATRIX}
        %r = stablehlo.broadcast_in_dim %x, dims = [2, 0] : (tensor<2x3xf32>)
          -> tensor<3x4x2xf32>""",
    ),
    "iota": ("2x3xi32", "%r = stablehlo.iota dim = 1 : tensor<2x3xi32>"),
    "slice": (
        "1x2xf32",
        f"""{MATRIX}
        %r = stablehlo.slice %x [1:2, 0:3:2] : (tensor<2x3xf32>) -> tensor<1x2xf32>""",
    ),
    "gather": (
        "4x3xf32",
        f"""{MATRIX}
        {NUMBERS}
        %r = "stablehlo.gather"(%x, %i) {{dimension_numbers = #stablehlo.gather<
            offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0],
            index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}}
          : (tensor<2x3xf32>, tensor<4xi32>) -> tensor<4x3xf32>""",
    ),
    "divide": ("4xi32", f"{NUMBERS}\n{OTHERS}\n%r = stablehlo.divide %i, %j : tensor<4xi32>"),
    "compare": (
        "4xi1",
        f"""{NUMBERS}
        {OTHERS}
        %r = stablehlo.compare LE, %i, %j : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>""",
    ),
    "convert": (
        "2x3xi32",
        f"{MATRIX}\n%r = stablehlo.convert %x : (tensor<2x3xf32>) -> tensor<2x3xi32>",
    ),
    "convert_i1": (
        "4xi1",
        f"{NUMBERS}\n%r = stablehlo.convert %i : (tensor<4xi32>) -> tensor<4xi1>",
    ),
    "transpose": (
        "3x2xf32",
        f"{MATRIX}\n%r = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>)"
        " -> tensor<3x2xf32>",
    ),
    "reduce": (
        "3xf32",
        f"""{MATRIX}
        %c = stablehlo.constant dense<1.0> : tensor<f32>
        %r = stablehlo.reduce(%x init: %c) applies stablehlo.multiply across dimensions = [0]
          : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>""",
    ),
    **{
        f"unsigned_{name}": ("4xui8", f"{UNSIGNED}\n%r = stablehlo.{name} %u, %v : tensor<4xui8>")
        for name in ("maximum", "minimum", "divide", "multiply", "subtract")
    },
    "unsigned_compare": (
        "4xi1",
        f"""{UNSIGNED}
        %r = stablehlo.compare GT, %u, %v : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xi1>""",
    ),
    "unsigned_reduce": (
        "ui8",
        f"""{UNSIGNED}
        %c = stablehlo.constant dense<0> : tensor<ui8>
        %r = stablehlo.reduce(%u init: %c) applies stablehlo.maximum across dimensions = [0]
          : (tensor<4xui8>, tensor<ui8>) -> tensor<ui8>""",
    ),
    "clamp": (
        "2x3xf32",
        f"""{MATRIX}
        %a = stablehlo.constant dense<-1.0> : tensor<f32>
        %b = stablehlo.constant dense<2.0> : tensor<f32>
        %r = stablehlo.clamp %a, %x, %b : (tensor<f32>, tensor<2x3xf32>, tensor<f32>)
          -> tensor<2x3xf32>""",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_folded_value(name: str) -> None:
    result, body = PROGRAMS[name]
    text = f"func.func @main() -> tensor<{result}> {{\n{body}\nreturn %r : tensor<{result}>\n}}\n"
    expected = interpreter.evaluate(frontends.load(text, make_context()), {}, ["r"])["r"]
    module = frontends.load(text, make_context())
    runner.run(module.operation, "builtin.module(convert-stablehlo-to-ascend)")
    operations = module.body.operations[0].regions[0].blocks[0].operations
    assert [op.operation.name for op in operations][1:] == ["func.return"]
    constant = operations[0].operation
    assert constant.name in ("ascend.constant", "ascend.full")
    if constant.name == "ascend.constant":
        found = elements.to_array(constant.attributes["value"])
        assert found.dtype == expected.dtype
        assert found.tolist() == expected.tolist()
    else:
        assert (expected == constant.attributes["value"].value).all()
