"""What operators make of the zeros that pad fractals, where others make zeros of it again; what is
limited behind convolutions on cores of two kinds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import helper

import davinci
from davinci.mlir import Op, ir, make_context
from davinci.passes.ascend.fractal_padding import cleared_behind
from davinci.reference import check
from onnx_support import Arrays, model_of

NZ = 'tensor<17x24xf32, #ascend.layout<"nz">>'

BODIES = {
    "silu": ("logistic %x", "mul %x, %0"),
    "hard swish": ("add %x, %three", "relu %0", "min %1, %six", "mul %x, %2"),
    "a sum is none": ("logistic %x", "add %x, %0"),
    "no number": ("log %x", "mul %x, %0"),
    "too close": ("logistic %x", "sub %0, %half", "mul %1, %x", "add %1, %2"),
    "a difference": ("logistic %x", "sub %0, %half", "reduce %1"),
    "who reads it": ("logistic %x", "mul %x, %0", "reduce %0"),
    "rows": ("broadcast %row", "add %x, %0", "mul %1, %x"),
}
"""Operators, by number."""

CLEARED = {"silu": {0}, "hard swish": {0, 1, 2}, "rows": {1}}


def block_of(lines: tuple[str, ...]) -> str:
    """A function of these operators on fractals whose last rows and columns are padding."""
    text = [f"func.func @main(%x: {NZ}, %row: tensor<24xf32>) {{"]
    for name, number in {"three": 3.0, "six": 6.0, "half": 0.5}.items():
        text.append(f'  %{name} = "ascend.full"() {{value = {number} : f32}} : () -> {NZ}')
    for number, line in enumerate(lines):
        name, operands = line.split(" ", 1)
        given, result, keys = ", ".join([NZ] * len(operands.split(","))), NZ, ""
        if name == "reduce":
            result, keys = "tensor<17xf32>", ' {kind = "add", dims = array<i64: 1>}'
        if name == "broadcast":
            given, keys = "tensor<24xf32>", " {dims = array<i64: 1>}"
        text.append(f'  %{number} = "ascend.{name}"({operands}){keys} : ({given}) -> {result}')
    return "\n".join([*text, "  return", "}"])


@pytest.mark.parametrize("name", BODIES)
def test_what_is_cleared(name: str) -> None:
    lines = BODIES[name]
    with make_context():
        module = ir.Module.parse(block_of(lines))
        (function,) = module.body.operations
        block = function.regions[0].blocks[0]
        ops: list[Op] = [
            op.operation for op in block.operations if op.operation.name != "ascend.full"
        ]
        found = {ops.index(op) for op in cleared_behind(block)}
    assert found == CLEARED.get(name, set())


def images(activation: str, size: int) -> tuple[onnx.ModelProto, Arrays]:
    """Two convolutions with an activation between, as exporters write it."""
    random = np.random.default_rng(size)

    def array(*shape: int) -> npt.NDArray[Any]:
        return random.standard_normal(shape).astype(np.float32)

    weights = {"w": array(24, 16, 3, 3) / 12, "v": array(8, 24, 1, 1) / 5, "bias": array(24)}
    nodes = [helper.make_node("Conv", ["x", "w", "bias"], ["c"], pads=[1] * 4)]
    if activation == "silu":
        nodes.append(helper.make_node("Sigmoid", ["c"], ["s"]))
    else:
        nodes.append(helper.make_node("HardSigmoid", ["c"], ["s"], alpha=1 / 6, beta=0.5))
    nodes.append(helper.make_node("Mul", ["c", "s"], ["a"]))
    nodes.append(helper.make_node("Conv", ["a", "v"], ["y"]))
    given = {"x": array(1, 16, size, size)}
    return model_of(nodes, given, ("y",), weights), given


@pytest.mark.parametrize("activation", ["silu", "hard swish"])
@pytest.mark.parametrize("size", [1, 7, 16])
def test_activations_stay_in_fractals(activation: str, size: int) -> None:
    """On cores of two kinds an activation is one kernel, however many windows there are."""
    model, given = images(activation, size)
    executable = davinci.compile(model, machine="ascend910b")
    executable.poison = True
    errors = check.compare(executable.run(given), check.reference_onnx(model, given))
    check.require(errors, "mixed")
    names = [kernel["name"] for kernel in executable.profile["kernels"]]
    step = "logistic" if activation == "silu" else "relu"
    (kernel,) = [name for name in names if step in name]
    assert "mul" in kernel and not any("defractalize" in name and "x24" in name for name in names)


@pytest.mark.parametrize(
    ("bound", "rounded"), [(6.0, True), (6.1, False)], ids=["rounds to itself", "does not"]
)
def test_rounds_before_limits(bound: float, rounded: bool) -> None:
    """f32 products that are limited by a number of f16, and rounded next, leave the cube as f16."""
    random = np.random.default_rng(3)
    weights = random.standard_normal((40, 16, 1, 1)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Clip", ["c", "low", "high"], ["a"]),
        helper.make_node("Conv", ["a", "v"], ["y"]),
    ]
    limits = {"low": np.float32(0), "high": np.float32(bound)}
    constants = {"w": weights, "v": weights.reshape(16, 40, 1, 1), **limits}
    given = {"x": 3 * random.standard_normal((1, 16, 5, 5)).astype(np.float32)}
    model = model_of(nodes, given, ("y",), constants)
    executable = davinci.compile(model, machine="ascend910b")
    check.require(check.compare(executable.run(given), check.reference_onnx(model, given)), "mixed")
    names = [kernel["name"] for kernel in executable.profile["kernels"]]
    assert any("relu_f16" in name for name in names) is rounded, names
