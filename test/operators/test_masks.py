"""Choices by masks of bits: exact for all numbers, infinities, NaN and signs of zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import davinci
from davinci.passes.cce_to_hivm.vector import widened

PREDICATES = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}

COUNT = 20011
"""Elements: a prime, and enough that masks are cheaper on one core."""


def operands(kind: Any) -> list[Any]:
    """Two operands, equal in places and with all pairs of special values, and what is chosen."""
    rng = np.random.default_rng(0)
    limits = np.finfo(kind)
    least = [limits.tiny, limits.smallest_subnormal, -limits.smallest_subnormal]
    values = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, limits.max, -limits.max, *least]
    special = np.array(np.meshgrid(values, values), kind).reshape(2, -1)
    a, b, x, y = rng.standard_normal((4, COUNT)).astype(kind)
    b = np.where(rng.random(COUNT) < 0.3, a, b)
    a[: special.shape[1]], b[: special.shape[1]] = special
    x[::7], x[1::7], y[::5], y[3::11] = np.nan, -0.0, -0.0, np.inf
    return [a, b, x, y]


@pytest.mark.parametrize("element", ["f16", "f32"])
@pytest.mark.parametrize("predicate", PREDICATES)
def test_comparison_and_selection(predicate: str, element: str) -> None:
    """Flags, a choice between arrays and one with zero, as one kernel."""
    kind = np.float16 if element == "f16" else np.float32
    given = operands(kind)
    array, flags = f"tensor<{COUNT}x{element}>", f"tensor<{COUNT}xi1>"
    text = f"""
func.func @main(%a: {array}, %b: {array}, %x: {array}, %y: {array})
    -> ({array}, {array}, {flags}) {{
  %zero = stablehlo.constant dense<0.0> : {array}
  %c = stablehlo.compare {predicate}, %a, %b : ({array}, {array}) -> {flags}
  %r = stablehlo.select %c, %x, %y : {flags}, {array}
  %s = stablehlo.select %c, %zero, %y : {flags}, {array}
  return %r, %s, %c : {array}, {array}, {flags}
}}"""
    precision = "fp16" if element == "f16" else "mixed"
    executable = davinci.compile(text, machine="ascend310", cores=1, precision=precision)
    chosen, zeroed, found = executable.run(*given).values()
    a, b, x, y = given
    expected = PREDICATES[predicate](a, b)
    bits = np.uint16 if element == "f16" else np.uint32
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(chosen.view(bits), np.where(expected, x, y).view(bits))
    np.testing.assert_array_equal(zeroed.view(bits), np.where(expected, kind(0), y).view(bits))
    repeats = COUNT * kind().itemsize // 256
    most = 3 * 46 * repeats  # of three comparisons and selections for each repeat
    assert executable.profile["total_cycles"] < most / 2


@pytest.mark.parametrize(
    ("mask", "expected"),
    [((1 << 128) - 1, (1 << 128) - 1), (0b101, 0b110011), ((1 << 64) - 1, (1 << 128) - 1)],
)
def test_a_mask_of_words_as_one_of_halves(mask: int, expected: int) -> None:
    assert widened(mask, 2) == expected
    assert widened(mask & 7, 1) == mask & 7
