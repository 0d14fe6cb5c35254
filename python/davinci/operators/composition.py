"""Operators that are made of others inside a kernel: start, step and finish of a reduction.

    root_mean_square = sqrt of (sum of squares, times 1 / n)
    start    mul of the operand by itself
    step     reduce, by its kind
    finish   mul and sqrt, of what is left

A record that says so (`made_of`) is a group like any other when a kernel is planned: what its
operators need, in which order, and what they keep on the core, is theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from davinci.operators.call import Call
from davinci.operators.tensors import Tensor

Operand = int | float
"""The number of a value, or with a point a number that stands for an array filled with it."""


@dataclass(frozen=True)
class ComposedOperator:
    """An operator that another one is made of, with the result's type."""

    name: str
    operands: tuple[Operand, ...]
    result: Tensor
    attributes: dict[str, Any]


@dataclass
class Composition:
    """Operators in order; values are numbered, operands first, then each member's result.

    Attributes:
        call: what is made of them.
    """

    call: Call
    members: list[ComposedOperator] = field(default_factory=list)

    def type_of(self, value: int) -> Tensor:
        """Shape and element type of a value."""
        operands = len(self.call.inputs)
        if value < operands:
            return self.call.inputs[value]
        return self.members[value - operands].result

    def do(self, name: str, *operands: Operand, element: str = "", **attributes: Any) -> int:
        """An elementwise operator; the result has the shape of the first operand that is an array.

        Args:
            element: type of the result, that of the operand if empty.
        """
        of = self.type_of(next(x for x in operands if isinstance(x, int)))
        return self._add(name, operands, Tensor(of.shape, element or of.element), attributes)

    def reduce(self, kind: str, value: int) -> int:
        """What is left of a value when it is reduced along the attribute `dims` of the call."""
        of, dims = self.type_of(value), self.call.array("dims")
        kept = tuple(size for i, size in enumerate(of.shape) if i not in dims)
        left = Tensor(kept, of.element)
        return self._add("reduce", (value,), left, {"kind": kind, "dims": tuple(dims)})

    def _add(
        self, name: str, operands: tuple[Operand, ...], result: Tensor, attributes: dict[str, Any]
    ) -> int:
        self.members.append(ComposedOperator(name, operands, result, attributes))
        return len(self.call.inputs) + len(self.members) - 1


MadeOf = Callable[[Composition], object]
"""Adds the members of a call; the last one makes its result."""
