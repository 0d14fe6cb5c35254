"""Integers of all widths, with and without signs: kernels against NumPy, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import davinci
from operator_cases import Array
from pairs import in_turn
from support import run_text

RANDOM = np.random.default_rng(28)
MACHINES = ("ascend910", "ascend310", "ascend310p")


def edges(kind: str) -> Array:
    """Ends of the range, numbers around them and around 0, and random ones of all sizes."""
    limits = np.iinfo(kind)
    near = [limits.min, limits.min + 1, limits.max - 1, limits.max, 0, 1, 2, 3, 7, limits.max // 2]
    wide = RANDOM.integers(limits.min, limits.max, 86, dtype=kind, endpoint=True)
    some = wide >> RANDOM.integers(0, limits.bits - 1, wide.size).astype(kind)
    return np.array([*near, *some], kind)


def pairs(kind: str) -> tuple[Array, Array]:
    a = edges(kind)
    return np.repeat(a, 10), np.tile(a[:10], len(a))


ELEMENT = {"uint32": "ui32", "uint64": "ui64", "int32": "i32", "int64": "i64"}
NARROW = {"int8": "i8", "uint8": "ui8", "int16": "i16", "uint16": "ui16"}

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "xor": np.bitwise_xor,
}


@pytest.mark.parametrize(
    ("kind", "machine"),
    [*in_turn(ELEMENT | NARROW, MACHINES), ("uint64", "ascend310"), ("int64", "ascend310p")],
)
def test_binary_operations(kind: str, machine: str) -> None:
    """All in one program, on the vector unit alone."""
    element, (a, b) = (ELEMENT | NARROW)[kind], pairs(kind)
    shaped = f"tensor<{a.size}x{element}>"
    names = [f"%{name}" for name in OPERATIONS]
    lines = [f"%{name} = stablehlo.{name} %a, %b : {shaped}" for name in OPERATIONS]
    results = ", ".join([shaped] * len(names))
    text = (
        f"func.func @main(%a: {shaped}, %b: {shaped}) -> ({results}) {{\n"
        + "\n".join(lines)
        + f"\nreturn {', '.join(names)} : {results}\n}}"
    )
    executable = davinci.compile(text, machine=machine)
    found = executable.run(a, b).values()
    with np.errstate(over="ignore"):
        for name, array in zip(OPERATIONS, found, strict=True):
            np.testing.assert_array_equal(array, OPERATIONS[name](a, b), name)
    assert {kernel["unit"] for kernel in executable.profile["kernels"]} == {"vector"}


def truncated(a: int, b: int) -> int:
    """The quotient of Python's integers, towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def divided(a: Array, b: Array, element: str, machine: str) -> list[Array]:
    """Quotients and remainders of two rows of integers, as the simulated machine computes them."""
    shaped = f"tensor<{a.size}x{element}>"
    text = f"""func.func @main(%a: {shaped}, %b: {shaped}) -> ({shaped}, {shaped}) {{
      %0 = stablehlo.divide %a, %b : {shaped}
      %1 = stablehlo.remainder %a, %b : {shaped}
      return %0, %1 : {shaped}, {shaped} }}"""
    return run_text(text, a, b, machine=machine)


@pytest.mark.parametrize("machine", MACHINES)
def test_division_truncates(machine: str) -> None:
    """By 0 it gives -1 and leaves the dividend; the lowest number by -1 is itself."""
    a, b = pairs("int32")
    quotient, rest = divided(a, b, "i32", machine)
    x, y = a.astype(object), b.astype(object)
    wanted = [truncated(i, j) if j else -1 for i, j in zip(x, y, strict=True)]
    np.testing.assert_array_equal(quotient, np.array(wanted).astype(np.int64).astype(np.int32))
    left = [i - q * j if j else i for i, j, q in zip(x, y, wanted, strict=True)]
    np.testing.assert_array_equal(rest, np.array(left, np.int32))


@pytest.mark.parametrize("machine", MACHINES)
def test_division_of_64_bits_without_a_sign(machine: str) -> None:
    """By 0 it gives all bits and leaves the dividend."""
    a, b = pairs("uint64")
    quotient, rest = divided(a, b, "ui64", machine)
    x, y = a.astype(object), b.astype(object)
    wanted = [divmod(i, j) if j else (2**64 - 1, i) for i, j in zip(x, y, strict=True)]
    np.testing.assert_array_equal(np.stack([quotient, rest], 1), np.array(wanted, np.uint64))


