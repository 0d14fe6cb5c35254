"""StableHLO programs on the simulated machine against StableHLO's reference interpreter.

One program for each conversion, and for operators that become scalar kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import davinci
from davinci import frontends
from davinci.mlir import make_context
from davinci.reference import interpreter


def function(arguments: str, results: str, body: str) -> str:
    return f"func.func @main({arguments}) -> ({results}) {{\n{body}\n}}\n"


def unary(name: str, shaped: str) -> str:
    body = f"%0 = stablehlo.{name} %x : {shaped}\n return %0 : {shaped}"
    return function(f"%x: {shaped}", shaped, body)


def binary(name: str, shaped: str) -> str:
    body = f"%0 = stablehlo.{name} %x, %y : {shaped}\n return %0 : {shaped}"
    return function(f"%x: {shaped}, %y: {shaped}", shaped, body)


def dot(a: str, b: str, result: str, numbers: str) -> str:
    body = f"""%0 = stablehlo.dot_general %a, %b, {numbers} : (tensor<{a}>, tensor<{b}>)
      -> tensor<{result}>
    return %0 : tensor<{result}>"""
    return function(f"%a: tensor<{a}>, %b: tensor<{b}>", f"tensor<{result}>", body)


VECTOR = {
    name: unary(name, "tensor<7x13xf32>")
    for name in [
        "negate",
        "abs",
        "exponential",
        "tanh",
        "logistic",
        "sign",
        "floor",
        "ceil",
        "round_nearest_even",
        "sqrt",
        "rsqrt",
        "log",
    ]
} | {
    f"{name}_{kind}": binary(name, f"tensor<5x17x{kind}>")
    for name in ["add", "subtract", "multiply", "maximum", "minimum"]
    for kind in ("f32", "f16", "i32")
}
VECTOR |= {
    "max_pool": function(
        "%x: tensor<1x4x4x2xf32>",
        "tensor<1x2x2x2xf32>",
        """%c = stablehlo.constant dense<0xFF800000> : tensor<f32>
        %0 = "stablehlo.reduce_window"(%x, %c) ({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %1 = stablehlo.maximum %a, %b : tensor<f32>
            stablehlo.return %1 : tensor<f32>
        }) {window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}
          : (tensor<1x4x4x2xf32>, tensor<f32>) -> tensor<1x2x2x2xf32>
        return %0 : tensor<1x2x2x2xf32>""",
    ),
    "divide": binary("divide", "tensor<33xf32>"),
    "and_i1": binary("and", "tensor<9x3xi1>"),
    "xor_i1": binary("xor", "tensor<9x3xi1>"),
    "add_i1": binary("add", "tensor<9x3xi1>"),
    "not_i1": unary("not", "tensor<40xi1>"),
    "rank_0": binary("add", "tensor<f32>"),
    "rank_5": binary("add", "tensor<2x1x3x1x5xf32>"),
    "empty": binary("add", "tensor<0x3xf32>"),
    "square": function(
        "%x: tensor<19xf32>",
        "tensor<19xf32>",
        """%c = stablehlo.constant dense<2.0> : tensor<19xf32>
        %0 = stablehlo.power %x, %c : tensor<19xf32>
        return %0 : tensor<19xf32>""",
    ),
    "relu": function(
        "%x: tensor<19xf32>",
        "tensor<19xf32>",
        """%c = stablehlo.constant dense<0.0> : tensor<19xf32>
        %0 = stablehlo.maximum %x, %c : tensor<19xf32>
        return %0 : tensor<19xf32>""",
    ),
    "compare_select": function(
        "%x: tensor<19xf32>, %y: tensor<19xf32>",
        "tensor<19xf32>, tensor<19xi1>",
        """%0 = stablehlo.compare GT, %x, %y : (tensor<19xf32>, tensor<19xf32>) -> tensor<19xi1>
        %1 = stablehlo.select %0, %x, %y : tensor<19xi1>, tensor<19xf32>
        return %1, %0 : tensor<19xf32>, tensor<19xi1>""",
    ),
    "select_scalar_predicate": function(
        "%p: tensor<i1>, %x: tensor<19xf32>, %y: tensor<19xf32>",
        "tensor<19xf32>",
        """%1 = stablehlo.select %p, %x, %y : tensor<i1>, tensor<19xf32>
        return %1 : tensor<19xf32>""",
    ),
    "clamp": function(
        "%x: tensor<19xf32>",
        "tensor<19xf32>",
        """%a = stablehlo.constant dense<-0.25> : tensor<f32>
        %b = stablehlo.constant dense<0.5> : tensor<f32>
        %0 = stablehlo.clamp %a, %x, %b : (tensor<f32>, tensor<19xf32>, tensor<f32>)
          -> tensor<19xf32>
        return %0 : tensor<19xf32>""",
    ),
    "convert": function(
        "%x: tensor<19xf32>",
        "tensor<19xf16>, tensor<19xi32>",
        """%0 = stablehlo.convert %x : (tensor<19xf32>) -> tensor<19xf16>
        %1 = stablehlo.convert %x : (tensor<19xf32>) -> tensor<19xi32>
        return %0, %1 : tensor<19xf16>, tensor<19xi32>""",
    ),
    "matmul": dot("17x33xf32", "33x5xf32", "17x5xf32", "contracting_dims = [1] x [0]"),
    "matmul_transposed": dot("33x17xf32", "5x33xf32", "17x5xf32", "contracting_dims = [0] x [1]"),
    "matmul_vector": dot("33xf32", "33xf32", "f32", "contracting_dims = [0] x [0]"),
    "matmul_f16": dot("17x33xf16", "33x5xf16", "17x5xf16", "contracting_dims = [1] x [0]"),
    "matmul_outer": dot("3x4xf32", "5xf32", "3x4x5xf32", "contracting_dims = [] x []"),
    "matmul_two_inner": dot(
        "3x4x5xf32", "4x7x5xf32", "3x7xf32", "contracting_dims = [1, 2] x [0, 2]"
    ),
    "batch_matmul": dot(
        "2x3x17x8xf32",
        "2x3x8x5xf32",
        "2x3x17x5xf32",
        "batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2]",
    ),
    "batch_matmul_moved": dot(
        "17x4x8xf32",
        "8x5x4xf32",
        "4x17x5xf32",
        "batching_dims = [1] x [2], contracting_dims = [2] x [0]",
    ),
    "shared_weight": function(
        "%x: tensor<3x5x8xf32>, %w: tensor<8x4xf32>",
        "tensor<3x5x4xf32>",
        """%b = stablehlo.broadcast_in_dim %w, dims = [1, 2] : (tensor<8x4xf32>)
          -> tensor<3x8x4xf32>
        %0 = stablehlo.dot_general %x, %b, batching_dims = [0] x [0],
          contracting_dims = [2] x [1] : (tensor<3x5x8xf32>, tensor<3x8x4xf32>)
          -> tensor<3x5x4xf32>
        return %0 : tensor<3x5x4xf32>""",
    ),
    "broadcast": function(
        "%x: tensor<3x1xf32>",
        "tensor<3x2x5xf32>",
        """%0 = stablehlo.broadcast_in_dim %x, dims = [0, 2] : (tensor<3x1xf32>)
          -> tensor<3x2x5xf32>
        return %0 : tensor<3x2x5xf32>""",
    ),
    "slice": function(
        "%x: tensor<9x10xf32>",
        "tensor<3x7xf32>",
        """%0 = stablehlo.slice %x [1:9:3, 2:9] : (tensor<9x10xf32>) -> tensor<3x7xf32>
        return %0 : tensor<3x7xf32>""",
    ),
    "dynamic_slice_known": function(
        "%x: tensor<9x10xf32>",
        "tensor<3x7xf32>",
        """%a = stablehlo.constant dense<8> : tensor<i32>
        %b = stablehlo.constant dense<1> : tensor<i32>
        %0 = stablehlo.dynamic_slice %x, %a, %b, sizes = [3, 7]
          : (tensor<9x10xf32>, tensor<i32>, tensor<i32>) -> tensor<3x7xf32>
        return %0 : tensor<3x7xf32>""",
    ),
    "concatenate": function(
        "%x: tensor<3x2xf32>, %y: tensor<3x5xf32>",
        "tensor<3x9xf32>",
        """%0 = stablehlo.concatenate %x, %y, %x, dim = 1
          : (tensor<3x2xf32>, tensor<3x5xf32>, tensor<3x2xf32>) -> tensor<3x9xf32>
        return %0 : tensor<3x9xf32>""",
    ),
    "pad": function(
        "%x: tensor<3x4xf32>",
        "tensor<6x5xf32>",
        """%c = stablehlo.constant dense<1.5> : tensor<f32>
        %0 = stablehlo.pad %x, %c, low = [1, 0], high = [2, 1], interior = [0, 0]
          : (tensor<3x4xf32>, tensor<f32>) -> tensor<6x5xf32>
        return %0 : tensor<6x5xf32>""",
    ),
    "transpose": function(
        "%x: tensor<2x3x5xf16>",
        "tensor<5x2x3xf16>",
        """%0 = stablehlo.transpose %x, dims = [2, 0, 1] : (tensor<2x3x5xf16>)
          -> tensor<5x2x3xf16>
        return %0 : tensor<5x2x3xf16>""",
    ),
    "reduce_from": function(
        "%x: tensor<4x9xf32>",
        "tensor<4xf32>",
        """%c = stablehlo.constant dense<2.0> : tensor<f32>
        %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1]
          : (tensor<4x9xf32>, tensor<f32>) -> tensor<4xf32>
        return %0 : tensor<4xf32>""",
    ),
    "reduce_nothing": function(
        "%x: tensor<4x0xf32>",
        "tensor<4xf32>",
        """%c = stablehlo.constant dense<2.0> : tensor<f32>
        %0 = stablehlo.reduce(%x init: %c) applies stablehlo.maximum across dimensions = [1]
          : (tensor<4x0xf32>, tensor<f32>) -> tensor<4xf32>
        return %0 : tensor<4xf32>""",
    ),
    "gather_rows": function(
        "%x: tensor<6x4xf32>, %i: tensor<2x3xi32>",
        "tensor<2x3x4xf32>",
        """%0 = "stablehlo.gather"(%x, %i) {dimension_numbers = #stablehlo.gather<
            offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0],
            index_vector_dim = 2>, slice_sizes = array<i64: 1, 4>}
          : (tensor<6x4xf32>, tensor<2x3xi32>) -> tensor<2x3x4xf32>
        return %0 : tensor<2x3x4xf32>""",
    ),
    "gather_columns": function(
        "%x: tensor<6x4xf32>, %i: tensor<3xi32>",
        "tensor<6x3xf32>",
        """%0 = "stablehlo.gather"(%x, %i) {dimension_numbers = #stablehlo.gather<
            offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1],
            index_vector_dim = 1>, slice_sizes = array<i64: 6, 1>}
          : (tensor<6x4xf32>, tensor<3xi32>) -> tensor<6x3xf32>
        return %0 : tensor<6x3xf32>""",
    ),
    "iota": function(
        "%x: tensor<3x5xf32>",
        "tensor<3x5xf32>",
        """%0 = stablehlo.iota dim = 1 : tensor<3x5xf32>
        %1 = stablehlo.add %x, %0 : tensor<3x5xf32>
        return %1 : tensor<3x5xf32>""",
    ),
    "dynamic_update_slice": function(
        "%x: tensor<6x4xf32>, %u: tensor<2x4xf32>, %i: tensor<i32>",
        "tensor<6x4xf32>",
        """%c = stablehlo.constant dense<0> : tensor<i32>
        %0 = stablehlo.dynamic_update_slice %x, %u, %i, %c
          : (tensor<6x4xf32>, tensor<2x4xf32>, tensor<i32>, tensor<i32>) -> tensor<6x4xf32>
        return %0 : tensor<6x4xf32>""",
    ),
    "add_i64": binary("add", "tensor<9xi64>"),
    "divide_i32": binary("divide", "tensor<9xi32>"),
    "remainder": binary("remainder", "tensor<9xf32>"),
    "reverse": function(
        "%x: tensor<3x5xf32>",
        "tensor<3x5xf32>",
        """%0 = stablehlo.reverse %x, dims = [1] : tensor<3x5xf32>
        return %0 : tensor<3x5xf32>""",
    ),
    "reduce_or": function(
        "%x: tensor<3x5xi1>",
        "tensor<3xi1>",
        """%a = stablehlo.constant dense<false> : tensor<i1>
        %0 = stablehlo.reduce(%x init: %a) applies stablehlo.or across dimensions = [1]
          : (tensor<3x5xi1>, tensor<i1>) -> tensor<3xi1>
        return %0 : tensor<3xi1>""",
    ),
}
"""Programs of operators that have a form in the ascend dialect."""

SCALAR = {
    "reduce_with_a_constant_in_its_region": function(
        "%x: tensor<4x8xf32>",
        "tensor<4xf32>",
        """%zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %zero) across dimensions = [1]
        : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    reducer(%a: tensor<f32>, %b: tensor<f32>) {
      %two = stablehlo.constant dense<2.0> : tensor<f32>
      %1 = stablehlo.multiply %b, %two : tensor<f32>
      %2 = stablehlo.add %a, %1 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }
    return %0 : tensor<4xf32>""",
    ),
    "divide_i64": binary("divide", "tensor<9xi64>"),
    "argmax": function(
        "%x: tensor<3x5xf32>, %i: tensor<3x5xi32>",
        "tensor<3xf32>, tensor<3xi32>",
        """%a = stablehlo.constant dense<-1.0e9> : tensor<f32>
        %b = stablehlo.constant dense<0> : tensor<i32>
        %0:2 = stablehlo.reduce(%x init: %a), (%i init: %b) across dimensions = [1]
          : (tensor<3x5xf32>, tensor<3x5xi32>, tensor<f32>, tensor<i32>)
          -> (tensor<3xf32>, tensor<3xi32>)
         reducer(%p: tensor<f32>, %q: tensor<f32>) (%r: tensor<i32>, %s: tensor<i32>) {
          %2 = stablehlo.compare GE, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
          %3 = stablehlo.select %2, %p, %q : tensor<i1>, tensor<f32>
          %4 = stablehlo.select %2, %r, %s : tensor<i1>, tensor<i32>
          stablehlo.return %3, %4 : tensor<f32>, tensor<i32>
        }
        return %0#0, %0#1 : tensor<3xf32>, tensor<3xi32>""",
    ),
    "convolution": function(
        "%x: tensor<1x6x6x2xf32>, %k: tensor<3x3x2x4xf32>",
        "tensor<1x4x4x4xf32>",
        """%0 = stablehlo.convolution(%x, %k)
          dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
          window = {reverse = [true, true]}
          {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
          : (tensor<1x6x6x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x4x4x4xf32>
        return %0 : tensor<1x4x4x4xf32>""",
    ),
    "gather_points": function(
        "%x: tensor<6x4xf32>, %i: tensor<3x2xi32>",
        "tensor<3xf32>",
        """%0 = "stablehlo.gather"(%x, %i) {dimension_numbers = #stablehlo.gather<
            collapsed_slice_dims = [0, 1], start_index_map = [0, 1],
            index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}
          : (tensor<6x4xf32>, tensor<3x2xi32>) -> tensor<3xf32>
        return %0 : tensor<3xf32>""",
    ),
    "matmul_f64": dot("3x4xf64", "4x5xf64", "3x5xf64", "contracting_dims = [1] x [0]"),
}
"""Programs whose only operator is a scalar kernel."""


