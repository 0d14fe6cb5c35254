"""Reductions over windows of images as StableHLO means them: texts, arrays and values in NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Pair = tuple[int, int]

KINDS = {
    "add": ("add", "0.0", 0.0, np.add),
    "max": ("maximum", "0xFF800000", -np.inf, np.maximum),
    "min": ("minimum", "0x7F800000", np.inf, np.minimum),
}
"""What StableHLO calls a kind, what it starts from in words and as a number, and NumPy's."""


@dataclass(frozen=True)
class Windows:
    """Of [n, c, h, w], or of [n, h, w, c]."""

    kind: str
    n: int
    c: int
    image: Pair
    kernel: Pair
    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    pads: tuple[Pair, Pair] = ((0, 0), (0, 0))
    last: bool = False

    def _order(self, sizes: Any, n: Any, c: Any) -> tuple[Any, ...]:
        return (n, *sizes, c) if self.last else (n, c, *sizes)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._order(self.image, self.n, self.c)

    @property
    def result(self) -> tuple[int, ...]:
        sizes = []
        for side in range(2):
            extent = (self.kernel[side] - 1) * self.dilations[side] + 1
            wide = self.image[side] + sum(self.pads[side])
            sizes.append((wide - extent) // self.strides[side] + 1)
        return self._order(sizes, self.n, self.c)

    def array(self) -> Array:
        """Small whole numbers, whose sums are exact."""
        return np.random.default_rng(self.c).integers(-9, 10, self.shape).astype(np.float32)

    def values(self, x: Array) -> Array:
        *_, start, combine = KINDS[self.kind]
        edges = self._order(self.pads, (0, 0), (0, 0))
        padded = np.pad(x, edges, constant_values=start)
        found = np.full(self.result, start, np.float32)
        counts = [size for dim, size in enumerate(self.result) if dim in self.space]
        for i, j in np.ndindex(self.kernel):
            places = [
                slice(at * d, at * d + (count - 1) * s + 1, s)
                for at, d, count, s in zip(
                    (i, j), self.dilations, counts, self.strides, strict=True
                )
            ]
            found = combine(found, padded[self._order(places, slice(None), slice(None))])
        return found

    @property
    def space(self) -> tuple[int, int]:
        return (1, 2) if self.last else (2, 3)

    def call(self, x: str) -> str:
        """The operation on a value; the number it starts from is %start."""
        name = KINDS[self.kind][0]

        def along(pair: Any, other: Any = 1) -> str:
            return ", ".join(map(str, self._order(pair, other, other)))

        pads = along([list(pair) for pair in self.pads], [0, 0])
        given, made = ("x".join(map(str, shape)) for shape in (self.shape, self.result))
        return f"""
          "stablehlo.reduce_window"({x}, %start) ({{
          ^bb0(%p: tensor<f32>, %q: tensor<f32>):
            %both = stablehlo.{name} %p, %q : tensor<f32>
            stablehlo.return %both : tensor<f32>
          }}) {{window_dimensions = array<i64: {along(self.kernel)}>,
            window_strides = array<i64: {along(self.strides)}>,
            window_dilations = array<i64: {along(self.dilations)}>,
            padding = dense<[{pads}]> : tensor<4x2xi64>}}
            : (tensor<{given}xf32>, tensor<f32>) -> tensor<{made}xf32>"""

    def start(self) -> str:
        return f"%start = stablehlo.constant dense<{KINDS[self.kind][1]}> : tensor<f32>"

    def text(self) -> str:
        """A module."""
        x, y = (f"tensor<{'x'.join(map(str, s))}xf32>" for s in (self.shape, self.result))
        return (
            f"func.func @main(%x: {x}) -> {y} {{\n{self.start()}\n"
            f"%0 = {self.call('%x')}\nreturn %0 : {y}\n}}"
        )
