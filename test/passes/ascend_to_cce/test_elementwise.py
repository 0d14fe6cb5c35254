"""Elementwise operators against NumPy: every operator, type and awkward size."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from davinci.errors import CompileError
from kernel_support import DTYPES
from operator_support import run_operator
from pairs import all_pairs
from support import run_text

Array = npt.NDArray[Any]

SHAPES = [(1,), (15,), (16,), (17,), (31, 1), (2, 3, 5, 7, 3), (8209,)]
"""One element, around a block and a repeat, rank 5, and a prime that several portions share."""

FLOATS = [np.float16, np.float32]
erf = np.vectorize(math.erf, otypes=[np.float64])

UNARY: dict[str, tuple[Callable[[Array], Array], float, float]] = {
    "neg": (np.negative, -9, 9),
    "abs": (np.abs, -9, 9),
    "sign": (np.sign, -9, 9),
    "relu": (lambda x: np.maximum(x, 0), -9, 9),
    "exp": (np.exp, -9, 9),
    "log": (np.log, 0.01, 100),
    "sqrt": (np.sqrt, 0, 100),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0.01, 100),
    "tanh": (np.tanh, -12, 12),
    "erf": (erf, -5, 5),
    "logistic": (lambda x: 1 / (1 + np.exp(-x)), -30, 30),
    "floor": (np.floor, -1000, 1000),
    "ceil": (np.ceil, -1000, 1000),
    "round": (np.rint, -1000, 1000),
}
"""Operator: reference in float64, range of the operand."""

BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}

COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def values(shape: tuple[int, ...], dtype: Any, low: float, high: float, seed: int = 0) -> Array:
    """Random values; the first is exactly `low`."""
    array = np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)
    array.flat[0] = low
    return array


def integers(shape: tuple[int, ...], dtype: Any, low: int, high: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def assert_close(found: Array, expected: Array, dtype: Any, rtol: float = 4e-6) -> None:
    """f32 within a few units in the last place of chained operations; f16 within its rounding."""
    tolerance = rtol if dtype == np.float32 else 2e-3
    np.testing.assert_allclose(
        found.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=1e-7
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_unary_shapes(shape: tuple[int, ...], dtype: Any) -> None:
    x = values(shape, dtype, -3, 3)
    found = run_operator("tanh", [x], shape, dtype).outputs[0]
    assert_close(found, np.tanh(x.astype(np.float64)), dtype)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", FLOATS)
def test_unary_operators(name: str, dtype: Any) -> None:
    reference, low, high = UNARY[name]
    x = values((517,), dtype, low, high)
    found = run_operator(name, [x], x.shape, dtype).outputs[0]
    with np.errstate(divide="ignore"):
        assert_close(found, reference(x.astype(np.float64)), dtype)


@pytest.mark.parametrize("name", ["tanh", "erf"])
def test_relative_accuracy_near_zero(name: str) -> None:
    x = np.concatenate([np.geomspace(1e-30, 5, 2000), -np.geomspace(1e-30, 5, 2000)])
    x = x.astype(np.float32)
    found = run_operator(name, [x], x.shape, np.float32).outputs[0]
    expected = UNARY[name][0](x.astype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["tanh", "erf", "logistic", "floor", "round"])
def test_extremes(name: str) -> None:
    x = np.array([-np.inf, -1e38, -1e9, -100.0, 100.0, 1e9, 1e38, np.inf], np.float32)
    found = run_operator(name, [x], x.shape, np.float32).outputs[0]
    with np.errstate(over="ignore"):
        expected = UNARY[name][0](x.astype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-37)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [*FLOATS, np.int32])
def test_binary_shapes(shape: tuple[int, ...], dtype: Any) -> None:
    a, b = values(shape, dtype, -100, 100), values(shape, dtype, -100, 100, seed=1)
    found = run_operator("add", [a, b], shape, dtype).outputs[0]
    np.testing.assert_array_equal(found, a + b)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", [*FLOATS, np.int32])
def test_binary_operators(name: str, dtype: Any) -> None:
    a, b = values((301,), dtype, -100, 100), values((301,), dtype, -100, 100, seed=1)
    found = run_operator(name, [a, b], a.shape, dtype).outputs[0]
    np.testing.assert_array_equal(found, BINARY[name](a, b))


def test_larger_than_ub() -> None:
    a, b = values((200_003,), np.float32, -9, 9), values((200_003,), np.float32, -9, 9, seed=1)
    run = run_operator("mul", [a, b], a.shape, np.float32, cores=1)
    np.testing.assert_array_equal(run.outputs[0], a * b)
    assert run.profile.blocks == 1


def test_large_arrays_occupy_all_cores() -> None:
    x = values((100_000,), np.float32, -9, 9)
    run = run_operator("abs", [x], x.shape, np.float32, core_choice="all")
    assert run.profile.blocks >= 24
    np.testing.assert_array_equal(run.outputs[0], np.abs(x))


@pytest.mark.parametrize("value", [8.0, 3.0])
def test_division(value: float) -> None:
    x = values((77,), np.float32, 1, 9)
    divisor = np.full_like(x, value)
    quotient = run_operator("div", [x, divisor], x.shape, np.float32).outputs[0]
    folded = run_operator("div", [x, divisor], x.shape, np.float32, full={1: f"{value} : f32"})
    np.testing.assert_array_equal(quotient, x / divisor)
    np.testing.assert_array_equal(folded.outputs[0], x / divisor)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "max"])
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_full_operands(name: str, side: int, dtype: Any) -> None:
    x = values((1000,), dtype, -9, 9)
    operands = [x, x]
    operands[side] = np.full_like(x, 3)
    text = "3.0 : f32" if dtype == np.float32 else "3 : i32"
    found = run_operator(name, operands, x.shape, dtype, full={side: text}).outputs[0]
    np.testing.assert_array_equal(found, BINARY[name](*operands))


@pytest.mark.parametrize("exponent", [2.0, 3.0, -1.0, 0.5, -0.5, 7.0, 1.7])
def test_constant_powers(exponent: float) -> None:
    x = values((100,), np.float32, 0.1, 9)
    operands = [x, np.full_like(x, exponent)]
    full = {1: f"{exponent} : f32"}
    found = run_operator("pow", operands, x.shape, np.float32, full=full).outputs[0]
    assert_close(found, x.astype(np.float64) ** exponent, np.float32)


def test_powers() -> None:
    a, b = values((100,), np.float32, 0, 9), values((100,), np.float32, 0.5, 3, seed=1)
    found = run_operator("pow", [a, b], a.shape, np.float32).outputs[0]
    assert_close(found, a.astype(np.float64) ** b, np.float32)


@pytest.mark.parametrize(
    ("predicate", "dtype", "shape"),
    all_pairs(COMPARISONS, [*FLOATS, np.int32], [(5,), (3, 41), (5003,)]),
)
def test_compare(predicate: str, dtype: Any, shape: tuple[int, ...]) -> None:
    a, b = integers(shape, dtype, -2, 3), integers(shape, dtype, -2, 3, seed=1)
    attributes = f'predicate = "{predicate}"'
    found = run_operator("compare", [a, b], shape, np.bool_, attributes).outputs[0]
    np.testing.assert_array_equal(found, COMPARISONS[predicate](a, b).astype(np.int8))


@pytest.mark.parametrize("predicate", COMPARISONS)
def test_compare_large_integers_exactly(predicate: str) -> None:
    low, high = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    edges = np.array([low, low + 1, -(1 << 24) - 1, -1, 0, 1, 1 << 24, (1 << 24) + 1, high])
    a, b = (x.astype(np.int32).ravel() for x in np.meshgrid(edges, edges))
    attributes = f'predicate = "{predicate}"'
    found = run_operator("compare", [a, b], a.shape, np.bool_, attributes).outputs[0]
    np.testing.assert_array_equal(found, COMPARISONS[predicate](a, b).astype(np.int8))


@pytest.mark.parametrize("dtype", [*FLOATS, np.int32, np.int8])
@pytest.mark.parametrize("shape", [(5,), (3, 41), (5003,)])
def test_select(dtype: Any, shape: tuple[int, ...]) -> None:
    flag = integers(shape, np.int8, 0, 2).astype(np.bool_)
    a, b = integers(shape, dtype, -99, 99, seed=1), integers(shape, dtype, -99, 99, seed=2)
    found = run_operator("select", [flag, a, b], shape, dtype).outputs[0]
    np.testing.assert_array_equal(found, np.where(flag, a, b))


def test_select_a_constant() -> None:
    flag, x = integers((300,), np.int8, 0, 2).astype(np.bool_), values((300,), np.float32, -9, 9)
    low = np.full_like(x, -3.4e38)
    full = {1: "-3.4e38 : f32"}
    found = run_operator("select", [flag, low, x], x.shape, np.float32, full=full).outputs[0]
    np.testing.assert_array_equal(found, np.where(flag, low, x))


@pytest.mark.parametrize("value", ["false", "true"])
def test_select_by_a_constant(value: str) -> None:
    a, b = values((50,), np.float32, -9, 9), values((50,), np.float32, -9, 9, 1)
    condition = np.zeros(50, np.bool_)
    found = run_operator("select", [condition, a, b], (50,), np.float32, full={0: value})
    np.testing.assert_array_equal(found.outputs[0], a if value == "true" else b)


@pytest.mark.parametrize(
    ("dtype", "constants"),
    [
        (np.float32, ["0.0 : f32", "-2.5 : f32"]),
        (np.float16, ["0.0 : f16", "-2.5 : f16"]),
        (np.int32, ["3 : i32", "-7 : i32"]),
        (np.int8, ["3 : i8", "-7 : i8"]),
    ],
)
def test_select_of_two_constants(dtype: Any, constants: list[str]) -> None:
    condition = integers((50,), np.int8, 0, 2).astype(np.bool_)
    a, b = (np.full(50, float(text.split()[0]), dtype) for text in constants)
    full = dict(enumerate(constants, 1))
    found = run_operator("select", [condition, a, b], (50,), dtype, full=full)
    np.testing.assert_array_equal(found.outputs[0], np.where(condition, a, b))


def test_clamp_of_constants() -> None:
    high = values((50,), np.float32, -9, 9)
    full = {0: "-1.0 : f32", 1: "2.0 : f32"}
    found = run_operator("clamp", [high, high, high], (50,), np.float32, full=full)
    np.testing.assert_array_equal(found.outputs[0], np.minimum(high, 2))


@pytest.mark.parametrize("dtype", [*FLOATS, np.int32])
def test_clamp(dtype: Any) -> None:
    x = values((333,), dtype, -9, 9)
    low, high = np.full_like(x, -2), np.full_like(x, 5)
    found = run_operator("clamp", [low, x, high], x.shape, dtype).outputs[0]
    np.testing.assert_array_equal(found, np.clip(x, -2, 5))


@pytest.mark.parametrize("source", [np.float16, np.float32, np.int32, np.int8])
@pytest.mark.parametrize("result", [np.float16, np.float32, np.int32, np.int8])
@pytest.mark.parametrize("shape", [(7,), (3, 41), (4111,)])
def test_cast(source: Any, result: Any, shape: tuple[int, ...]) -> None:
    x = values(shape, source, -100, 100)
    found = run_operator("cast", [x], shape, result).outputs[0]
    np.testing.assert_array_equal(found, x.astype(result))


@pytest.mark.parametrize("source", [np.float16, np.float32, np.int32, np.int8])
def test_cast_to_boolean(source: Any) -> None:
    x = integers((100,), source, -1, 2) if source != np.int8 else integers((100,), source, 0, 2)
    found = run_operator("cast", [x], x.shape, np.bool_).outputs[0]
    np.testing.assert_array_equal(found, (x != 0).astype(np.int8))


@pytest.mark.parametrize("name", ["and", "or", "xor"])
@pytest.mark.parametrize("dtype", [np.bool_, np.int16])
def test_bitwise(name: str, dtype: Any) -> None:
    high = 2 if dtype == np.bool_ else 1000
    a, b = integers((100,), dtype, 0, high), integers((100,), dtype, 0, high, seed=1)
    reference = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[name]
    found = run_operator(name, [a, b], a.shape, dtype).outputs[0]
    np.testing.assert_array_equal(found, reference(a, b))


@pytest.mark.parametrize("dtype", [np.int16, np.int32])
def test_complement(dtype: Any) -> None:
    x = integers((100,), dtype, -1000, 1000)
    found = run_operator("not", [x], x.shape, dtype).outputs[0]
    np.testing.assert_array_equal(found, ~x)


def test_not_of_booleans() -> None:
    x = integers((100,), np.int8, 0, 2)
    found = run_operator("not", [x.astype(np.bool_)], x.shape, np.bool_).outputs[0]
    np.testing.assert_array_equal(found, 1 - x)


@pytest.mark.parametrize("name", ["neg", "abs", "sign", "relu"])
def test_integer_unary(name: str) -> None:
    x = integers((100,), np.int32, -1000, 1000)
    found = run_operator(name, [x], x.shape, np.int32).outputs[0]
    np.testing.assert_array_equal(found, UNARY[name][0](x))


def test_types_without_instructions_are_refused() -> None:
    x = integers((4,), np.int16, 1, 9)
    with pytest.raises(CompileError, match="no vector instructions for its element type"):
        run_operator("div", [x, x], x.shape, np.int16)


@pytest.mark.parametrize("kind", ["i8", "i32", "f16", "f32"])
@pytest.mark.parametrize("condition", ["true", "false"])
def test_select_between_a_constant_and_an_array_by_a_constant(kind: str, condition: str) -> None:
    number, array = f"{-3 if kind[0] == 'i' else -3.0} : {kind}", f"tensor<40x{kind}>"
    text = f"""func.func @main(%x: {array}) -> {array} {{
      %c = "ascend.full"() {{value = {condition}}} : () -> tensor<40xi1>
      %a = "ascend.full"() {{value = {number}}} : () -> {array}
      %0 = "ascend.select"(%c, %a, %x) : (tensor<40xi1>, {array}, {array}) -> {array}
      return %0 : {array}
    }}"""
    x = np.arange(40).astype(DTYPES[kind])
    (found,) = run_text(text, x)
    np.testing.assert_array_equal(found, np.full_like(x, -3) if condition == "true" else x)
