"""Remainders bit for bit, of f32 over all exponents, on the simulator.

Of quotients towards zero, and of such that are rounded down, as Python's % is spelt.
"""

from __future__ import annotations

import numpy as np
import pytest

from davinci.operators.core import Array
from support import run_text

DRAWS = np.random.default_rng(0)
ENDS = np.array(
    [0.0, -0.0, 1, -1, 5.5, np.inf, -np.inf, np.nan, np.finfo(np.float32).max, 1e-45, -1e-45],
    np.float32,
)
COUNT = 4000


def any_bits(count: int = COUNT) -> Array:
    return DRAWS.integers(0, 1 << 32, count, dtype=np.uint64).astype(np.uint32).view(np.float32)


def without_exponent() -> Array:
    return DRAWS.integers(1, 1 << 23, COUNT).astype(np.uint32).view(np.float32)


def require_bits(found: Array, wanted: Array) -> None:
    """Fails unless results have the bits that are wanted; NaN of any bits where NaN is wanted."""
    alike = (found.view(np.int32) == wanted.view(np.int32)) | (np.isnan(found) & np.isnan(wanted))
    assert alike.all(), (found[~alike][:4], wanted[~alike][:4])


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (any_bits(), any_bits()),
        (any_bits(), without_exponent()),
        (without_exponent(), without_exponent()),
        tuple(v.ravel().copy() for v in np.meshgrid(ENDS, ENDS)),
    ],
    ids=("any", "by denormals", "of denormals", "ends"),
)
def test_of_two(a: Array, b: Array) -> None:
    kind = f"tensor<{a.size}xf32>"
    (found,) = run_text(
        f"func.func @main(%a: {kind}, %b: {kind}) -> {kind} {{"
        f"%r = stablehlo.remainder %a, %b : {kind}\nreturn %r : {kind} }}",
        a,
        b,
    )
    with np.errstate(invalid="ignore"):
        require_bits(found, np.fmod(a, b))


@pytest.mark.parametrize("number", [3.0, -0.7, 1e-40, 0.0])
@pytest.mark.parametrize("operands", ["%a, %b", "%b, %a"], ids=("by", "of"))
def test_with_a_number(number: float, operands: str) -> None:
    a = np.concatenate([any_bits(1000), ENDS])
    kind = f"tensor<{a.size}xf32>"
    (found,) = run_text(
        f"func.func @main(%a: {kind}) -> {kind} {{"
        f"%b = stablehlo.constant dense<{number:e}> : {kind}\n"
        f"%r = stablehlo.remainder {operands} : {kind}\nreturn %r : {kind} }}",
        a,
    )
    b = np.full_like(a, number)
    with np.errstate(invalid="ignore"):
        require_bits(found, np.fmod(a, b) if operands == "%a, %b" else np.fmod(b, a))


FLOORED = """
func.func @main(%a: KIND, %b: KIND) -> KIND {
  %zero = stablehlo.constant dense<0> : KIND
  %r = stablehlo.remainder %a, %b : KIND
  %left = stablehlo.compare NE, %r, %zero : (KIND, KIND) -> FLAGS
  %rest_sign = stablehlo.compare LT, %r, %zero : (KIND, KIND) -> FLAGS
  %sign = stablehlo.compare LT, %b, %zero : (KIND, KIND) -> FLAGS
  %differ = stablehlo.compare NE, %rest_sign, %sign : (FLAGS, FLAGS) -> FLAGS
  %both = stablehlo.and %differ, %left : FLAGS
  %sum = stablehlo.add %r, %b : KIND
  %found = stablehlo.select %both, %sum, %r : FLAGS, KIND
  return %found : KIND
}
"""


def floored(a: Array, b: Array) -> tuple[Array, Array]:
    """What the program finds, and what NumPy does as the program says it."""
    kind = f"{a.size}x{'f32' if a.dtype.kind == 'f' else 'i32'}"
    text = FLOORED.replace("KIND", f"tensor<{kind}>").replace("FLAGS", f"tensor<{a.size}xi1>")
    if a.dtype.kind == "f":
        text = text.replace("dense<0>", "dense<0.0>")
    (found,) = run_text(text, a, b)
    with np.errstate(all="ignore"):
        rest = np.fmod(a, b) if a.dtype.kind == "f" else np.where(b == 0, a, np.fmod(a, b))
        shifted = (rest != 0) & ((rest < 0) != (b < 0))
        return found, np.where(shifted, rest + b, rest)


@pytest.mark.parametrize(
    ("a", "b"),
    [(any_bits(), any_bits()), tuple(v.ravel().copy() for v in np.meshgrid(ENDS, ENDS))],
    ids=("any", "ends"),
)
def test_rounded_down(a: Array, b: Array) -> None:
    require_bits(*floored(a, b))


def test_integers_rounded_down() -> None:
    ends = np.array([0, 1, -1, 7, -7, (1 << 31) - 1, -(1 << 31), 1 << 24], np.int32)
    a, b = (v.ravel() for v in np.meshgrid(ends, ends))
    draws = [DRAWS.integers(-(1 << 31), 1 << 31, COUNT).astype(np.int32) for _ in "ab"]
    small = DRAWS.integers(-9, 10, COUNT).astype(np.int32)
    for x, y in ((a, b), (draws[0], draws[1]), (draws[0], small)):
        found, wanted = floored(x, y)
        assert np.array_equal(found, wanted)
