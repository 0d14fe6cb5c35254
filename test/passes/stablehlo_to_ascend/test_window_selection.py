"""Gradients of maxima over windows: by positions in windows on the vector unit, against NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import davinci
from operator_cases import Array

RANDOM = np.random.default_rng(28)

Sizes = tuple[int, ...]
Edges = list[list[int]]

CASES: dict[str, tuple[Sizes, Sizes, Sizes, Edges]] = {
    "apart": ((2, 6, 6, 5), (1, 2, 2, 1), (1, 2, 2, 1), [[0, 0]] * 4),
    "overlapping": ((1, 3, 9, 9), (1, 1, 3, 3), (1, 1, 2, 2), [[0, 0]] * 4),
    "padded": ((1, 8, 7, 3), (1, 3, 3, 1), (1, 2, 2, 1), [[0, 0], [1, 1], [1, 1], [0, 0]]),
    "every element": ((9, 17), (3, 1), (1, 1), [[1, 1], [0, 0]]),
    "far apart": ((3, 20), (1, 2), (1, 5), [[0, 0], [3, 0]]),
    "windows of padding": ((5, 4), (2, 2), (2, 2), [[4, 0], [0, 0]]),
}


def selected(x: Array, source: Array, sizes: Sizes, strides: Sizes, edges: Edges) -> Array:
    """The first largest element of each window gets what the source has for it, and one."""
    result = np.ones(x.shape, np.float32)
    for window in np.ndindex(source.shape):
        best: Sizes | None = None
        for place in itertools.product(*map(range, sizes)):
            at = tuple(
                w * s + p - low
                for w, s, p, (low, _) in zip(window, strides, place, edges, strict=True)
            )
            inside = all(0 <= i < n for i, n in zip(at, x.shape, strict=True))
            if inside and (best is None or not x[best] >= x[at]):
                best = at
        if best is not None:
            result[best] += source[window]
    return result


@pytest.mark.parametrize("name", CASES)
def test_against_numpy(name: str) -> None:
    shape, sizes, strides, edges = CASES[name]
    windows = tuple(
        (n + sum(edge) - size) // stride + 1
        for n, edge, size, stride in zip(shape, edges, sizes, strides, strict=True)
    )
    x = RANDOM.integers(-3, 4, shape).astype(np.float32)
    source = RANDOM.integers(-9, 9, windows).astype(np.float32)
    given, made = (f"tensor<{'x'.join(map(str, s))}xf32>" for s in (shape, windows))
    text = f"""func.func @main(%x: {given}, %s: {made}) -> {given} {{
      %one = stablehlo.constant dense<1.0> : tensor<f32>
      %0 = "stablehlo.select_and_scatter"(%x, %s, %one) ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %c = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }}, {{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %c = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %c : tensor<f32>
      }}) {{window_dimensions = array<i64: {", ".join(map(str, sizes))}>,
        window_strides = array<i64: {", ".join(map(str, strides))}>,
        padding = dense<{edges}> : tensor<{len(shape)}x2xi64>}}
        : ({given}, {made}, tensor<f32>) -> {given}
      return %0 : {given} }}"""
    executable = davinci.compile(text, cores=4)
    (found,) = executable.run(x, source).values()
    np.testing.assert_array_equal(found, selected(x, source, sizes, strides, edges))
