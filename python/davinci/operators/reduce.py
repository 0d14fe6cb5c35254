"""Reductions: what is combined how, and in which type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from davinci.operators.call import Call
from davinci.operators.constraints import require_dims
from davinci.operators.core import NUMBERS, Array, operator
from davinci.operators.layouts import rows_unless_kept
from davinci.operators.tensors import is_float, width_of
from davinci.operators.windows import WindowAxis, WindowDim, Windows
from davinci.operators.work import computed


@dataclass(frozen=True)
class Reduction:
    """A kind of reduction, which begins with `start` and goes on by `step`.

    Attributes:
        step: the vector instruction that combines two values.
        combine: the same in NumPy.
        rounded: partial results are rounded, so f16 accumulates in f32.
        first: what leaves others as they are, of floats.
        of_block: the instruction that combines the lanes of a block, "" if there is none.
    """

    step: str
    combine: np.ufunc
    rounded: bool
    first: float
    of_block: str = ""

    def start(self, element: str) -> float:
        """The value of an element type that leaves others as they are."""
        if is_float(element) or not math.isinf(self.first):
            return self.first if is_float(element) else int(self.first)
        high = (1 << (width_of(element) - 1)) - 1
        return high if self.first > 0 else -high - 1

    def accumulator(self, element: str) -> str:
        """The element type in which values of type `element` are combined."""
        return "f32" if self.rounded and element == "f16" else element


REDUCTIONS: dict[str, Reduction] = {
    "add": Reduction("vadd", np.add, True, 0.0, "vcgadd"),
    "max": Reduction("vmax", np.maximum, False, -math.inf, "vcgmax"),
    "min": Reduction("vmin", np.minimum, False, math.inf, "vcgmin"),
    "mul": Reduction("vmul", np.multiply, True, 1.0),
}


def known_kind(call: Call) -> None:
    """`kind` is "add", "max", "min" or "mul"."""
    call.choice("kind", tuple(REDUCTIONS))


def distinct_dims(call: Call) -> None:
    """`dims` are distinct dimensions of the operand."""
    require_dims("dims", call.array("dims"), call.inputs[0].rank)


def reduce_shape(shape: Sequence[int], dims: Sequence[int]) -> tuple[int, ...]:
    """Shape of what is left."""
    return tuple(n for i, n in enumerate(shape) if i not in dims)


def remaining_shape(call: Call) -> None:
    """The result has the remaining shape and the operand's element type."""
    (operand,) = call.inputs
    call.expect_output(reduce_shape(operand.shape, call.array("dims")), operand.element)


def combined(call: Call) -> Windows:
    """One axis for each dimension of the operand."""
    (operand,) = call.inputs
    dims, kind = call.array("dims"), call.choice("kind", tuple(REDUCTIONS))
    axes = [
        WindowAxis(n, kind) if i in dims else WindowAxis(n) for i, n in enumerate(operand.shape)
    ]
    everything = tuple(map(WindowDim, range(operand.rank)))
    kept = tuple(dim for i, dim in enumerate(everything) if i not in dims)
    return Windows(tuple(axes), kept, (everything,))


@operator(
    windows=combined,
    constraints=(known_kind, distinct_dims, remaining_shape),
    types=NUMBERS,
    work=computed,
    layouts=rows_unless_kept,
)
def reduce(a: Array, *, kind: str, dims: Sequence[int]) -> Any:
    """Combines the elements along `dims`, which are dropped."""
    wide = a.astype(np.float32) if a.dtype == np.float16 else a
    return REDUCTIONS[kind].combine.reduce(wide, axis=tuple(dims))
