"""Quotients and remainders of integers of 64 bits, bit for bit against Python's."""

from __future__ import annotations

import numpy as np
import pytest

import davinci
from davinci.passes.stablehlo_to_ascend.elementwise import MOST_BY_SCALARS

ENDS = np.iinfo(np.int64)
FEW = [0, 1, -1, 2, -3, 7, 1 << 24, (1 << 24) + 1, -(1 << 31), (1 << 53) + 1, -(1 << 62)]
FEW += [ENDS.max, ENDS.max - 1, ENDS.min, ENDS.min + 1]
RANDOM = np.random.default_rng(28)


def towards_zero(a: int, b: int) -> tuple[int, int]:
    """Quotient and remainder as i64 holds them; -1 and a by 0."""
    if b == 0:
        return -1, a
    size = abs(a) // abs(b)
    quotient = size if (a < 0) == (b < 0) else -size
    return quotient - (1 << 64) * (quotient > ENDS.max), a - quotient * b


@pytest.mark.parametrize(
    ("operation", "machine"), [("divide", "ascend910"), ("remainder", "ascend910b")]
)
def test_bit_for_bit(operation: str, machine: str) -> None:
    """Results are exact for all pairs of edge values and random ones of all sizes."""
    a, b = (v.ravel() for v in np.meshgrid(np.array(FEW), np.array(FEW)))
    whole = RANDOM.integers(ENDS.min, ENDS.max, (2, 300), endpoint=True)
    whole >>= RANDOM.integers(0, 64, (2, 300))
    a, b = np.concatenate([a, whole[0]]), np.concatenate([b, whole[1]])
    found, units = run(operation, a, b, machine)
    both = [towards_zero(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    wanted = np.array([pair[operation == "remainder"] for pair in both])
    np.testing.assert_array_equal(found, wanted)
    assert units == {"vector"}


@pytest.mark.parametrize("number", [0, 7, -1, 1 << 31, ENDS.min])
def test_by_known_numbers(number: int) -> None:
    """Quotients by a number, and what they leave rounded down, are those of NumPy."""
    kind = f"tensor<{len(FEW) * 10}xi64>"
    truths = kind.replace("i64", "i1")
    text = f"""func.func @main(%a: {kind}) -> ({kind}, {kind}) {{
      %b = stablehlo.constant dense<{number}> : {kind}
      %zero = stablehlo.constant dense<0> : {kind}
      %q = stablehlo.divide %a, %b : {kind}
      %r = stablehlo.remainder %a, %b : {kind}
      %some = stablehlo.compare NE, %r, %zero : ({kind}, {kind}) -> {truths}
      %x = stablehlo.compare LT, %r, %zero : ({kind}, {kind}) -> {truths}
      %y = stablehlo.compare LT, %b, %zero : ({kind}, {kind}) -> {truths}
      %differ = stablehlo.compare NE, %x, %y : ({truths}, {truths}) -> {truths}
      %both = stablehlo.and %differ, %some : {truths}
      %sum = stablehlo.add %r, %b : {kind}
      %m = stablehlo.select %both, %sum, %r : {truths}, {kind}
      return %q, %m : {kind}, {kind} }}"""
    a = np.array(FEW * 10)
    model = davinci.compile(text, machine="ascend310p", cores=1)
    quotient, rest = model.run(a).values()
    exact = [towards_zero(x, number) for x in map(int, a)]
    np.testing.assert_array_equal(quotient, [q for q, _ in exact])
    np.testing.assert_array_equal(rest, [int(x) % number if number else x for x in a])
    assert {kernel["unit"] for kernel in model.profile["kernels"]} == {"vector"}


def test_few_stay_with_the_scalar_unit() -> None:
    a = np.arange(MOST_BY_SCALARS)
    found, units = run("divide", a, a + 1, "ascend910")
    assert not found.any() and units == {"scalar"}


def run(operation: str, a: np.ndarray, b: np.ndarray, machine: str) -> tuple[np.ndarray, set[str]]:
    kind = f"tensor<{a.size}xi64>"
    text = f"""func.func @main(%a: {kind}, %b: {kind}) -> {kind} {{
      %0 = stablehlo.{operation} %a, %b : {kind}
      return %0 : {kind} }}"""
    model = davinci.compile(text, machine=machine, cores=1)
    (found,) = model.run(a, b).values()
    return found, {kernel["unit"] for kernel in model.profile["kernels"]}
