"""Integers of 8 and 16 bits computed in words, and reductions by halves, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import davinci
from operator_cases import Array
from pairs import all_pairs, in_turn

RANDOM = np.random.default_rng(16)
SHAPE = (3, 40)
ELEMENT = {"int8": "i8", "uint8": "ui8", "int16": "i16", "uint16": "ui16"}


def numbers(kind: str) -> Array:
    """Random numbers, and in each row the ends of the range."""
    limits = np.iinfo(kind)
    found = RANDOM.integers(limits.min, limits.max, SHAPE, dtype=kind, endpoint=True)
    found[:, 3:5] = limits.min, limits.max
    return found


def ran(text: str, *inputs: Array, machine: str = "ascend910") -> list[Array]:
    """The results of a program, none of it by the scalar unit."""
    executable = davinci.compile(text, machine=machine)
    results = list(executable.run(*inputs).values())
    assert {kernel["unit"] for kernel in executable.profile["kernels"]} <= {"vector", "cube"}
    return results


def body(name: str, element: str) -> str:
    scalar = f"tensor<{element}>"
    return f"""({{ ^bb0(%p: {scalar}, %q: {scalar}):
      %r = stablehlo.{name} %p, %q : {scalar}
      stablehlo.return %r : {scalar} }})"""


RUNNING: dict[str, tuple[np.ufunc, Callable[[Any], int]]] = {
    "add": (np.add, lambda limits: 0),
    "multiply": (np.multiply, lambda limits: 1),
    "maximum": (np.maximum, lambda limits: limits.min),
    "minimum": (np.minimum, lambda limits: limits.max),
}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("int8", "add"), ("int8", "maximum"), ("uint8", "multiply"), ("uint8", "minimum")),
        *(("int16", "multiply"), ("int16", "minimum"), ("uint16", "add"), ("uint16", "maximum")),
    ],
)
def test_running_reductions(kind: str, name: str) -> None:
    """Sums and products wrap around."""
    element, x, (rows, size) = ELEMENT[kind], numbers(kind), SHAPE
    shaped, (combine, first) = f"tensor<{rows}x{size}x{element}>", RUNNING[name]
    text = f"""func.func @main(%x: {shaped}) -> {shaped} {{
    %c = stablehlo.constant dense<{first(np.iinfo(kind))}> : tensor<{element}>
    %r = "stablehlo.reduce_window"(%x, %c) <{{
      window_dimensions = array<i64: 1, {size}>,
      padding = dense<[[0, 0], [{size - 1}, 0]]> : tensor<2x2xi64> }}>
      {body(name, element)} : ({shaped}, tensor<{element}>) -> {shaped}
    return %r : {shaped} }}"""
    (found,) = ran(text, x)
    np.testing.assert_array_equal(found, combine.accumulate(x, 1, x.dtype))


@pytest.mark.parametrize("kind", ["int8", "uint16"])
def test_windows_that_lie_in_padding_only(kind: str) -> None:
    """A dilated maximum: windows outside of the array have what it begins with."""
    element, x, (rows, size) = ELEMENT[kind], numbers(kind), SHAPE
    least = np.iinfo(kind).min
    made = f"tensor<{rows}x{size + 2}x{element}>"
    text = f"""func.func @main(%x: tensor<{rows}x{size}x{element}>) -> {made} {{
    %c = stablehlo.constant dense<{least}> : tensor<{element}>
    %0 = "stablehlo.reduce_window"(%x, %c) <{{ window_dimensions = array<i64: 1, 2>,
      window_dilations = array<i64: 1, 2>, padding = dense<[[0, 0], [4, 0]]> : tensor<2x2xi64> }}>
      {body("maximum", element)} : (tensor<{rows}x{size}x{element}>, tensor<{element}>) -> {made}
    return %0 : {made} }}"""
    wide = np.pad(x, ((0, 0), (4, 0)), constant_values=least)
    (found,) = ran(text, x)
    np.testing.assert_array_equal(found, np.maximum(wide[:, :-2], wide[:, 2:]))


def test_extremes_that_begin_with_a_number() -> None:
    """A maximum over windows that begins with 0 is that of the windows and 0."""
    x = RANDOM.normal(0, 1, (5, 19)).astype("f4")
    text = f"""func.func @main(%x: tensor<5x19xf32>) -> tensor<5x17xf32> {{
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = "stablehlo.reduce_window"(%x, %c) <{{ window_dimensions = array<i64: 1, 3> }}>
      {body("maximum", "f32")} : (tensor<5x19xf32>, tensor<f32>) -> tensor<5x17xf32>
    return %0 : tensor<5x17xf32> }}"""
    (found,) = ran(text, x)
    windows = np.lib.stride_tricks.sliding_window_view(x, 3, axis=1)
    np.testing.assert_array_equal(found, np.maximum(windows.max(2), 0))


BITS = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


@pytest.mark.parametrize(
    ("kind", "name", "dims"),
    all_pairs(["int8", "uint16", "int32", "int64"], BITS, [[1], [0, 1]]),
)
def test_reductions_of_bits(kind: str, name: str, dims: list[int]) -> None:
    """They begin with a number whose bits count, too."""
    element, x = (ELEMENT | {"int32": "i32", "int64": "i64"})[kind], numbers(kind)[:, :21]
    given = "x".join(map(str, x.shape))
    made = f"tensor<{element}>" if len(dims) > 1 else f"tensor<{len(x)}x{element}>"
    text = f"""func.func @main(%x: tensor<{given}x{element}>) -> {made} {{
    %c = stablehlo.constant dense<5> : tensor<{element}>
    %r = "stablehlo.reduce"(%x, %c) <{{ dimensions = array<i64: {str(dims)[1:-1]}> }}>
      {body(name, element)} : (tensor<{given}x{element}>, tensor<{element}>) -> {made}
    return %r : {made} }}"""
    combine = BITS[name]
    (found,) = ran(text, x)
    np.testing.assert_array_equal(found, combine(combine.reduce(x, tuple(dims)), x.dtype.type(5)))


@pytest.mark.parametrize(("kind", "machine"), in_turn(ELEMENT, ["ascend910", "ascend310p"]))
def test_bits_in_front(kind: str, machine: str) -> None:
    """Shifts to the right and set bits see the sign, or zeros, in front of a number."""
    element, x, (rows, size) = ELEMENT[kind], numbers(kind), SHAPE
    counts = RANDOM.integers(0, x.dtype.itemsize * 8, SHAPE).astype(kind)
    shaped, names = f"tensor<{rows}x{size}x{element}>", ("%0", "%1", "%2")
    text = f"""func.func @main(%x: {shaped}, %n: {shaped}) -> ({shaped}, {shaped}, {shaped}) {{
    %0 = stablehlo.shift_right_logical %x, %n : {shaped}
    %1 = stablehlo.shift_right_arithmetic %x, %n : {shaped}
    %2 = stablehlo.popcnt %x : {shaped}
    return {", ".join(names)} : {shaped}, {shaped}, {shaped} }}"""
    logical, arithmetic, ones = ran(text, x, counts, machine=machine)
    bits, signs = kind.replace("uint", "int"), kind if kind[0] == "u" else f"u{kind}"
    np.testing.assert_array_equal(logical, (x.view(signs) >> counts.view(signs)).view(kind))
    np.testing.assert_array_equal(arithmetic, (x.view(bits) >> counts.view(bits)).view(kind))
    np.testing.assert_array_equal(ones, np.bitwise_count(x.view(signs)))


@pytest.mark.parametrize("kind", ["uint16", "uint32"])
def test_divisions_without_a_sign(kind: str) -> None:
    """By 0 all bits are set, and the dividend is left."""
    element, a = {"uint16": "ui16", "uint32": "ui32"}[kind], numbers(kind)
    b = RANDOM.permutation(a.ravel()).reshape(SHAPE) >> RANDOM.integers(0, 9, SHAPE).astype(kind)
    b[0, 7] = 0
    shaped = f"tensor<{SHAPE[0]}x{SHAPE[1]}x{element}>"
    text = f"""func.func @main(%a: {shaped}, %b: {shaped}) -> ({shaped}, {shaped}) {{
    %0 = stablehlo.divide %a, %b : {shaped}
    %1 = stablehlo.remainder %a, %b : {shaped}
    return %0, %1 : {shaped}, {shaped} }}"""
    executable = davinci.compile(text)
    quotient, rest = executable.run(a, b).values()
    divisor = np.where(b == 0, 1, b)
    np.testing.assert_array_equal(quotient, np.where(b == 0, np.iinfo(kind).max, a // divisor))
    np.testing.assert_array_equal(rest, np.where(b == 0, a, a % divisor))
    if kind == "uint16":
        assert {kernel["unit"] for kernel in executable.profile["kernels"]} == {"vector"}


def test_the_place_in_a_dimension_of_one_element() -> None:
    """Its numbers are all 0, so the array of places is a number."""
    text = """func.func @main(%x: tensor<1x25xi16>) -> tensor<25xi32> {
    %places = stablehlo.iota dim = 0 : tensor<1x25xi32>
    %least = stablehlo.constant dense<-32768> : tensor<i16>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = "stablehlo.reduce"(%x, %places, %least, %zero) <{ dimensions = array<i64: 0> }>
      ({ ^bb0(%a: tensor<i16>, %i: tensor<i32>, %b: tensor<i16>, %j: tensor<i32>):
      %greater = stablehlo.compare GT, %a, %b : (tensor<i16>, tensor<i16>) -> tensor<i1>
      %same = stablehlo.compare EQ, %a, %b : (tensor<i16>, tensor<i16>) -> tensor<i1>
      %before = stablehlo.compare LT, %i, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %both = stablehlo.and %same, %before : tensor<i1>
      %first = stablehlo.or %greater, %both : tensor<i1>
      %v = stablehlo.select %greater, %a, %b : tensor<i1>, tensor<i16>
      %p = stablehlo.select %first, %i, %j : tensor<i1>, tensor<i32>
      stablehlo.return %v, %p : tensor<i16>, tensor<i32> })
      : (tensor<1x25xi16>, tensor<1x25xi32>, tensor<i16>, tensor<i32>)
      -> (tensor<25xi16>, tensor<25xi32>)
    return %0#1 : tensor<25xi32> }"""
    (found,) = ran(text, numbers("int16")[:1, :25])
    assert not found.any()


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16"])
def test_leading_zeros(kind: str) -> None:
    """Zeros that widening puts in front of a narrow integer are not counted."""
    element, x = (ELEMENT | {"int16": "i16"})[kind], numbers(kind)
    made = f"tensor<{x.shape[0]}x{x.shape[1]}x{element}>"
    text = f"""func.func @main(%x: {made}) -> {made} {{
    %0 = stablehlo.count_leading_zeros %x : {made}
    return %0 : {made} }}"""
    (found,) = ran(text, x)
    bits = 8 * x.dtype.itemsize
    wanted = [bits - (int(n) % (1 << bits)).bit_length() for n in x.ravel()]
    np.testing.assert_array_equal(found.ravel(), wanted)


def test_products_of_long_integers() -> None:
    x = np.random.default_rng(3).integers(-(1 << 62), 1 << 62, (3, 7))
    text = """func.func @main(%x: tensor<3x7xi64>) -> tensor<3xi64> {
    %c = stablehlo.constant dense<3> : tensor<i64>
    %0 = stablehlo.reduce(%x init: %c) applies stablehlo.multiply across dimensions = [1]
        : (tensor<3x7xi64>, tensor<i64>) -> tensor<3xi64>
    return %0 : tensor<3xi64> }"""
    (found,) = ran(text, x)
    np.testing.assert_array_equal(found, 3 * np.multiply.reduce(x, 1))


def test_reductions_of_several_operands() -> None:
    """Maxima, and sums of exponentials less these: a softmax in one pass."""
    x, y = (np.random.default_rng(n).normal(0, 3, (4, 9)).astype(np.float32) for n in (0, 1))
    text = """func.func @main(%x: tensor<4x9xf32>, %y: tensor<4x9xf32>)
        -> (tensor<4xf32>, tensor<4xf32>) {
    %c = stablehlo.constant dense<-1.0> : tensor<f32>
    %d = stablehlo.constant dense<0.0> : tensor<f32>
    %0:2 = stablehlo.reduce(%x init: %c), (%y init: %d) across dimensions = [1]
        : (tensor<4x9xf32>, tensor<4x9xf32>, tensor<f32>, tensor<f32>)
        -> (tensor<4xf32>, tensor<4xf32>)
      reducer(%a: tensor<f32>, %e: tensor<f32>) (%b: tensor<f32>, %f: tensor<f32>) {
        %m = stablehlo.maximum %a, %e : tensor<f32>
        %p = stablehlo.subtract %a, %m : tensor<f32>
        %q = stablehlo.subtract %e, %m : tensor<f32>
        %r = stablehlo.exponential %p : tensor<f32>
        %s = stablehlo.exponential %q : tensor<f32>
        %t = stablehlo.multiply %b, %r : tensor<f32>
        %u = stablehlo.multiply %f, %s : tensor<f32>
        %v = stablehlo.add %t, %u : tensor<f32>
        stablehlo.return %m, %v : tensor<f32>, tensor<f32>
      }
    return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32> }"""
    most, total = ran(text, x, y)
    wanted = np.maximum(x.max(1), -1)
    np.testing.assert_array_equal(most, wanted)
    np.testing.assert_allclose(
        total, (y * np.exp(x - wanted[:, None])).sum(1), rtol=1e-5, atol=1e-6
    )
