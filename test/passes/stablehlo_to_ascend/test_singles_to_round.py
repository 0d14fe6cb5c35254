"""Integers and f16 become the nearest bf16, ties to even, on the vector unit."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import davinci
from davinci.element_types import dtype_of
from pairs import in_turn

KEPT_BITS = 8
"""bf16 holds whole numbers of so many bits."""


def nearest(number: int) -> float:
    """The bf16 nearest to an integer, by integers alone."""
    scale = 1 << max(0, abs(number).bit_length() - KEPT_BITS)
    return float(round(Fraction(number, scale)) * scale)


@pytest.mark.parametrize(
    ("element", "machine"),
    in_turn(["i64", "ui32", "i32", "i16", "ui16", "i8", "ui8"], ["ascend910", "ascend910b"]),
)
def test_nearest_of_integers(element: str, machine: str) -> None:
    """Any magnitudes; ties, and one more and less than these; the ends of the range."""
    rng, kind, count = np.random.default_rng(0), dtype_of(element), 700
    ends = np.iinfo(kind)
    numbers = [int(rng.integers(ends.min, ends.max, endpoint=True)) >> i % 64 for i in range(count)]
    ties = [(256 + i % 256) << i % 55 for i in range(count)]
    numbers += [tie + i % 3 - 1 for i, tie in enumerate(ties)] + [-tie for tie in ties]
    numbers = [min(max(number, ends.min), ends.max) for number in numbers]
    numbers += [ends.min, ends.max, 0, 1]
    found = converted(np.array(numbers, kind), element, machine)
    assert np.array_equal(found, np.array([nearest(number) for number in numbers]))


@pytest.mark.parametrize("element", ["f16", "i1"])
def test_nearest_of_others(element: str) -> None:
    numbers = (np.random.default_rng(0).standard_normal(300) * 9).astype(dtype_of(element))
    wanted = numbers.astype(np.float32).astype(ml_dtypes.bfloat16)
    assert np.array_equal(converted(numbers, element, "ascend910b"), wanted.astype(np.float64))


def converted(numbers: np.ndarray, element: str, machine: str) -> np.ndarray:
    """The bf16 of numbers, which no kernel of the scalar unit makes."""
    source, target = (f"tensor<{len(numbers)}x{kind}>" for kind in (element, "bf16"))
    text = f"""func.func @main(%x: {source}) -> {target} {{
      %r = stablehlo.convert %x : ({source}) -> {target}
      return %r : {target}
    }}"""
    executable = davinci.compile(text, machine=machine)
    (found,) = executable.run(numbers).values()
    assert {kernel["unit"] for kernel in executable.profile["kernels"]} == {"vector"}
    return np.asarray(found).astype(np.float64)
