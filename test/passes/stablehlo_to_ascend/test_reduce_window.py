"""Reductions over windows become slices and elementwise operators; against NumPy."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from support import compile_text

NUMPY = {"add": np.add, "maximum": np.maximum, "minimum": np.minimum, "multiply": np.multiply}
STARTS = {"add": "0.0", "maximum": "0xFF800000", "minimum": "0x7F800000", "multiply": "1.0"}
VALUES = {"add": 0.0, "maximum": -np.inf, "minimum": np.inf, "multiply": 1.0}


@dataclass(frozen=True)
class Windows:
    """A case: shape of the operand, and by dimension what the operation says."""

    shape: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    apart: tuple[int, ...]
    inside: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]


CASES = [
    Windows((3, 17), (1, 17), (1, 1), (1, 1), (1, 1), ((0, 0), (16, 0))),
    Windows((2, 31), (1, 7), (1, 2), (1, 1), (1, 1), ((0, 0), (3, 3))),
    Windows((1, 2, 15, 16), (1, 1, 7, 7), (1, 1, 2, 3), (1, 1, 1, 1), (1, 1, 1, 1), ((0, 0),) * 4),
    Windows((5, 33), (2, 5), (1, 1), (2, 3), (1, 1), ((1, 0), (0, 4))),
    Windows((9, 13), (3, 3), (2, 1), (1, 1), (1, 2), ((1, 1), (-1, 2))),
    Windows((4, 6), (4, 6), (1, 1), (1, 1), (1, 1), ((0, 0), (0, 0))),
    Windows((4, 6), (1, 1), (2, 1), (1, 1), (1, 1), ((0, 0), (0, 0))),
    # One window along a dimension, whose stride says nothing.
    Windows(
        (1, 8, 62, 1), (1, 1, 62, 1), (1, 1, 62, 62), (1, 1, 1, 1), (1, 1, 1, 1), ((0, 0),) * 4
    ),
    Windows((2, 8, 9, 9), (1, 1, 5, 2), (1, 1, 6, 9), (1, 1, 1, 3), (1, 1, 1, 1), ((0, 0),) * 4),
]


def wanted_of(x: Any, case: Windows, kind: str) -> Any:
    opened = np.full([(n - 1) * d + 1 for n, d in zip(x.shape, case.inside, strict=True)], np.nan)
    opened[...] = VALUES[kind]
    opened[tuple(slice(None, None, d) for d in case.inside)] = x
    wide = [(max(0, a), max(0, b)) for a, b in case.padding]
    opened = np.pad(opened, wide, constant_values=VALUES[kind])
    opened = opened[tuple(slice(-min(0, a), min(0, b) or None) for a, b in case.padding)]
    reach = [(s - 1) * d + 1 for s, d in zip(case.sizes, case.apart, strict=True)]
    counts = [(n - r) // s + 1 for n, r, s in zip(opened.shape, reach, case.strides, strict=True)]
    found = np.full(counts, VALUES[kind])
    for place in itertools.product(*map(range, case.sizes)):
        first = [p * d for p, d in zip(place, case.apart, strict=True)]
        cut = (
            slice(f, f + (c - 1) * s + 1, s)
            for f, c, s in zip(first, counts, case.strides, strict=True)
        )
        found = NUMPY[kind](found, opened[tuple(cut)])
    return found


def array(values: Any) -> str:
    return f"array<i64: {', '.join(map(str, values))}>"


def tensor(shape: Any, element: str) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element}>"


@pytest.mark.parametrize(
    ("case", "kind", "element"),
    [
        (case, kind, element)
        for number, case in enumerate(CASES)
        for kind, element in (("add", "f32"), (("maximum", "minimum")[number % 2], "f32"))
    ]
    + [(case, "add", "f16") for case in CASES[::3]],
    ids=str,
)
def test_windows(case: Windows, kind: str, element: str) -> None:
    x = np.random.default_rng(3).integers(-9, 9, case.shape).astype(f"f{int(element[1:]) // 8}")
    wanted = wanted_of(x, case, kind)
    source, result = tensor(case.shape, element), tensor(wanted.shape, element)
    edges = ", ".join(f"[{a}, {b}]" for a, b in case.padding)
    text = f"""func.func @main(%x: {source}) -> {result} {{
      %c = stablehlo.constant dense<{STARTS[kind]}> : tensor<{element}>
      %r = "stablehlo.reduce_window"(%x, %c) <{{
        window_dimensions = {array(case.sizes)}, window_strides = {array(case.strides)},
        window_dilations = {array(case.apart)}, base_dilations = {array(case.inside)},
        padding = dense<[{edges}]> : tensor<{len(case.shape)}x2xi64>}}> ({{
        ^bb0(%a: tensor<{element}>, %b: tensor<{element}>):
          %s = stablehlo.{kind} %a, %b : tensor<{element}>
          stablehlo.return %s : tensor<{element}>
      }}) : ({source}, tensor<{element}>) -> {result}
      return %r : {result}
    }}"""
    executable = compile_text(text)
    (found,) = executable.run({"arg0": x}).values()
    np.testing.assert_array_equal(found, wanted.astype(x.dtype))
    assert not any("reduce_window" in kernel["name"] for kernel in executable.profile["kernels"])