def inputs_of(executable: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    arrays = {}
    for spec in executable.inputs:
        dtype = spec.dtype
        if dtype.kind == "f":
            array = rng.uniform(-2, 2, spec.shape).astype(dtype)
        elif dtype.kind == "b":
            array = rng.integers(0, 2, spec.shape).astype(bool)
        else:
            array = rng.integers(-4, 7, spec.shape).astype(dtype)
        arrays[spec.name] = array
    return arrays


def check(text: str) -> Any:
    """Runs a program both ways; returns the profile."""
    executable = davinci.compile(text)
    inputs = inputs_of(executable)
    if "stablehlo.log " in text or "sqrt" in text:
        inputs = {name: np.abs(array) + 0.1 for name, array in inputs.items()}
    found = executable.run(inputs)
    module = frontends.load(text, make_context())
    expected = interpreter.evaluate(module, inputs, list(found))
    for name, reference in expected.items():
        if reference.dtype.kind == "f":
            scale = max(1.0, float(np.max(np.abs(reference), initial=0)))
            # Products of the cube are of f16 values: 2^-11 of relative error each.
            half = reference.dtype == np.float16 or "dot_general" in text
            tolerance = (4e-3 if half else 2e-5) * scale
            np.testing.assert_allclose(found[name], reference, rtol=0, atol=tolerance)
        else:
            np.testing.assert_array_equal(found[name], reference)
    return executable.profile


@pytest.mark.parametrize("name", VECTOR)
def test_ascend(name: str) -> None:
    check(VECTOR[name])


@pytest.mark.parametrize("name", SCALAR)
def test_scalar(name: str) -> None:
    assert check(SCALAR[name])["ops"]["scalar"] == 1
