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

    @staticmethod
    def of(case: Conv, seed: int) -> Layer:
        random = np.random.default_rng(seed)
        x, w = (random.standard_normal(shape).astype(np.float32) for shape in case.shapes)
        return Layer(case, x, w)

    @property
    def text(self) -> str:
        return str(self.case)

    @property
    def wanted(self) -> Any:
        return self.case.values(self.x, self.w)

    @property
    def module(self) -> str:
        kind = f"tensor<{'x'.join(map(str, self.w.shape))}xf32>"
        known = f'%w = stablehlo.constant dense<"0x{self.w.tobytes().hex()}"> : {kind}\n%0 ='
        return self.case.text().replace(f", %w: {kind}", "").replace("%0 =", known, 1)

    def run(self, **options: Any) -> tuple[Any, Any]:
        """The result and the executable."""
        executable = compile_text(self.module, **options)
        (found,) = executable.run({"arg0": self.x}).values()
        return np.asarray(found, np.float64), executable

    def check(self, winograd: str, **options: Any) -> Any:
        """Asserts that errors are within their bound; returns the executable."""
        found, executable = self.run(winograd=winograd, **options)
        (form,) = (form for form in FORMS if form.name == winograd)
        bound, wanted = bound_of_tiles(form, self.case, self.x, self.w), self.wanted
        # The result is rounded to f16 on its way.
        worst = (np.abs(found - wanted) / (bound + HALF * (np.abs(wanted) + bound))).max()
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
