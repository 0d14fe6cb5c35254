"""Between which numbers the elements of a value lie, as far as the operators that make it tell.

A range is a pair (lowest, highest), rounded to the value's own element type as the operator rounds:
f32 scores of a few thousand plus the lowest f32 is the lowest f32, in f16 it would be minus
infinity. Nothing is assumed of arguments but their element type; results of products of f16 are
those of finite factors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.element_types import dtype_of
from davinci.mlir import Op, ir
from davinci.passes.ascend.tensor_ops import (
    KEEPS_NUMBERS,
    PRODUCTS,
    constant_array,
    defining_op,
    full_value,
)

Range = tuple[float, float]

UNKNOWN: Range = (-np.inf, np.inf)

KEEPING = frozenset(f"ascend.{name}" for name in KEEPS_NUMBERS) - {"ascend.pad"}
"""Operators whose results are elements of their operands."""

LARGEST_HALF = float(np.finfo(np.float16).max)

MOST_STEPS = 64
"""Operators that a range is looked for through."""


def _corners(a: Range, b: Range, combine: Callable[[float, float], float]) -> Range:
    found = [combine(x, y) for x in a for y in b]
    return (min(found), max(found)) if not np.isnan(found).any() else UNKNOWN


ARITHMETIC: dict[str, Callable[[Range, Range], Range]] = {
    "ascend.add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "ascend.sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "ascend.mul": lambda a, b: _corners(a, b, lambda x, y: x * y),
    "ascend.min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "ascend.max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
}


@dataclass
class Ranges:
    """Ranges of values, each found once.

    Attributes:
        steps: operators that may still be looked at.
    """

    known: dict[ir.Value, Range] = field(default_factory=dict)
    steps: int = MOST_STEPS

    def is_finite(self, value: ir.Value) -> bool:
        """Whether no element of a value can be infinite or no number."""
        return bool(np.isfinite(self.of(value)).all())

    def of(self, value: ir.Value) -> Range:
        """The range of a value; `UNKNOWN` where nothing is known."""
        if value not in self.known:
            self.known[value] = self._rounded(self._found(value), tensor_of(value.type).element)
        return self.known[value]

    def _found(self, value: ir.Value) -> Range:
        op, element = defining_op(value), tensor_of(value.type).element
        dtype = dtype_of(element)
        whole: Range = UNKNOWN
        if dtype == np.bool_:
            whole = (0.0, 1.0)
        elif np.issubdtype(dtype, np.integer):
            whole = (float(np.iinfo(dtype).min), float(np.iinfo(dtype).max))
        self.steps -= 1
        if op is None or self.steps < 0 or whole != UNKNOWN:
            return self._number(value) or whole
        if op.name in KEEPING:
            ranges = [self.of(operand) for operand in op.operands]
            return min(r[0] for r in ranges), max(r[1] for r in ranges)
        if op.name == "ascend.cast":
            return self.of(op.operands[0])
        if op.name == "ascend.select":
            first, second = map(self.of, op.operands[1:])
            return min(first[0], second[0]), max(first[1], second[1])
        if op.name in ARITHMETIC:
            first, second = map(self.of, op.operands)
            return ARITHMETIC[op.name](first, second)
        if op.name in PRODUCTS:
            return self._product(op)
        return self._number(value) or UNKNOWN

    @staticmethod
    def _number(value: ir.Value) -> Range | None:
        """The range of a constant."""
        number, op = full_value(value), defining_op(value)
        array = number
        if array is None and op is not None and op.name == "ascend.constant":
            array = constant_array(op)
        if array is None or not array.size:
            return None
        found = array.astype(np.float64)
        return (float(found.min()), float(found.max())) if not np.isnan(found).any() else UNKNOWN

    @staticmethod
    def _product(op: Op) -> Range:
        """The range of a sum of products of f16, of which there are at most as many as the longer
        side of the first factor has elements."""
        shape = tensor_of(op.operands[0].type).shape
        most = LARGEST_HALF**2 * max(shape[-2:], default=1)
        return -most, most

    @staticmethod
    def _rounded(found: Range, element: str) -> Range:
        dtype = dtype_of(element)
        if not np.issubdtype(dtype, np.floating) or np.isnan(found).any():
            return found if not np.isnan(found).any() else UNKNOWN
        with np.errstate(over="ignore"):
            low, high = np.asarray(found).astype(dtype).astype(np.float64)
        return float(low), float(high)
