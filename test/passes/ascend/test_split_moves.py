"""Moves that are taken apart: no scalar kernel is left, and every element comes to its place."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

import davinci
from davinci.schedule.moves.move_steps import (
    DimensionSteps,
    MoveStep,
    TransposeSteps,
    cheapest_steps,
)
from pairs import in_turn

Array = npt.NDArray[np.generic]
Case = tuple[str, str, str, Callable[[Array], Array]]

CASES: list[Case] = [
    (
        "4x64x192xf16",
        "192x64x4xf16",
        "stablehlo.transpose %a, dims = [2, 1, 0]",
        lambda x: x.transpose(2, 1, 0),
    ),
    (
        "31x5x3x7xi32",
        "7x5x31x3xi32",
        "stablehlo.transpose %a, dims = [3, 1, 0, 2]",
        lambda x: x.transpose(3, 1, 0, 2),
    ),
    (
        "257x2x9x80xf16",
        "2x80x257x9xf16",
        "stablehlo.transpose %a, dims = [1, 3, 0, 2]",
        lambda x: x.transpose(1, 3, 0, 2),
    ),
    (
        "3x50x40xi64",
        "40x50x3xi64",
        "stablehlo.transpose %a, dims = [2, 1, 0]",
        lambda x: x.transpose(2, 1, 0),
    ),
    (
        "70x12x2x7xf16",
        "150x17x7x9xf16",
        "stablehlo.pad %a, %z, low = [8, 2, 2, 2], high = [3, 3, 3, 0], interior = [1, 0, 0, 0]",
        lambda x: spread(x, [8, 2, 2, 2], [3, 3, 3, 0], [1, 0, 0, 0]),
    ),
    (
        "60x33x16xi8",
        "122x34x18xi8",
        "stablehlo.pad %a, %z, low = [0, 1, 2], high = [3, 0, 0], interior = [1, 0, 0]",
        lambda x: spread(x, [0, 1, 2], [3, 0, 0], [1, 0, 0]),
    ),
    (
        "16x96x50xi8",
        "3x30x13xi8",
        "stablehlo.slice %a [1:4, 8:38, 7:20]",
        lambda x: x[1:4, 8:38, 7:20],
    ),
]


def spread(x: Array, low: list[int], high: list[int], interior: list[int]) -> Array:
    """A padded array of zeros around and between the elements of another."""
    sizes = [n + (n - 1) * k for n, k in zip(x.shape, interior, strict=True)]
    padded = np.zeros([a + n + b for a, n, b in zip(low, sizes, high, strict=True)], x.dtype)
    every = zip(low, sizes, interior, strict=True)
    padded[tuple(slice(a, a + n, k + 1) for a, n, k in every)] = x
    return padded


@pytest.mark.parametrize(
    ("case", "machine"),
    in_turn(CASES, ["ascend910", "ascend910b", "ascend310p"]),
    ids=lambda given: given if isinstance(given, str) else f"{given[2].split()[0]} {given[0]}",
)
def test_elements_come_to_their_places(case: Case, machine: str) -> None:
    source, result, operation, expected = case
    *shape, element = source.split("x")
    zero = "0.0" if element.startswith("f") else "0"
    types = f"tensor<{source}>" + (f", tensor<{element}>" if "pad" in operation else "")
    signature = f"({types}) -> tensor<{result}>"
    text = f"""
      func.func @main(%a: tensor<{source}>) -> tensor<{result}> {{
        %z = stablehlo.constant dense<{zero}> : tensor<{element}>
        %r = {operation} : {signature}
        return %r : tensor<{result}>
      }}"""
    dtype = {"f": "float", "i": "int"}[element[0]] + element[1:]
    x = np.random.default_rng(1).integers(-99, 99, [*map(int, shape)]).astype(dtype)
    executable = davinci.compile(text, machine=machine)
    (found,) = executable.run({"arg0": x}).values()
    np.testing.assert_array_equal(found, expected(x))
    assert {kernel["unit"] for kernel in executable.profile["kernels"]} == {"vector"}


def applied(steps: list[MoveStep], x: Array) -> Array:
    """What the steps of a transposition make of an array."""
    for step in steps:
        assert x.shape == step.source
        x = x.transpose(step.attributes["permutation"])
        assert x.shape == step.result
    return x


def one_exchange(step: MoveStep) -> float | None:
    """A cycle for permutations that exchange two neighbouring blocks, None for others."""
    order = step.attributes["permutation"]
    breaks = sum(b != a + 1 for a, b in itertools.pairwise((-1, *order, len(order))))
    return 1.0 if breaks == 3 else None


@pytest.mark.parametrize("order", list(itertools.permutations(range(4)))[1:])
def test_permutations_are_exchanges(order: tuple[int, ...]) -> None:
    x = np.arange(120).reshape(2, 3, 4, 5)
    steps = cheapest_steps(TransposeSteps(x.shape, order), one_exchange, 1.0, 4.0)
    assert 1 <= len(steps) <= 3
    np.testing.assert_array_equal(applied(steps, x), x.transpose(order))


def test_steps_cost_less_than_the_whole() -> None:
    steps = TransposeSteps((2, 3, 4), (2, 1, 0))
    assert len(cheapest_steps(steps, one_exchange, 1.0, 2.5)) == 2
    assert cheapest_steps(steps, one_exchange, 1.0, 2.0) == []
    assert cheapest_steps(steps, lambda _: None, 1.0, 2.5) == []


def test_dimensions_without_change_are_left_alone() -> None:
    bounds = {"starts": (0, 1, 0), "limits": (4, 5, 6), "strides": (1, 1, 2)}
    slices = DimensionSteps("slice", bounds, (4, 5, 6), (4, 4, 3))
    assert slices.goal == (1, 2)
    (last,) = [step for state, step in slices.after((1,)) if state == slices.goal]
    assert (last.source, last.result) == ((4, 4, 6), (4, 4, 3))
    assert last.attributes == {"starts": (0, 0, 0), "limits": (4, 4, 6), "strides": (1, 1, 2)}
    pads = {"low": (1, 0), "high": (-1, 0), "interior": (0, 0)}
    assert DimensionSteps("pad", pads, (4, 5), (4, 5)).goal == (0,)
