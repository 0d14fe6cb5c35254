"""What the simplifying passes leave computes what it did before: to the last bit, or within the
bounds that the catalogue states. Values are those of the operators' records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

import davinci
from ascend_values import build, values
from davinci.operators import Tensor
from davinci.passes.ascend.ascend_scale_weights import AscendScaleWeightsPass
from davinci.passes.ascend.ascend_simplify_arithmetic import AscendSimplifyArithmeticPass
from davinci.passes.ascend.ascend_simplify_moves import AscendSimplifyMovesPass
from davinci.passes.ascend.tensor_ops import TensorOps
from onnx_support import model_of

SHAPE = (6, 8)
NUMBERS = np.array([0.0, -0.0, 1.0, -1.0, 1e-30, -3e4, 3.0, 0.1], np.float32)
EPSILON = float(np.finfo(np.float32).eps)


def simplified(body: Any, precision: str = "mixed") -> tuple[list[Any], list[Any], set[str]]:
    """Values of a function of one array of f32 before and after the passes, and what is left."""
    module = build([SHAPE], body)
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    x[0] = NUMBERS
    with np.errstate(all="ignore"):
        before = values(module, [x])
        with module.context:
            AscendSimplifyArithmeticPass(precision=precision).run(module.operation)
            AscendSimplifyMovesPass().run(module.operation)
            AscendScaleWeightsPass(precision=precision).run(module.operation)
        after = values(module, [x])
    block = module.body.operations[0].regions[0].blocks[0]
    return before, after, {op.operation.name.removeprefix("ascend.") for op in block.operations}


def row(ops: TensorOps, *numbers: float) -> Any:
    made = ops.array(np.resize(np.float32(numbers), 8), Tensor((8,), "f32"))
    return ops.broadcast(made, SHAPE, [1])


def full(ops: TensorOps, number: float) -> Any:
    return ops.full(SHAPE, "f32", number)


def identities(ops: TensorOps, inputs: list[Any]) -> list[Any]:
    x = ops.unary("relu", ops.binary("mul", inputs[0], full(ops, 1.0)))
    x = ops.unary("relu", ops.unary("neg", ops.unary("neg", x)))
    limited = ops.binary("min", ops.binary("min", x, full(ops, 2.0)), full(ops, 1.0))
    return [ops.binary("add", ops.unary("neg", x), inputs[0]), limited]


def moves(ops: TensorOps, inputs: list[Any]) -> list[Any]:
    x = ops.transpose(ops.unary("abs", ops.transpose(inputs[0], [1, 0])), [1, 0])
    parts = [ops.cut(x, [0, i], [6, i + 4]) for i in (0, 4)]
    narrow = ops.cut(ops.cut(x, [1, 0], [6, 8], [2, 1]), [1, 2], [3, 7], [1, 2])
    both = ops.binary("mul", ops.binary("add", x, inputs[0]), ops.binary("add", inputs[0], x))
    return [ops.concat(parts, 1), narrow, both]


@pytest.mark.parametrize(
    ("body", "left"),
    [
        (identities, {"relu", "sub", "min", "full", "func.return"}),
        (moves, {"abs", "slice", "add", "mul", "func.return"}),
    ],
)
@pytest.mark.parametrize("precision", ["mixed", "fp32"])
def test_exact_rewrites_change_no_bit(body: Any, left: set[str], precision: str) -> None:
    before, after, names = simplified(body, precision)
    assert names <= left
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a, b)


def affine(ops: TensorOps, inputs: list[Any]) -> list[Any]:
    x = ops.binary("sub", inputs[0], row(ops, 0.5, -1.0, 2.0))
    x = ops.binary("mul", ops.binary("div", x, row(ops, 3.0, 0.7)), row(ops, 1.1, 0.9))
    return [ops.binary("add", x, full(ops, 0.3))]


def test_sums_and_products_with_numbers_are_one_of_each() -> None:
    before, after, names = simplified(affine)
    assert len(names & {"add", "sub"}) == 1 and {"mul"} == names & {"mul", "div"}
    largest = np.abs(before[0]) + 3.0  # |x a| + |b|, |b| below 3
    assert (np.abs(before[0] - after[0]) <= 4 * EPSILON * largest).all()
    assert simplified(affine, "fp32")[2] == {
        "sub",
        "div",
        "mul",
        "add",
        "constant",
        "full",
        "func.return",
    }


def quotients(ops: TensorOps, inputs: list[Any]) -> list[Any]:
    positive = ops.binary("add", ops.unary("abs", inputs[0]), full(ops, 0.1))
    root = ops.binary("div", inputs[0], ops.unary("sqrt", positive))
    return [ops.binary("div", inputs[0], row(ops, 3.0, 7.0)), root]


def test_quotients_are_products_within_two_units_in_the_last_place() -> None:
    before, after, names = simplified(quotients)
    assert {"div", "sqrt"}.isdisjoint(names)
    for a, b in zip(before, after, strict=True):
        np.testing.assert_allclose(b, a, rtol=2 * EPSILON, atol=0)


def powers(ops: TensorOps, inputs: list[Any]) -> list[Any]:
    size = ops.unary("abs", inputs[0])
    made = [ops.binary("pow", size, full(ops, p)) for p in (0.25, 0.75, 1.5, 2.5, -0.5)]
    return [*made, ops.binary("pow", full(ops, 2.0), ops.unary("tanh", inputs[0]))]


def test_powers_are_products_and_roots() -> None:
    before, after, names = simplified(powers)
    assert "pow" not in names
    for a, b in zip(before, after, strict=True):
        np.testing.assert_allclose(b, a, rtol=8 * EPSILON, atol=0)


def sums_around(ops: TensorOps, inputs: list[Any]) -> list[Any]:
    """x / (1 + c (x^2 + the x^2 before))^0.75, as local response normalization is written."""
    x = inputs[0]
    square, shape = ops.binary("mul", x, x), Tensor(SHAPE, "f32")
    zero = ops.full((), "f32", 0.0)
    steps = {"low": [1, 0], "high": [-1, 0], "interior": [0, 0]}
    before = ops.emit("pad", [square, zero], shape, **steps)
    share = ops.binary("mul", full(ops, 0.1), ops.binary("add", square, before))
    return [ops.binary("pow", ops.binary("add", full(ops, 1.0), share), full(ops, 0.75))]


def test_powers_of_sums_of_shifted_squares_are_roots() -> None:
    (before,), (after,), names = simplified(sums_around)
    assert "pow" not in names
    np.testing.assert_allclose(after, before, rtol=8 * EPSILON, atol=0)


def gates(ops: TensorOps, inputs: list[Any]) -> list[Any]:
    """x (1 + tanh(y)) / 2 with the half at three places, and a sum that is needed for itself."""
    x, one, half = inputs[0], full(ops, 1.0), full(ops, 0.5)
    y = ops.binary("mul", x, full(ops, 0.8))
    sums = [ops.binary("add", ops.unary("tanh", y), one) for _ in range(4)]
    first = ops.binary("mul", ops.binary("mul", x, half), sums[0])
    second = ops.binary("mul", ops.binary("mul", x, sums[1]), half)
    third = ops.binary("mul", x, ops.binary("mul", half, sums[2]))
    return [first, second, third, sums[3]]


def test_a_gate_by_tanh_is_one_by_a_logistic_function() -> None:
    before, after, names = simplified(gates)
    assert names <= {"mul", "logistic", "full", "func.return"}
    for a, b in zip(before, after, strict=True):
        np.testing.assert_allclose(b, a, rtol=4 * EPSILON, atol=3e4 * EPSILON)
    assert "logistic" not in simplified(gates, "fp32")[2]


def test_scales_that_cancel_leave_the_product_alone() -> None:
    def body(ops: TensorOps, inputs: list[Any]) -> list[Any]:
        x, y = inputs[0], ops.unary("abs", inputs[0])
        return [ops.binary("mul", *(ops.binary("mul", a, full(ops, n)) for a, n in pairs(x, y)))]

    def pairs(x: Any, y: Any) -> list[tuple[Any, float]]:
        return [(x, 4.0), (y, 0.25)]

    before, after, names = simplified(body)
    assert names == {"mul", "abs", "full", "func.return"} - {"full"}
    np.testing.assert_array_equal(before[0], after[0])


def layers(ops: TensorOps, inputs: list[Any]) -> list[Any]:
    rng = np.random.default_rng(1)
    v, w = (rng.standard_normal((8, 8)).astype(np.float32) for _ in range(2))
    x = inputs[0]
    for array in (v, w):
        weights = ops.array(array, Tensor((8, 8), "f32"))
        x = ops.emit("matmul", [x, weights], Tensor(SHAPE, "f32"))
        x = ops.binary("add", x, row(ops, 0.5, -0.2))
    return [ops.binary("mul", x, row(ops, 1.5, 0.3, 0.0))]


def test_layers_and_scales_are_one_product_and_one_sum() -> None:
    before, after, names = simplified(layers)
    assert names <= {"matmul", "add", "constant", "broadcast", "func.return"}
    np.testing.assert_allclose(after[0], before[0], rtol=1e-4, atol=1e-4 * 3e4)
    assert "mul" in simplified(layers, "fp32")[2]


def test_quantized_values_keep_their_bytes() -> None:
    """A quotient by a step that is rounded next is no product: ties would go another way."""
    x = (np.arange(-700, 700, dtype=np.float32) + 0.5)[None] * np.float32(0.1)
    model = model_of(
        [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])],
        {"x": x},
        constants={"s": np.float32(0.1), "z": np.int8(0)},
        kind=np.int8,
    )
    both = [davinci.compile(model, rewrites=names).run({"x": x})["y"] for names in ("all", "none")]
    np.testing.assert_array_equal(*both)