@pytest.mark.parametrize("number", (1, -1, 3, -7, 2**31 - 1, -(2**31)))
def test_division_by_a_number(number: int) -> None:
    a = edges("int32")
    shaped = f"tensor<{a.size}xi32>"
    text = f"""func.func @main(%a: {shaped}) -> ({shaped}, {shaped}) {{
      %b = stablehlo.constant dense<{number}> : {shaped}
      %0 = stablehlo.divide %a, %b : {shaped}
      %1 = stablehlo.remainder %b, %a : {shaped}
      return %0, %1 : {shaped}, {shaped} }}"""
    quotient, rest = run_text(text, a)
    wanted = np.trunc(a.astype(np.longdouble) / number).astype(np.int64).astype(np.int32)
    np.testing.assert_array_equal(quotient, wanted)
    divisor = np.where(a == 0, 1, a).astype(np.int64)
    np.testing.assert_array_equal(rest, np.where(a == 0, number, np.fmod(number, divisor)))


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        *(("int64", (3, 1)), ("int64", (7, 33)), ("int64", (2, 257))),
        *(("uint32", (5, 16)), ("uint32", (2, 257)), ("bool", (3, 1)), ("bool", (7, 33))),
    ],
)
def test_reductions(kind: str, shape: tuple[int, int]) -> None:
    """Sums wrap around; of booleans the or and the and."""
    if kind == "bool":
        x = RANDOM.random(shape) < 0.5
        cases = (("or", "false", np.any(x, 1)), ("and", "true", np.all(x, 1)))
    else:
        limits = np.iinfo(kind)
        x = RANDOM.integers(limits.min, limits.max, shape, dtype=kind)
        cases = (
            ("add", "0", np.sum(x, 1, dtype=kind)),
            ("maximum", f"{limits.min}", np.max(x, 1)),
            ("minimum", f"{limits.max}", np.min(x, 1)),
        )
    element = {"bool": "i1", **ELEMENT}[kind]
    given = f"tensor<{shape[0]}x{shape[1]}x{element}>"
    for name, start, wanted in cases:
        text = f"""func.func @main(%x: {given}) -> tensor<{shape[0]}x{element}> {{
          %c = stablehlo.constant dense<{start}> : tensor<{element}>
          %r = stablehlo.reduce(%x init: %c) applies stablehlo.{name} across dimensions = [1]
            : ({given}, tensor<{element}>) -> tensor<{shape[0]}x{element}>
          return %r : tensor<{shape[0]}x{element}> }}"""
        executable = davinci.compile(text)
        (found,) = executable.run(x).values()
        np.testing.assert_array_equal(found, wanted, name)
        assert {kernel["unit"] for kernel in executable.profile["kernels"]} == {"vector"}


@pytest.mark.parametrize("target", ("f32", "f16", "i64", "ui64", "i1"))
def test_conversions_of_unsigned_integers(target: str) -> None:
    x = edges("uint32")
    text = f"""func.func @main(%x: tensor<{x.size}xui32>) -> tensor<{x.size}x{target}> {{
      %0 = stablehlo.convert %x : (tensor<{x.size}xui32>) -> tensor<{x.size}x{target}>
      return %0 : tensor<{x.size}x{target}> }}"""
    (found,) = run_text(text, x)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, x.astype(found.dtype))


@pytest.mark.parametrize(
    ("target", "machine"),
    [("f32", "ascend910"), ("f16", "ascend910"), ("f32", "ascend910b"), ("f32", "ascend310")],
)
def test_unsigned_integers_of_64_bits_are_rounded_once(target: str, machine: str) -> None:
    """Integers of all sizes, and those next to the middle between two neighbouring f32, become the
    f32 or f16 that is nearest."""
    random = np.random.default_rng(28)
    numbers = random.integers(0, (1 << 64) - 1, 600, np.uint64, endpoint=True)
    between = [(1 << b) + (1 << b - 24) + d for b in (25, 47, 48, 49, 63) for d in (-1, 0, 1)]
    parts = [edges("uint64"), numbers >> np.arange(600, dtype=np.uint64) % 64, between]
    x = np.concatenate([np.asarray(part, np.uint64) for part in parts])
    text = f"""func.func @main(%x: tensor<{x.size}xui64>) -> tensor<{x.size}x{target}> {{
      %0 = stablehlo.convert %x : (tensor<{x.size}xui64>) -> tensor<{x.size}x{target}>
      return %0 : tensor<{x.size}x{target}> }}"""
    executable = davinci.compile(text, machine=machine)
    (found,) = executable.run(x).values()
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, x.astype(found.dtype))
    assert {kernel["unit"] for kernel in executable.profile["kernels"]} == {"vector"}


def test_unsigned_integers_in_bodies_and_as_indices() -> None:
    """A sort, whose body compares; and a slice at an index beyond the largest signed one."""
    results = "tensor<9xui32>, tensor<3xui32>"
    text = f"""func.func @main(%x: tensor<9xui32>, %at: tensor<ui32>) -> ({results}) {{
      %0 = "stablehlo.sort"(%x) ({{
      ^bb0(%a: tensor<ui32>, %b: tensor<ui32>):
        %less = stablehlo.compare LT, %a, %b : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
        stablehlo.return %less : tensor<i1>
      }}) {{dimension = 0 : i64}} : (tensor<9xui32>) -> tensor<9xui32>
      %1 = stablehlo.dynamic_slice %x, %at, sizes = [3]
        : (tensor<9xui32>, tensor<ui32>) -> tensor<3xui32>
      return %0, %1 : {results} }}"""
    x = np.array([2**31, 5, 2**32 - 1, 0, 2**31 - 1, 7, 2**31 + 1, 1, 3], np.uint32)
    ordered, last = run_text(text, x, np.array(2**32 - 1, np.uint32))
    np.testing.assert_array_equal(ordered, np.sort(x))
    np.testing.assert_array_equal(last, x[6:])


@pytest.mark.parametrize("machine", ["ascend910", "ascend310"])
def test_long_columns_of_pairs_are_repeated(machine: str) -> None:
    """Rows of more elements than a tile of words holds."""
    text = """func.func @main(%x: tensor<5x1xi64>) -> tensor<5x2003xi64> {
      %0 = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<5x1xi64>) -> tensor<5x2003xi64>
      return %0 : tensor<5x2003xi64> }"""
    x = np.array([[0], [-1], [1 << 40], [-(1 << 63)], [(1 << 63) - 1]])
    executable = davinci.compile(text, machine=machine, cores=2)
    (found,) = executable.run(x).values()
    np.testing.assert_array_equal(found, np.broadcast_to(x, (5, 2003)))
    assert {kernel["unit"] for kernel in executable.profile["kernels"]} == {"vector"}
