"""Labels of kernels, the work their operators mean, and the nodes their launches name."""

from __future__ import annotations

from typing import Any

import pytest

from davinci.dialects.base import attribute
from davinci.mlir import ir, make_context, operations
from davinci.passes.pipeline import pipelines, runner

OPERATORS = [
    (
        "%r = stablehlo.add %a, %a : tensor<3x100xf32>",
        {"a": "3x100xf32"},
        "3x100xf32",
        "add 3x100 f32",
        {"vector_repeats": 5, "read_bytes": 2400, "write_bytes": 1200},
    ),
    (
        "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : "
        "(tensor<17x33xf32>, tensor<33x5xf32>) -> tensor<17x5xf32>",
        {"a": "17x33xf32", "b": "33x5xf32"},
        "17x5xf32",
        "matmul 17x5x33 f16",
        {"macs": 17 * 5 * 33, "factor_bits": 16, "read_bytes": 2 * (17 + 5) * 33}
        | {"write_bytes": 4 * 17 * 5},
    ),
    (
        "%r = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1]"
        " : (tensor<2x17x33xf32>, tensor<2x33x5xf32>) -> tensor<2x17x5xf32>",
        {"a": "2x17x33xf32", "b": "2x33x5xf32"},
        "2x17x5xf32",
        "batch_matmul 2x17x5x33 f16",
        {"macs": 2 * 17 * 5 * 33, "factor_bits": 16, "read_bytes": 4 * (17 + 5) * 33}
        | {"write_bytes": 8 * 17 * 5},
    ),
    (
        "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : "
        "(tensor<4x6xf64>, tensor<6x5xf64>) -> tensor<4x5xf64>",
        {"a": "4x6xf64", "b": "6x5xf64"},
        "4x5xf64",
        "dot_general 4x6 * 6x5 f64",
        {"macs": 4 * 5 * 6, "factor_bits": 16, "read_bytes": 8 * 54, "write_bytes": 160},
    ),
    (
        "%r = stablehlo.transpose %a, dims = [1, 0] : (tensor<8x40xf16>) -> tensor<40x8xf16>",
        {"a": "8x40xf16"},
        "40x8xf16",
        "transpose 8x40 -> 40x8 f16",
        {"read_bytes": 640, "write_bytes": 640},
    ),
    (
        "%r = stablehlo.slice %a [0:2] : (tensor<1000xf32>) -> tensor<2xf32>",
        {"a": "1000xf32"},
        "2xf32",
        "slice 1000 -> 2 f32",
        {"read_bytes": 8, "write_bytes": 8},
    ),
    (
        "%c = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%r = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [1] : "
        "(tensor<4x512xf32>, tensor<f32>) -> tensor<4xf32>",
        {"a": "4x512xf32"},
        "4xf32",
        "reduce add 4x512 -> 4 f32",
        {"vector_repeats": 32, "read_bytes": 8192, "write_bytes": 16},
    ),
    (
        "%r = stablehlo.compare LT, %a, %a : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1>",
        {"a": "64xf32"},
        "64xi1",
        "compare lt 64 f32",
        {"vector_repeats": 1, "read_bytes": 512, "write_bytes": 64},
    ),
    (
        "%r = stablehlo.add %a, %a : tensor<64xi64>",
        {"a": "64xi64"},
        "64xi64",
        "add 64 i64",
        {"vector_repeats": 2, "read_bytes": 1024, "write_bytes": 512},
    ),
]


def lowered(body: str, arguments: dict[str, str], result: str) -> Any:
    given = ", ".join(f"%{name}: tensor<{kind}>" for name, kind in arguments.items())
    text = f"""func.func @main({given}) -> tensor<{result}> {{
    {body} loc("the/node")
    return %r : tensor<{result}>
    }}"""
    return run(text)


def run(text: str) -> Any:
    module = ir.Module.parse(text, make_context())
    for name in ("stablehlo-to-ascend", "ascend-to-memref"):
        runner.run(module.operation, pipelines.text(name, pipelines.Options(fusion="none")))
    return module


def kernels(module: Any) -> list[Any]:
    return [op for op in operations(module.operation, "func") if "ascend.kernel" in op.attributes]


def launched(module: Any) -> list[tuple[str, list[str]]]:
    """The kernel and the nodes of each launch."""
    return [
        (str(call.attributes["callee"]).removeprefix("@"), attribute(call, "ascend.operators", []))
        for call in operations(module.operation, "func.call")
    ]


@pytest.mark.parametrize(("body", "arguments", "result", "label", "work"), OPERATORS)
def test_facts(
    body: str, arguments: dict[str, str], result: str, label: str, work: dict[str, int]
) -> None:
    module = lowered(body, arguments, result)
    found = {
        attribute(kernel, "ascend.label"): {
            x.name: ir.IntegerAttr(x.attr).value for x in kernel.attributes["ascend.work"]
        }
        for kernel in kernels(module)
    }
    assert found[label] == work if label in found else found == {label: work}
    assert {tuple(nodes) for _, nodes in launched(module)} == {("the/node",)}, "a layout, a cast"


