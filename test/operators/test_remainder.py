"""Remainders of f32 bit for bit, over all exponents, on the simulator."""

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
