"""Convolutions as StableHLO means them: texts, arrays and values in NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Pair = tuple[int, int]


@dataclass(frozen=True)
class Conv:
    """Channels first: [n, c, h, w] with weights [o, c / groups, kh, kw]; `inside` is the distance
    of elements of the operand, between which zeros are."""

    n: int
    c: int
    image: Pair
    o: int
    kernel: Pair
    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    pads: tuple[Pair, Pair] = ((0, 0), (0, 0))
    inside: Pair = (1, 1)
    groups: int = 1

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Of the operand and of the weights."""
        weights = (self.o, self.c // self.groups, *self.kernel)
        return [(self.n, self.c, *self.image), weights]

    @property
    def result(self) -> tuple[int, ...]:
        sizes = []
        for side in range(2):
            wide = (self.image[side] - 1) * self.inside[side] + 1 + sum(self.pads[side])
            extent = (self.kernel[side] - 1) * self.dilations[side] + 1
            sizes.append((wide - extent) // self.strides[side] + 1)
        return (self.n, self.o, *sizes)

    def arrays(self) -> tuple[Array, Array]:
        """Small whole numbers, whose sums are exact."""
        rng = np.random.default_rng(self.c + 100 * self.o)
        x, w = (rng.integers(-3, 4, shape).astype(np.float32) for shape in self.shapes)
        return x, w

    def values(self, x: Array, w: Array) -> Array:
        found = np.zeros(self.result)
        padded = self._padded(x)
        inner, outer = self.c // self.groups, self.o // self.groups
        for i, j in np.ndindex(self.kernel):
            rows, columns = (
                slice(at * d, at * d + (count - 1) * s + 1, s)
                for at, d, count, s in zip(
                    (i, j), self.dilations, self.result[2:], self.strides, strict=True
                )
            )
            part = padded[:, :, rows, columns]
            for g in range(self.groups):
                own = part[:, g * inner : (g + 1) * inner]
                weights = w[g * outer : (g + 1) * outer, :, i, j]
                made = np.einsum("nchw,oc->nohw", own, weights, dtype=np.float64)
                found[:, g * outer : (g + 1) * outer] += made
        return found

    def _padded(self, x: Array) -> Array:
        sizes = [(n - 1) * i + 1 for n, i in zip(self.image, self.inside, strict=True)]
        spread = np.zeros((*x.shape[:2], *sizes))
        spread[:, :, :: self.inside[0], :: self.inside[1]] = x
        edges = [(max(0, a), max(0, b)) for a, b in self.pads]
        wide = np.pad(spread, ((0, 0), (0, 0), *edges))
        cut = [
            slice(max(0, -a), n - max(0, -b))
            for (a, b), n in zip(self.pads, wide.shape[2:], strict=True)
        ]
        return wide[:, :, cut[0], cut[1]]

    def call(self, x: str, w: str) -> str:
        """The operation on two values."""
        kinds = ["x".join(map(str, s)) for s in (*self.shapes, self.result)]
        pads = ", ".join(f"[{a}, {b}]" for a, b in self.pads)
        window = f"stride = {list(self.strides)}, pad = [{pads}], "
        window += f"lhs_dilate = {list(self.inside)}, rhs_dilate = {list(self.dilations)}"
        return (
            f"stablehlo.convolution({x}, {w}) dim_numbers = "
            f"[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {{{window}}} "
            f"{{batch_group_count = 1 : i64, feature_group_count = {self.groups} : i64}} : "
            f"(tensor<{kinds[0]}xf32>, tensor<{kinds[1]}xf32>) -> tensor<{kinds[2]}xf32>"
        )

    def text(self) -> str:
        """A module."""
        x, w, y = (f"tensor<{'x'.join(map(str, s))}xf32>" for s in (*self.shapes, self.result))
        return (
            f"func.func @main(%x: {x}, %w: {w}) -> {y} {{\n"
            f"%0 = {self.call('%x', '%w')}\nreturn %0 : {y}\n}}"
        )