def test_a_convolution_on_the_scalar_unit_has_its_macs() -> None:
    module = lowered(
        "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], "
        "window = {pad = [[1, 1], [1, 1]], reverse = [true, true]} {batch_group_count = 1 : i64, "
        "feature_group_count = 2 : i64} : "
        "(tensor<1x8x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x9x9xf32>",
        {"a": "1x8x9x9xf32", "b": "6x4x3x3xf32"},
        "1x6x9x9xf32",
    )
    (kernel,) = kernels(module)
    assert attribute(kernel, "ascend.label") == "convolution 1x8x9x9 * 6x4x3x3 f32"
    work = {x.name: ir.IntegerAttr(x.attr).value for x in kernel.attributes["ascend.work"]}
    assert work["macs"] == 1 * 6 * 9 * 9 * (4 * 3 * 3), "grouped: 4 of the 8 channels each"


def test_products_of_other_sizes_are_other_kernels() -> None:
    """Both have the same fractals; what they mean differs."""
    module = run(
        """func.func @main(%a: tensor<1x16xf16>, %b: tensor<9x16xf16>, %w: tensor<16x16xf16>)
            -> (tensor<1x16xf16>, tensor<9x16xf16>) {
        %0 = "stablehlo.dot_general"(%a, %w) {dot_dimension_numbers = #stablehlo.dot<
            lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}
            : (tensor<1x16xf16>, tensor<16x16xf16>) -> tensor<1x16xf16>
        %1 = "stablehlo.dot_general"(%b, %w) {dot_dimension_numbers = #stablehlo.dot<
            lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}
            : (tensor<9x16xf16>, tensor<16x16xf16>) -> tensor<9x16xf16>
        return %0, %1 : tensor<1x16xf16>, tensor<9x16xf16> }"""
    )
    labels = [attribute(kernel, "ascend.label") for kernel in kernels(module)]
    assert {"matmul 1x16x16 f16", "matmul 9x16x16 f16"} <= set(labels)


def test_work_for_several_nodes_names_them_all() -> None:
    """The operand of two products is narrowed once; a moved transpose stays itself."""
    module = run(
        """func.func @main(%x: tensor<32x32xf32>, %u: tensor<32x32xf32>, %v: tensor<32x32xf32>)
            -> (tensor<32x32xf32>, tensor<32x32xf32>) {
        %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<32x32xf32>) -> tensor<32x32xf32>
            loc("Transpose")
        %s = stablehlo.exponential %t : tensor<32x32xf32> loc("Exp")
        %0 = stablehlo.dot_general %s, %u, contracting_dims = [1] x [0]
            : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32> loc("Q")
        %1 = stablehlo.dot_general %s, %v, contracting_dims = [1] x [0]
            : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32> loc("K")
        return %0, %1 : tensor<32x32xf32>, tensor<32x32xf32> }"""
    )
    found = launched(module)
    by_operator = {name.split("_")[0]: nodes for name, nodes in reversed(found)}
    assert by_operator["transpose"] == ["Transpose"] and by_operator["exp"] == ["Exp"]
    assert found[2][0].startswith("cast") and found[2][1] == ["Q", "K"]
    products = [nodes for name, nodes in found if "matmul" in name]
    assert sorted(products) == [["K"], ["Q"]]


def test_equal_operators_are_one_kernel_that_names_both() -> None:
    module = run(
        """func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
        %0 = stablehlo.sine %x : tensor<4xf32> loc("Sin_0")
        %1 = stablehlo.sine %x : tensor<4xf32> loc("Sin_1")
        %2 = stablehlo.multiply %0, %y : tensor<4xf32> loc("Mul_0")
        %3 = stablehlo.multiply %1, %y : tensor<4xf32> loc("Mul_1")
        %4 = stablehlo.add %2, %3 : tensor<4xf32> loc("Add")
        return %4 : tensor<4xf32> }"""
    )
    nodes = [nodes for _, nodes in launched(module)]
    assert nodes == [["Sin_0", "Sin_1"], ["Mul_0", "Mul_1"], ["Add"]]


def test_a_slice_that_is_a_result_names_its_node() -> None:
    module = run(
        """func.func @main(%x: tensor<4x8xf32>) -> (tensor<2x8xf32>, tensor<8x4xf32>) {
        %0 = stablehlo.exponential %x : tensor<4x8xf32> loc("Exp")
        %1 = stablehlo.slice %0 [1:3, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32> loc("Part")
        %2 = stablehlo.transpose %0, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32> loc("T")
        return %1, %2 : tensor<2x8xf32>, tensor<8x4xf32> }"""
    )
    assert ("slice_f32_2x8", ["Part"]) in launched(module)
