"""Random 3x3 convolutions by tiles, of normal numbers, against NumPy and the bound of their error.

Shapes around blocks of 16, primes and one; every padding; both forms on each machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from convolution_support import Conv
from davinci.passes.ascend.winograd_forms import FORMS
from support import compile_text
from winograd_bounds import HALF, bound_of_tiles

SIZES = (1, 2, 3, 5, 7, 8, 13, 16, 17, 23)
CHANNELS = (1, 3, 15, 16, 17, 32, 33, 50)
WAYS: tuple[dict[str, Any], ...] = (
    {"winograd": "2x2", "machine": "ascend910", "cores": 32},
    {"winograd": "4x4", "machine": "ascend910", "cores": 1, "precision": "fp16"},
    {"winograd": "2x2", "machine": "ascend310", "precision": "fp16"},
    {"winograd": "4x4", "machine": "ascend310", "cores": 1},
    {"winograd": "4x4", "machine": "ascend910", "cores": 5, "fusion": "none"},
)


@dataclass(frozen=True)
class Layer:
    """A convolution of known weights, and what it is run on."""

    case: Conv
    x: Any
    w: Any
    bias: Any

    @staticmethod
    def of(case: Conv, seed: int) -> Layer:
        random = np.random.default_rng(seed)
        shapes = (*case.shapes, (case.o,))
        return Layer(case, *(random.standard_normal(s).astype(np.float32) for s in shapes))

    @property
    def text(self) -> str:
        return str(self.case)

    @property
    def wanted(self) -> Any:
        """With a bias, and nothing negative."""
        return np.maximum(self.case.values(self.x, self.w) + self.bias[:, None, None], 0)

    @property
    def module(self) -> str:
        def constant(name: str, values: Any) -> str:
            kind = f"tensor<{'x'.join(map(str, values.shape))}xf32>"
            return f'{name} = stablehlo.constant dense<"0x{values.tobytes().hex()}"> : {kind}'

        x, y = (
            f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in (self.x.shape, self.case.result)
        )
        lines = [
            constant("%w", self.w),
            constant("%b", self.bias),
            f"%zero = stablehlo.constant dense<0.0> : {y}",
            f"%0 = {self.case.call('%x', '%w')}",
            f"%1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<{self.case.o}xf32>) -> {y}",
            f"%2 = stablehlo.add %0, %1 : {y}",
            f"%3 = stablehlo.maximum %2, %zero : {y}",
        ]
        body = "\n".join(lines)
        return f"func.func @main(%x: {x}) -> {y} {{\n{body}\nreturn %3 : {y}\n}}"

    def run(self, **options: Any) -> tuple[Any, Any]:
        """The result and the executable."""
        executable = compile_text(self.module, **options)
        (found,) = executable.run({"arg0": self.x}).values()
        return np.asarray(found, np.float64), executable

    def check(self, winograd: str, **options: Any) -> Any:
        """Asserts that errors are within their bound; returns the executable."""
        found, executable = self.run(winograd=winograd, **options)
        (form,) = (form for form in FORMS if form.name == winograd)
        wanted = self.wanted
        bound = bound_of_tiles(form, self.case, self.x, self.w)
        # The result is rounded to f16 on its way, and in fp16 with the bias and when it leaves.
        sums = np.abs(self.case.values(self.x, self.w)) + bound
        bound += 3 * HALF * (sums + np.abs(self.bias)[:, None, None])
        worst = (np.abs(found - wanted) / bound).max()
        assert worst <= 1, f"{worst:.2f} of the bound"
        kernels = (k for k in executable.profile["kernels"] if k["op"].startswith("conv"))
        assert sum(k["launches"] for k in kernels) == 4, "not by tiles"
        return executable


class Draw:
    """Draws a convolution.

    Args:
        seed: of everything.
    """

    kind = "conv"

    def __init__(self, seed: int) -> None:
        self._seed, self._random = seed, np.random.default_rng(seed)

    def _one(self, values: Any) -> Any:
        return values[int(self._random.integers(len(values)))]

    def layer(self) -> Layer:
        first, last, left, right = (int(n) for n in self._random.integers(0, 4, 4))
        height, width = (
            max(self._one(SIZES), 3 - around) for around in (first + last, left + right)
        )
        batch, inner, outer = self._one((1, 1, 2, 3)), self._one(CHANNELS), self._one(CHANNELS)
        pads = ((first, last), (left, right))
        return Layer.of(Conv(batch, inner, (height, width), outer, (3, 3), pads=pads), self._seed)
